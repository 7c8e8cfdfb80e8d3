"""A cluster on one machine for tests: workers, HAProxy and Serf, each machine a network namespace on a bridge. Needs root,
in a network and a mount namespace of its own (see alone())."""
import asyncio
import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import load

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEY = "cluster-key"
GOSSIP_KEY = "T9jncgl9mbLus+baTTa7q7nPSUrXwbDi2dhbtqir37s="  # Serf's documentation has it, too
EVENTS = "member-join,member-leave,member-failed,member-update,member-reap"
URL = "http://127.0.0.1:8080"


def alone():
    """Starts this script again in namespaces of its own, so that nothing of the machine is touched."""
    if os.environ.get("INFERNO_CLUSTER_ALONE"):
        return
    script = "mount --make-rprivate / && mount -t tmpfs none /run && mkdir -p /run/netns && ip link set lo up && exec \"$@\""
    os.environ["INFERNO_CLUSTER_ALONE"] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh", sys.executable, "-B", *sys.argv])


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


def until(ready, seconds, what, pause=0.01):
    """Waits until ready() is true; returns the seconds it took."""
    begin = time.monotonic()
    while not ready():
        if time.monotonic() - begin > seconds:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(pause)
    return time.monotonic() - begin


class Cluster:
    """`flags` are further options of every `inferno serve`."""

    def __init__(self, program, workers=3, flags=(), factor=None, balance=None):
        self.program, self.flags, self.factor, self.balance = program, flags, factor, balance
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="inferno-cluster-"))
        self.count, self.processes, self.serfs, self.addresses = workers, {}, {}, {}

    def __enter__(self):
        try:
            run("ip", "link", "add", "br0", "type", "bridge")
            run("ip", "link", "set", "br0", "up")
            self.add_machine("lb", "10.99.0.1")
            (self.folder / "serf.json").write_text(json.dumps({**json.loads((ROOT / "deploy/serf.json").read_text()), "encrypt_key": GOSSIP_KEY,
                                                               "retry_join": ["10.99.0.1"]}))
            self.start_haproxy()
            self.start_serf("lb", "role=balancer", f"-event-handler={EVENTS}={ROOT}/deploy/inferno-members")
            begin = time.monotonic()
            for number in range(1, self.count + 1):
                self.add_machine(f"w{number}", f"10.99.0.{10 + number}")
                self.start_worker(f"w{number}")
                self.start_serf(f"w{number}", "role=inferno", "-tag", "port=8000")
            self.wait_up(self.count, 60)
            self.seconds_to_start = time.monotonic() - begin
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in [*self.processes.values(), *self.serfs.values(), getattr(self, "haproxy", None)]:
            if process and process.poll() is None:
                process.kill()
                process.wait()
        for machine in self.addresses:
            subprocess.run(["ip", "link", "del", machine], capture_output=True)
            subprocess.run(["ip", "netns", "del", machine], capture_output=True)
        subprocess.run(["ip", "link", "del", "br0"], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def spawn(self, machine, *command, name, **environment):
        with open(self.folder / f"{name}.log", "ab") as log:
            return subprocess.Popen(["ip", "netns", "exec", machine, *map(str, command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    env={**os.environ, "HOME": str(self.folder), **environment})

    def add_machine(self, name, address):
        self.addresses[name] = address
        run("ip", "netns", "add", name)
        run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", name, "master", "br0", "up")
        for command in (["addr", "add", f"{address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"], ["link", "set", "lo", "up"]):
            run("ip", "netns", "exec", name, "ip", *command)

    def start_worker(self, name):
        # ip netns exec becomes the program, so signals reach it.
        self.processes[name] = self.spawn(name, self.program, "serve", "builtin", "--device", "cpu", "--threads", "1", "--host", self.addresses[name],
                                          "--worker", name, "--public-metrics", "--max-connections-per-address", "4096", "--max-connections", "4096",
                                          *self.flags, name=name, INFERNO_API_KEY=KEY)

    def start_serf(self, name, tag, *more):
        environment = self.balancer_environment() if name == "lb" else {}
        self.serfs[name] = self.spawn(name, "serf", "agent", f"-node={name}", f"-bind={self.addresses[name]}", "-rpc-addr=127.0.0.1:7373", "-profile=lan",
                                      f"-config-file={self.folder}/serf.json", "-retry-interval=1s", "-tag", tag, *more, name=f"serf-{name}", **environment)

    def balancer_environment(self):
        return {"STATE_DIRECTORY": str(self.folder), "INFERNO_ADMIN": f"{self.folder}/admin.sock", "INFERNO_LISTEN": "127.0.0.1:8080",
                "INFERNO_STATISTICS": "127.0.0.1:8404"}

    def start_haproxy(self):
        self.write_config()
        environment = self.balancer_environment()
        subprocess.run([ROOT / "deploy/inferno-members"], check=True, env={**os.environ, **environment})
        self.haproxy = self.spawn("lb", "haproxy", "-W", "-f", self.folder / "haproxy.cfg", "-f", self.folder / "workers.cfg", name="haproxy", **environment)
        until(lambda: (self.folder / "admin.sock").exists(), 10, "HAProxy's socket")

    def write_config(self):
        text = (ROOT / "deploy/haproxy.cfg").read_text()
        if self.factor:
            text = re.sub(r"hash-balance-factor \d+", f"hash-balance-factor {self.factor}", text)
        if self.balance:
            text = re.sub(r"^    balance .*", f"    balance {self.balance}", text, flags=re.MULTILINE)
        (self.folder / "haproxy.cfg").write_text(text)

    def reload_haproxy(self):
        self.haproxy.send_signal(signal.SIGUSR2)

    def admin(self, command):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(5)
            link.connect(f"{self.folder}/admin.sock")
            link.sendall(command.encode() + b"\n")
            text = b""
            while part := link.recv(1 << 16):
                text += part
        return text.decode()

    def statistics(self):
        """{(proxy, server): {column: value}}"""
        with contextlib.suppress(OSError):
            rows = [line.split(",") for line in self.admin("show stat").splitlines() if line]
            return {(row[0], row[1]): dict(zip(rows[0], row)) for row in rows[1:]}
        return {}

    def up(self):
        """How many workers get requests."""
        return sum(proxy == "workers" and server != "BACKEND" and row["status"] == "UP" for (proxy, server), row in self.statistics().items())

    def wait_up(self, count, seconds=20):
        return until(lambda: self.up() == count, seconds, f"{count} workers in rotation; {self.up()} are")

    def cut_by_proxy(self, name):
        """When HAProxy ended begun answers of a worker early, by its own log (termination state SD), in seconds since 1970."""
        slot = re.search(rf"server (w\d+) {self.addresses[name]}:", (self.folder / "workers.cfg").read_text())[1]
        rows = re.findall(rf"\[(\S+)\] api workers/{slot} \S+/(\d+) 200 \d+ - - SD", (self.folder / "haproxy.log").read_text())
        return [datetime.datetime.strptime(begin, "%d/%b/%Y:%H:%M:%S.%f").timestamp() + int(milliseconds) / 1000 for begin, milliseconds in rows]

    def exposed(self):
        """Requests that HAProxy sent again because they got no byte of an answer, by its own counter."""
        return int(self.statistics()[("workers", "BACKEND")]["wretr"])

    def members(self, machine):
        """{name: state} as the agent of a machine knows them; empty while it does not answer."""
        done = subprocess.run(["ip", "netns", "exec", machine, "serf", "members", "-format=json"], capture_output=True, text=True)
        return {member["name"]: member["status"] for member in json.loads(done.stdout)["members"]} if done.returncode == 0 else {}

    def all_say(self, state):
        """Whether every agent says this of every other one."""
        return all(self.members(machine) == {name: "alive" if name == machine else state for name in self.serfs} for machine in self.serfs)

    def block_gossip(self):
        """Every machine drops what comes to Serf's port by UDP and TCP, without an answer, as a firewall does. A lookup of routes drops it,
        before the table of local addresses, because packet filters may be missing in the kernel."""
        self.change_rules("rule add pref 10 lookup local", "rule del pref 0",
                          *(f"rule add pref 1 iif eth0 ipproto {protocol} dport 7946 blackhole" for protocol in ("udp", "tcp")))

    def unblock_gossip(self):
        self.change_rules("rule del pref 1", "rule del pref 1", "rule add pref 0 lookup local", "rule del pref 10")

    def change_rules(self, *commands):
        for machine in self.addresses:
            run("ip", "-n", machine, "-batch", "-", input="".join(f"{command}\n" for command in commands))

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    def restart(self, name):
        """SIGTERM, then a new one, until it is ready: HAProxy may not have noticed that it was away. Fails if it does not end with 0."""
        self.processes[name].send_signal(signal.SIGTERM)
        code = self.processes[name].wait(60)
        assert code == 0, f"{name} ended with {code}: {self.log(name)}"
        self.start_worker(name)
        ready = ("ip", "netns", "exec", name, "curl", "-sf", "-o", "/dev/null", f"http://{self.addresses[name]}:8000/readyz")
        until(lambda: subprocess.run(ready).returncode == 0, 60, f"{name} is ready")

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]

    def metrics(self, name):
        text = run("ip", "netns", "exec", name, "curl", "-sf", f"http://{self.addresses[name]}:8000/metrics")
        return {found[1]: float(found[2]) for found in re.finditer(r"^([a-z_:]+)(?:\{[^}]*\})? ([0-9.e+-]+)$", text, re.MULTILINE)}

    def prefix_cache(self):
        """(tokens found, tokens looked up) of all workers, by their own counters, and the requests of the busiest."""
        all_metrics = [self.metrics(name) for name in self.processes]
        return (sum(one["vllm:prefix_cache_hits_total"] for one in all_metrics), sum(one["vllm:prefix_cache_queries_total"] for one in all_metrics))

    @contextlib.contextmanager
    def load(self, rate, make):
        """A background client on the balancer's machine while the block runs; yields the list of results."""
        results, over = [], threading.Event()

        def client():
            enter_namespace("lb")
            asyncio.run(load.open_loop(URL, KEY, rate, over.is_set, make, results))

        thread = threading.Thread(target=client)
        thread.start()
        try:
            yield results
        finally:
            over.set()
            thread.join()

    def burst(self, requests):
        """All at once, in the background: (thread, results)."""
        results = []

        def client():
            enter_namespace("lb")
            asyncio.run(load.burst(URL, KEY, requests, results))

        thread = threading.Thread(target=client)
        thread.start()
        return thread, results


def enter_namespace(name):
    """The calling thread moves into a machine's network."""
    import ctypes
    with open(f"/run/netns/{name}") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0x40000000) != 0:
            raise OSError(ctypes.get_errno(), "setns")
