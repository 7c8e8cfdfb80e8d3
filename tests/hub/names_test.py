"""D14: hostile names from a hub: names_test.py INFERNO"""
import json
import os
import pathlib
import re

import scene
import trace
from faults import Fault
from scene import LLAMA, Scene, skip_unless

# Each is a file name in a model's listing. None may cause a write outside the model's folders.
ESCAPES = ["../evil.json", "../../evil.json", "../../../evil.json", "../../../../evil.json", "../" * 40 + "tmp/evil.json", "a/../../evil.json",
           "a/../../../../evil.json", "./../evil.json", "..", "../", "a/..", "a/../..", "/evil.json", "//evil.json", "/tmp/evil.json",
           "/etc/evil.json", "~/evil.json", "$HOME/evil.json", "..\\evil.json", "..\\..\\..\\evil.json", "a\\..\\..\\evil.json",
           "C:\\evil.json", "C:evil.json", "C:/evil.json", "\\\\host\\share\\evil.json", "//host/share/evil.json", "%2e%2e/evil.json",
           "%2e%2e%2f%2e%2e%2fevil.json", "..%2fevil.json", "..%5cevil.json", "..;/evil.json", "file:///tmp/evil.json"]
ODD = ["", ".", "./", "./evil.json", "a/./evil.json", "a//evil.json", "a/", "evil.json/", " ", " evil.json", "evil.json ", "evil.json.", "...",
       ".git/config", ".gitattributes", "-rf", "--help", "CON", "NUL.json", "aux.json", "COM1", "evil.json:stream", "a" * 255, "a" * 300,
       "a" * 300 + ".json", "/".join(["d"] * 100) + "/evil.json", "/".join(["d" * 200] * 30), "evil\x00.json", "evil.json\x00.png",
       "evil\n.json", "evil\r.json", "\x1b[2Jevil.json", "\x1b]0;title\x07.json", "\x9b2J.json", "evil\x7f.json", "\u202elive.json", "\u2066evil.json",
       "e\u0301vil.json", "\ufeffevil.json", "\u200bevil.json", "evil\u2028.json", "\ud800.json", "refs/main", "blobs/evil", "snapshots/evil"]
CLASHES = [("Evil.json", "evil.json"), ("a", "a/b.json"), ("a/b", "a/b/c.json"), ("A/x.json", "a/x.json")]


class Hostile(Scene):
    @classmethod
    def fill(cls):
        cls.good = {path.name: path for path in sorted(LLAMA.iterdir()) if not path.name.startswith("golden")}

    def listed_with(self, *names):
        """A model with these extra files; the listing is hand-written JSON, because a name may occur twice."""
        repo = self.hub.add("org/model")
        repo.commit({**self.good, **{name: b'{"from": "a stranger"}' for name in names}})
        return repo

    def home_for(self, number):
        """A deep path, so that names with ".." stay within the test's folder."""
        home = self.home / f"{number}/a/b/c/d"
        home.mkdir(parents=True)
        return home

    def contained(self, number, *names):
        repo, home = self.listed_with(*names), self.home_for(number)
        seen = home.parent / "trace"
        result = self.run_it("download", "org/model", "--yes", "--include", "*", home=home, cwd=home, code=(0, 2, 4, 5, 6), wrapper=trace.wrapper(seen))
        self.assertNothingEscaped(home, names)
        model = self.folder(repo, home)
        allowed = [str(model), str(self.cache(home) / ".locks" / model.name), str(self.cache(home) / "CACHEDIR.TAG")]
        for call in trace.calls(seen):
            if not call.writes or call.name in ("write", "pwrite64", "writev", "close", "mmap", "fsync", "fdatasync", "ftruncate"):
                continue  # a write to a file that was opened before
            for path in call.paths:
                path = re.sub(r"/\.[0-9a-f]{16}\.tmp$", "/CACHEDIR.TAG", path) if path.startswith(str(self.cache(home)) + "/.") else path
                inside = any(path == one or path.startswith(one + "/") or path.startswith(one + ".") for one in allowed)
                parents = call.name in ("mkdir", "mkdirat") and any(one.startswith(path) for one in allowed)
                tools = path in ("/dev/null", "/dev/tty")
                self.assertTrue(inside or parents or tools or str(home) + "/hf" == path, f"{names!r}: {call}")
        self.assertNoStrangers(home, model)
        if result.code == 0:
            # Every accepted file is in its place, with the content in the listing.
            snapshot = model / "snapshots" / repo.resolve("main")
            for path in self.good:
                self.assertTrue((snapshot / path).is_file())
        return result.code

    def assertNothingEscaped(self, home, names):
        for parent in "/", "/tmp", "/etc", "/host/share", home, home.parent, home.parent.parent:
            escaped = pathlib.Path(parent) / "evil.json"
            if os.path.lexists(escaped):
                escaped.unlink()  # otherwise every later run fails
                self.fail(f"{names!r} is in {parent}")

    def assertNoStrangers(self, home, model):
        """The cache contains only entries of the specification, and no link out of the model."""
        for folder, folders, files in os.walk(self.cache(home)):
            for name in [*folders, *files]:
                path = pathlib.Path(folder) / name
                if path.is_symlink():
                    target = path.resolve()
                    self.assertTrue(str(target).startswith(str(model / "blobs") + "/"), f"{path} -> {target}")
        for entry in model.iterdir() if model.exists() else ():
            self.assertIn(entry.name, ("blobs", "refs", "snapshots", "trees", ".no_exist"))
        for entry in self.cache(home).iterdir() if self.cache(home).exists() else ():
            self.assertIn(entry.name, (".locks", "CACHEDIR.TAG", model.name))

    @skip_unless(trace.is_allowed(), "strace may not watch programs here")
    def test_names_are_refused_or_contained(self):
        codes = []
        for number, name in enumerate(ESCAPES + ODD):
            with self.subTest(name=name):
                codes.append(self.contained(number, name))
        for number, names in enumerate(CLASHES):
            with self.subTest(names=names):
                codes.append(self.contained(1000 + number, *names))
        self.assertGreaterEqual(len(codes), 60)
        print(f"\n{len(codes)} names: {codes.count(0)} contained, {len(codes) - codes.count(0)} refused", flush=True)

    def test_escapes_are_refused_even_if_the_file_is_not_needed(self):
        """The whole listing is refused, or at least the name is skipped."""
        self.listed_with("../../../evil.json")
        self.run_it("download", "org/model", "--yes", code=(0, 4, 5))
        self.assertEqual(list(self.home.rglob("evil.json")), [])

    def test_a_repeated_name_is_refused_or_one_file_wins(self):
        repo = self.listed_with("twice.json")

        def twice(answer):
            entries = json.loads(answer.body)
            again = next(one for one in entries if one["path"] == "config.json")
            answer.body = json.dumps([*entries, {**again, "path": "twice.json"}]).encode()
            answer.length = len(answer.body)

        self.hub.faults.append(Fault(at="hub", path="/tree/", edit=twice))
        result = self.run_it("download", "org/model", "--yes", "--include", "*", code=(0, 4, 5))
        if result.code == 0:
            got = (self.folder(repo) / "snapshots" / repo.resolve("main") / "twice.json").read_bytes()
            self.assertIn(got, (b'{"from": "a stranger"}', (LLAMA / "config.json").read_bytes()))

    def test_a_link_in_the_place_of_a_folder_is_not_followed(self):
        repo = self.listed_with("a/b/evil.json")
        outside = self.home / "outside"
        outside.mkdir()
        for place in ("snapshots", f"snapshots/{repo.resolve('main')}", f"snapshots/{repo.resolve('main')}/a", "blobs"):
            with self.subTest(place):
                home = self.home / place.replace("/", "-")
                link = self.folder(repo, home) / place
                link.parent.mkdir(parents=True)
                link.symlink_to(outside)
                self.run_it("download", "org/model", "--yes", "--include", "*", home=home, code=(0, 4, 5, 6))
                self.assertEqual(list(outside.iterdir()), [])

    def test_revisions_stay_below_refs(self):
        repo = self.listed_with()
        for name in ("../../../evil", "../main", "/evil", "a/../../../../evil", "..", "."):
            repo.branches[name] = repo.branches["main"]
            with self.subTest(name):
                self.run_it("download", "org/model", "--yes", "--revision", name, code=(0, 2, 3, 4, 5))
                self.assertEqual(list(self.home.rglob("evil")), [])
        repo.branches["feature/one"] = repo.branches["main"]
        self.run_it("download", "org/model", "--yes", "--revision", "feature/one")
        self.assertEqual((self.folder(repo) / "refs/feature/one").read_text(), repo.branches["main"])

    def test_models_stay_in_the_cache(self):
        for name in ("../evil", "org/..", "../../evil/x", "org/a--b/../..", "./x", "org//x", "/etc/passwd-", "org/x/../../..", "a--b/c", "org/\x1b[2J"):
            with self.subTest(name):
                result = self.run_it("download", name, "--yes", code=(2, 3, 5))
                self.assertFalse([one for one in self.home.rglob("*") if "evil" in one.name or one.name.startswith("models--") and one.name != "models--org--model"], result)

    def test_names_in_responses_do_not_control_the_terminal(self):
        shown = "\x1b[31mred\x1b]0;title\x07\u202e"
        self.hub.add("org/" + shown, downloads=9, tags=[shown]).commit({"config.json": json.dumps({"architectures": [shown]}).encode()})
        self.addCleanup(self.hub.repos.pop, "org/" + shown)
        result = self.run_it("search", "org/")  # rule U checks the output
        self.assertNotIn("\u202e", result.out + result.err)


if __name__ == "__main__":
    scene.main()
