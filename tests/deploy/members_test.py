"""How deploy/inferno-members assigns workers to HAProxy's slots: members_test.py"""
import importlib.machinery
import importlib.util
import json
import pathlib
import unittest

FILE = pathlib.Path(__file__).resolve().parents[2] / "deploy/inferno-members"
loader = importlib.machinery.SourceFileLoader("inferno_members", str(FILE))
members = importlib.util.module_from_spec(importlib.util.spec_from_loader("inferno_members", loader))
loader.exec_module(members)


def serf(*rows):
    """The output of `serf members` for (name, address, state[, port])."""
    return json.dumps({"members": [{"name": name, "addr": f"{address}:7946", "port": 7946, "status": state,
                                    "tags": {"role": "inferno", "port": str(port[0]) if port else "8000"}, "protocol": {}}
                                   for name, address, state, *port in rows]})


def after(slots, *rows, count=8):
    known = members.members_of(serf(*rows))
    return members.assign(members.slots_in(slots, count) if isinstance(slots, str) else slots, known)[0]


def used(slots):
    return {place for place, is_used in slots if is_used}


class Slots(unittest.TestCase):
    three = (("a", "10.0.0.1", "alive"), ("b", "10.0.0.2", "alive"), ("c", "10.0.0.3", "alive"))

    def test_who_joins_gets_a_slot_and_keeps_it(self):
        slots = after("", *self.three)
        self.assertEqual(used(slots), {"10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"})
        grown = after(slots, *self.three, ("d", "10.0.0.4", "alive", 9000))
        self.assertEqual(used(grown), used(slots) | {"10.0.0.4:9000"})
        for old, new in zip(slots, grown):
            if old[1]:
                self.assertEqual(old, new)

    def test_who_left_is_taken_out_and_finds_its_slot_again(self):
        slots = after("", *self.three)
        for state in ("leaving", "left"):
            without = after(slots, *self.three[:2], ("c", "10.0.0.3", state))
            self.assertEqual(used(without), {"10.0.0.1:8000", "10.0.0.2:8000"})
            self.assertEqual(after(without, *self.three), slots)

    def test_whom_gossip_lost_stays(self):
        slots = after("", *self.three)
        self.assertEqual(after(slots, *self.three[:2], ("c", "10.0.0.3", "failed")), slots)
        self.assertEqual(after(slots, *((name, address, "failed") for name, address, _ in self.three)), slots)

    def test_whom_a_new_agent_has_not_met_stays(self):
        slots = after("", *self.three)
        self.assertEqual(after(slots), slots)
        self.assertEqual(after(slots, self.three[0]), slots)

    def test_a_full_balancer_takes_the_place_of_the_unknown_and_says_who_has_none(self):
        slots = after("", *self.three, count=3)
        known = members.members_of(serf(*self.three, ("d", "10.0.0.4", "alive")))
        same, homeless = members.assign(slots, known)
        self.assertEqual((same, homeless), (slots, ["10.0.0.4:8000"]))
        # c is neither known nor said to have left: its place is given away only when there is no other.
        known = members.members_of(serf(*self.three[:2], ("d", "10.0.0.4", "alive")))
        changed, homeless = members.assign(slots, known)
        self.assertEqual((used(changed), homeless), ({"10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.4:8000"}, []))

    def test_two_balancers_agree_whatever_the_order(self):
        empty = [(members.EMPTY, False)] * 32
        results = [after(after(empty, *first), *self.three) for first in ((), self.three[:1], self.three[2:], self.three[1:])]
        self.assertEqual(len(used(results[0])), 3)
        for result in results[1:]:
            self.assertEqual(result, results[0])

    def test_a_file_is_read_as_it_was_written(self):
        slots = after("", *self.three, ("six", "[fe80::1]", "alive"))
        slots = after(slots, *self.three[1:], ("a", "10.0.0.1", "left"))
        self.assertEqual(members.slots_in(members.workers_file(slots), 8), slots)
        self.assertIn("tcp-ut 3s", members.workers_file(slots))

    def test_a_worker_with_an_address_of_ipv6(self):
        slots = after("", ("six", "[2001:db8::1]", "alive"))
        self.assertEqual(used(slots), {"[2001:db8::1]:8000"})
        number = 1 + slots.index(("[2001:db8::1]:8000", True))
        self.assertIn(f"    server w{number} [2001:db8::1]:8000 ", members.workers_file(slots))
        self.assertIn(f"set server workers/w{number} addr 2001:db8::1 port 8000", list(members.commands_for(after(""), slots)))
        workers = {"[2001:db8::1]:8000": "six"}
        self.assertIn('address: "2001:db8::1"\n    port: "8000"\n', members.endpoints_file(workers))
        self.assertEqual(json.loads(members.prometheus_file(workers))[0]["targets"], ["[2001:db8::1]:8000"])

    def test_a_running_balancer_is_told_what_changed_only(self):
        slots = after("", *self.three)
        self.assertEqual(list(members.commands_for(slots, slots)), [])
        number = 1 + slots.index(("10.0.0.3:8000", True))
        without = after(slots, *self.three[:2], ("c", "10.0.0.3", "left"))
        self.assertEqual(list(members.commands_for(slots, without)), [f"set server workers/w{number} state maint"])
        self.assertEqual(list(members.commands_for(without, slots)),
                         [f"set server workers/w{number} state maint", f"set server workers/w{number} addr 10.0.0.3 port 8000",
                          f"set server workers/w{number} state ready"])


class Members(unittest.TestCase):
    def test_only_workers_with_an_address_and_a_port_count(self):
        text = json.loads(serf(("a", "10.0.0.1", "alive"), ("b", "example.org", "alive"), ("c", "10.0.0.3", "alive", "80 weight 9"),
                               ("d", "10.0.0.4", "alive", 0), ("e", "10.0.0.5", "reaped")))
        text["members"] += [{"name": "f", "addr": "10.0.0.6:7946", "status": "alive", "tags": {"role": "balancer"}}, {"name": "g"}]
        self.assertEqual(members.members_of(json.dumps(text)), {"alive": {"10.0.0.1:8000": "a"}, "failed": {}, "leaving": {}, "left": {}})
        self.assertEqual(members.members_of('{"members": null}')["alive"], {})

    def test_no_agent_means_no_change(self):
        self.assertEqual(members.members("127.0.0.1:1"), {state: {} for state in members.STATES})

    def test_other_files(self):
        workers = {"10.0.0.2:8000": 'b"\n', "10.0.0.1:8000": "a"}
        self.assertEqual(members.endpoints_file({}), "endpoints: []\n")
        self.assertEqual(members.endpoints_file(workers),
                         'endpoints:\n  - name: "a"\n    address: "10.0.0.1"\n    port: "8000"\n  - name: "b\\"\\n"\n    address: "10.0.0.2"\n    port: "8000"\n')
        self.assertEqual(json.loads(members.prometheus_file(workers)),
                         [{"targets": ["10.0.0.1:8000", "10.0.0.2:8000"], "labels": {"job": "inferno"}}])


if __name__ == "__main__":
    unittest.main(verbosity=2)
