"""D2, D3, D5, D6, D12, D13: bodies that are truncated, altered or changing: body_test.py INFERNO"""
import gzip
import json
import random
import signal

import scene
from faults import Fault
from scene import MEBIBYTE, Scene, model_files

WEIGHTS = "model.safetensors"


class Broken(Scene):
    def setUp(self):
        super().setUp()
        self.file = self.repo.files()[WEIGHTS]
        self.total = sum(file.size for file in self.repo.files().values())

    def fresh(self, name):
        home = self.home / str(name)
        home.mkdir()
        self.hub.forget()
        return home

    def interrupted(self, home, after):
        process = self.start("download", self.MODEL, "--yes", home=home)
        with self.signalled(process, signal.SIGKILL, after):
            self.assertEqual(self.end(process).code, -signal.SIGKILL)
        self.hub.forget()


class Truncated(Broken):
    """D2"""

    def test_bodies_are_resumed_in_the_same_run(self):
        for trial in range(25):
            home = self.fresh(trial)
            self.hub.faults.append(Fault(cut=(0, self.total // 2), times=4, seed=trial))
            self.download(home=home, INFERNO_HUB_TIME_SCALE="0.01")
            self.assertGreater(self.hub.faults[0].met, 0)
            self.assert_whole(home=home)
            self.assertLess(self.hub.body_bytes(), 1.05 * self.total)
            scene.shutil.rmtree(home)

    def test_many_small_pieces_are_progress(self):
        for trial in range(5):
            home = self.fresh(trial)
            self.hub.faults.append(Fault(cut=(MEBIBYTE, 4 * MEBIBYTE), seed=trial))
            self.download(home=home, INFERNO_HUB_TIME_SCALE="0.001")
            self.assertGreater(self.hub.faults[0].met, 8)
            self.assert_whole(home=home)

    def test_empty_bodies_end_the_run_after_a_few_attempts(self):
        for trial in range(20):
            home = self.fresh(trial)
            self.hub.faults[:] = [Fault(cut=MEBIBYTE, times=trial % 3), Fault(cut=0)]
            result = self.download(home=home, code=5, INFERNO_HUB_TIME_SCALE="0.001")
            self.assertIn(WEIGHTS, result.err)
            if trial < 2:
                self.assert_not_whole(home=home)
            tries = {}
            for request in self.hub.cdn_requests:
                tries[request.headers.get("range")] = tries.get(request.headers.get("range"), 0) + 1
            self.assertLessEqual(max(tries.values()), 6, tries)


class WrongHash(Broken):
    """D3"""
    MEBIBYTES = 32

    def test_is_reported_and_the_file_cannot_be_loaded(self):
        for trial in range(30):
            home = self.fresh(trial)
            at = (0, self.file.size // 2 + trial, self.file.size - 1)[trial % 3]
            self.hub.faults.append(Fault(flip=at, path=self.file.sha256))
            result = self.download(home=home, code=4, INFERNO_HUB_TIME_SCALE="0.01")
            self.assertIn(self.file.sha256, result.err, "the hash that was expected")
            self.assertRegex(result.err.replace(self.file.sha256, ""), r"\b[0-9a-f]{64}\b", "and the one that came")
            self.assertIn(WEIGHTS, result.err)
            self.assertFalse((self.folder(home=home) / "blobs" / self.file.sha256).exists())
            if trial < 3:
                self.assert_not_whole(home=home)
                self.hub.forget()
                self.download(home=home)
                self.assert_whole(home=home)
            scene.shutil.rmtree(home)

    def test_of_a_small_file_is_detected(self):
        home = self.fresh("small")
        self.hub.faults.append(Fault(at="hub", path="/tokenizer.json", flip=7))
        result = self.download(home=home, code=4, INFERNO_HUB_TIME_SCALE="0.01")
        self.assertIn(self.repo.files()["tokenizer.json"].sha1, result.err)
        self.assert_not_whole(home=home)


class Ranges(Broken):
    """D5, D6"""

    def test_that_are_ignored_restart_the_file(self):
        chance = random.Random(5)
        for trial in range(20):
            home = self.fresh(trial)
            if trial % 2:
                self.interrupted(home, chance.randrange(self.total // 10, self.total * 9 // 10))
            self.hub.faults.append(Fault(ignore_range=True))
            self.download(home=home)
            self.assert_whole(home=home)
            scene.shutil.rmtree(home)

    def test_that_are_ignored_only_sometimes(self):
        for trial in range(4):
            home = self.fresh(trial)
            self.hub.faults.append(Fault(ignore_range=True, skip=1 + trial, times=1))
            self.download(home=home)
            self.assert_whole(home=home)

    def test_that_are_not_satisfiable(self):
        chance = random.Random(6)
        for trial in range(10):
            home = self.fresh(trial)
            self.interrupted(home, chance.randrange(self.total // 10, self.total * 9 // 10))
            partial = max((self.folder(home=home) / "blobs").glob(self.file.sha256 + "*"), key=lambda one: one.stat().st_size)
            if trial % 2:  # longer than the file
                with open(partial, "ab") as file:
                    file.truncate(self.file.size + 1000)
            self.hub.faults.append(Fault(ranged=True, times=1 + trial % 3, status=416, headers={"Content-Range": f"bytes */{self.file.size}"}))
            self.download(home=home, INFERNO_HUB_TIME_SCALE="0.01")
            self.assert_whole(home=home)
            scene.shutil.rmtree(home)

    def test_of_other_bytes_than_requested(self):
        """A proxy that responds with another client's range."""
        home = self.fresh("neighbour")

        def other_part(answer):
            if answer.status == 206 and answer.begin > 0:
                answer.begin -= 1
                answer.headers["Content-Range"] = f"bytes {answer.begin}-{answer.begin + answer.length - 1}/{self.file.size}"

        self.interrupted(home, self.total // 2)
        self.hub.faults.append(Fault(edit=other_part, times=2))
        self.download(home=home, code=(0, 4, 5), INFERNO_HUB_TIME_SCALE="0.01")
        self.hub.forget()
        self.download(home=home)
        self.assert_whole(home=home)


class Changed(Broken):
    """D12"""
    MEBIBYTES = 32

    def test_between_runs_restarts_and_never_mixes(self):
        old = self.repo.commits[self.repo.resolve("main")]["files"]
        chance = random.Random(12)
        others = {same: model_files(self.MEBIBYTES if same else self.MEBIBYTES - 3, seed=99) for same in (True, False)}
        self.assertEqual(len(others[True][WEIGHTS]), self.file.size)
        self.addCleanup(self.repo.commit, {path: file.location for path, file in old.items()})
        for trial in range(20):
            home = self.fresh(trial)
            self.repo.commit({path: file.location for path, file in old.items()})
            self.interrupted(home, chance.randrange(self.total // 10, self.total * 9 // 10))
            self.repo.commit(others[trial % 2 == 0])
            self.download(home=home)
            self.assert_files(self.repo, self.repo.resolve("main"), home)
            self.assertEqual((self.folder(home=home) / "refs/main").read_text(), self.repo.resolve("main"))
            scene.shutil.rmtree(home)

    def test_within_a_run_is_a_checksum_mismatch_or_correct(self):
        """The branch moves during the download: the result is one of the two commits, never a mixture."""
        old = self.repo.commits[self.repo.resolve("main")]["files"]
        self.addCleanup(self.repo.commit, {path: file.location for path, file in old.items()})
        home = self.fresh("moved")
        other = model_files(self.MEBIBYTES, seed=77)
        self.hub.watch.after(self.total // 3, lambda: self.repo.commit(other))
        self.download(home=home)
        sha = (self.folder(home=home) / "refs/main").read_text()
        self.assert_files(self.repo, sha, home)


class Altered(Broken):
    """D13"""
    MEBIBYTES = 32

    def in_the_listing(self, **changes):
        def edit(answer):
            entries = json.loads(answer.body)
            for entry in entries:
                if entry["path"] == WEIGHTS:
                    for key, value in changes.items():
                        target = entry["lfs"] if key in ("sha", "lfs_size") else entry
                        key = {"sha": "oid", "lfs_size": "size"}.get(key, key)
                        target.pop(key, None) if value is None else target.update({key: value})
            answer.body = json.dumps(entries).encode()
            answer.length = len(answer.body)
        return Fault(at="hub", path="/tree/", edit=edit)

    @staticmethod
    def zipped(answer):
        answer.headers["Content-Encoding"] = "gzip"
        answer.headers["Content-Length"] = str(len(gzip.compress(b"x")))

    def alterations(self):
        size = self.file.size
        resolve = {"at": "hub", "path": f"/resolve/"}
        yield "no length from the content network", Fault(headers={"Content-Length": None})
        yield "no size at the hub", Fault(**resolve, headers={"X-Linked-Size": None})
        yield "too small a size at the hub", Fault(**resolve, headers={"X-Linked-Size": str(size - 1000)})
        yield "too large a size at the hub", Fault(**resolve, headers={"X-Linked-Size": str(size + 1000)})
        yield "a size that is no number", Fault(**resolve, headers={"X-Linked-Size": "-1"})
        yield "too small a size in the listing", self.in_the_listing(size=size - 1000, lfs_size=size - 1000)
        yield "too large a size in the listing", self.in_the_listing(size=size + 1000, lfs_size=size + 1000)
        yield "two sizes in the listing", self.in_the_listing(size=size - 1000)
        yield "a size of 2^63 in the listing", self.in_the_listing(size=1 << 63, lfs_size=1 << 63)
        yield "a negative size in the listing", self.in_the_listing(size=-5, lfs_size=-5)
        yield "another hash in the listing", self.in_the_listing(sha="0" * 64)
        yield "no hash in the listing", self.in_the_listing(sha=None, oid=None)
        yield "a hash that is a path", self.in_the_listing(sha="../../../../evil", oid="../../../../evil")
        yield "gzip, but only in HEAD", Fault(**resolve, method="HEAD", edit=self.zipped)
        yield "no etag", Fault(**resolve, headers={"X-Linked-ETag": None, "ETag": None})
        yield "no commit", Fault(**resolve, headers={"X-Repo-Commit": None})
        yield "a commit that is a path", Fault(**resolve, headers={"X-Repo-Commit": "../../evil"})
        yield "too long a length from the content network", Fault(edit=lambda answer: answer.headers.update({"Content-Length": str(answer.length + 5)}), times=2)
        yield "no tree but a page for people", Fault(at="hub", path="/tree/", status=200, body=b"<html>please log in", headers={"Content-Type": "text/html"})

    def test_ends_with_the_right_bytes_or_an_error(self):
        outcomes = {}
        for name, fault in self.alterations():
            with self.subTest(name):
                home = self.fresh(name)
                self.hub.faults.append(fault)
                result = self.download(home=home, code=(0, 4, 5, 6), INFERNO_HUB_TIME_SCALE="0.01", HF_HUB_DOWNLOAD_TIMEOUT="30", seconds=30)
                outcomes[name] = result.code
                if result.code == 0:
                    self.assert_whole(home=home)
                elif self.folder(home=home).exists():
                    self.assert_not_whole(home=home)
                self.assertEqual([one.name for one in self.home.rglob("evil*")], [])
                self.hub.forget()
                self.download(home=home)
                self.assert_whole(home=home)
                scene.shutil.rmtree(home)
        print("\n" + "\n".join(f"{name}: exit {code}" for name, code in outcomes.items()), flush=True)


if __name__ == "__main__":
    scene.main()
