"""D15: the order of writes, syncs and renames: order_test.py INFERNO"""
import os

import scene
import trace
from scene import LLAMA, Scene, skip_unless

WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "fallocate", "copy_file_range")
RENAMES = ("rename", "renameat", "renameat2")
LINKS = ("symlink", "symlinkat")
SYNCS = ("fsync", "fdatasync")


class Durable(Scene):
    MEBIBYTES = 24

    def last(self, calls, names, file, before):
        return max((at for at, call in enumerate(calls[:before]) if call.name in names and call.file == str(file)), default=None)

    def first(self, calls, names, file, after):
        return next((at for at in range(after + 1, len(calls)) if calls[at].name in names and calls[at].file == str(file)), None)

    def renamed(self, calls, target):
        """The rename that gave a file its name, and its previous name."""
        for at, call in enumerate(calls):
            if call.name in RENAMES and call.paths[-1] == str(target):
                return at, call.paths[0]
        self.fail(f"{target} was never renamed into its place")

    def in_order(self, calls, target):
        """write, fsync(file), rename, fsync(folder); returns the position of the last one."""
        at, source = self.renamed(calls, target)
        wrote = self.last(calls, WRITES, source, at)
        synced = self.last(calls, SYNCS, source, at)
        self.assertIsNotNone(wrote, f"{source} was never written")
        self.assertIsNotNone(synced, f"{source} was renamed without fsync")
        self.assertGreater(synced, wrote, f"{source} was written after its fsync")
        after = self.first(calls, SYNCS, os.path.dirname(target), at)
        self.assertIsNotNone(after, f"the folder of {target} was not synced after the rename")
        return after

    @skip_unless(trace.is_allowed(), "strace may not watch programs here")
    def test_every_file_is_synced_before_it_is_renamed(self):
        shards = self.hub.add("org/shards")
        shards.commit({path.name: path for path in sorted(LLAMA.iterdir()) if not path.name.startswith("golden")})
        checked = 0
        for trial in range(20):
            repo, home = (self.repo, shards)[trial % 2], self.home / str(trial)
            home.mkdir()
            seen = self.home / f"{trial}.trace"
            self.download("--jobs", str(1 + trial % 4), model=repo.id, home=home, wrapper=trace.wrapper(seen))
            self.assert_whole(repo, home=home)
            calls, folder, sha = trace.calls(seen), self.folder(repo, home), repo.resolve("main")
            blobs = {file.etag: self.in_order(calls, folder / "blobs" / file.etag) for file in repo.files().values()}
            ref = self.in_order(calls, folder / "refs/main")
            for path, file in repo.files().items():
                link = next(at for at, call in enumerate(calls) if call.name in (*LINKS, *RENAMES)
                            and call.paths[-1] == str(folder / "snapshots" / sha / path))
                self.assertGreater(link, blobs[file.etag], f"{path} had its name before its content was safe")
            self.assertGreater(ref, max(blobs.values()), "the branch was named before its files were safe")
            checked += len(blobs)
        print(f"\n{checked} files in 20 runs: write, fsync, rename, fsync of the folder, link, ref", flush=True)


if __name__ == "__main__":
    scene.main()
