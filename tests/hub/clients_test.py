"""Hugging Face's own client with the test hub, which shows that the hub is faithful, and with Inferno's cache, which
shows that the cache is shared: clients_test.py INFERNO NODE"""
import json
import pathlib
import subprocess
import sys
import unittest

import scene
from faults import Fault
from scene import MEBIBYTE, TOKEN, Scene, model_files

CLIENT = pathlib.Path(__file__).resolve().with_name("client.mjs")
NODE = sys.argv.pop(2)


class WithTheirClient(Scene):
    MEBIBYTES = 12

    @classmethod
    def fill(cls):
        super().fill()
        files = model_files(1, seed=5)
        cls.folders = cls.hub.add("org/folders", downloads=70, likes=3, tags=["gguf"])
        cls.folders.commit({**files, "original/notes.txt": b"as it was", "a/b/c/deep.json": b"[]", "odd name (1).txt": b"?"})
        cls.old = cls.folders.resolve("main")
        cls.folders.commit({**files, "config.json": files["config.json"] + b"\n"})
        cls.folders.tags["v1"], cls.folders.pulls["refs/pr/1"] = cls.old, cls.old
        for name, kind in (("org/private", {"private": True}), ("org/gated", {"gated": "manual"})):
            cls.hub.add(name, **kind).commit({"config.json": b"{}"})
        cls.hub.add("org/former", renamed_to="org/folders")

    def calls(self, *orders):
        orders = [(call, {"hubUrl": self.hub.url, **order}) for call, order in orders]
        done = subprocess.run([NODE, CLIENT, json.dumps(orders)], capture_output=True, timeout=60, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def call(self, call, **order):
        return self.calls((call, order))[0]


class TheirClientOnOurHub(WithTheirClient):
    def test_searches(self):
        found = self.call("listModels", search={"query": "FOLD"}, additionalFields=["sha", "filePaths", "safetensors", "config"])
        self.assertEqual([one["name"] for one in found], ["org/folders"])
        self.assertEqual((found[0]["downloads"], found[0]["likes"], found[0]["private"]), (70, 3, False))
        self.assertEqual(found[0]["sha"], self.folders.resolve("main"))
        self.assertEqual(set(found[0]["filePaths"]), set(self.folders.files()))
        self.assertGreater(found[0]["safetensors"]["total"], 0)
        self.hub.page = 1  # all, over several pages
        self.addCleanup(setattr, self.hub, "page", 1000)
        self.assertEqual([one["name"] for one in self.call("listModels", sort="downloads", search={"owner": "org"})][:1], ["org/folders"])
        self.assertEqual({one["name"] for one in self.call("listModels")}, {"org/model", "org/folders", "org/gated"})

    def test_lists_files_over_pages_and_by_revision(self):
        self.hub.page = 3
        self.addCleanup(setattr, self.hub, "page", 1000)
        for revision in ("main", "v1", self.old):
            listed = self.call("listFiles", repo="org/folders", recursive=True, revision=revision)
            files = {one["path"]: one for one in listed if one["type"] == "file"}
            self.assertEqual(set(files), set(self.folders.files(revision)))
            for path, file in self.folders.files(revision).items():
                self.assertEqual((files[path]["size"], files[path]["oid"]), (file.size, file.oid))
                self.assertEqual(files[path].get("lfs", {}).get("oid"), file.sha256 if file.lfs else None)
        top = self.call("listFiles", repo="org/folders", revision="v1", path="a")
        self.assertEqual([(one["type"], one["path"]) for one in top], [("directory", "a/b")])
        self.assertEqual(self.call("modelInfo", name="org/folders", revision="refs/pr/1", additionalFields=["sha"])["sha"], self.old)

    def test_asks_for_paths(self):
        found = self.call("pathsInfo", repo="org/folders", paths=["model.safetensors", "none"], expand=True)
        self.assertEqual([one["path"] for one in found], ["model.safetensors"])
        self.assertEqual(found[0]["lastCommit"]["id"], self.folders.resolve("main"))

    def test_downloads_every_file_and_parts_of_one(self):
        files = self.folders.files("v1")
        asked = [{"repo": "org/folders", "path": path.replace(" ", "%20"), "revision": "v1"} for path in files]
        infos = self.calls(*(("fileDownloadInfo", one) for one in asked))
        self.assertEqual([one["size"] for one in infos], [file.size for file in files.values()])
        got = self.calls(*(("downloadFile", one) for one in asked))
        self.assertEqual([one["sha256"] for one in got], [file.sha256 for file in files.values()])
        part = self.call("slice", repo=self.MODEL, path="model.safetensors", begin=1000, end=MEBIBYTE)
        self.assertEqual(part["size"], MEBIBYTE - 1000)
        gone, there = {"repo": "org/folders", "path": "none"}, {"repo": "org/folders", "path": "config.json"}
        self.assertEqual(self.calls(("downloadFile", gone), ("fileExists", gone), ("fileExists", there)), [None, False, True])
        counted = self.call("parseSafetensorsMetadata", repo="org/folders")
        self.assertEqual(counted["parameterCount"]["BF16"], self.folders.info(self.folders.resolve("main"))["safetensors"]["total"])
        self.assertFalse([one for one in self.hub.cdn_requests if "authorization" in one.headers])

    def test_follows_a_renamed_repository(self):
        got = self.call("downloadFile", repo="org/former", path="config.json")
        self.assertEqual(got["sha256"], self.folders.files()["config.json"].sha256)
        self.assertEqual(self.call("modelInfo", name="org/former")["name"], "org/folders")

    def test_is_refused_with_the_messages_of_the_hub(self):
        self.assertEqual(self.call("whoAmI", accessToken=TOKEN)["name"], "tester")
        cases = (("org/none", None, 401), ("org/none", TOKEN, 404), ("org/private", TOKEN, 404), ("org/model", "hf_bad", 401))
        answers = self.calls(*(("checkRepoAccess", {"repo": name, **({"accessToken": token} if token else {})})
                               for name, token, _ in cases))
        self.assertEqual([one["refused"] for one in answers], [status for *_, status in cases])
        gated = {"repo": "org/gated", "path": "config.json"}
        pages, files, stranger, exists = self.calls(("checkRepoAccess", gated), ("downloadFile", gated),
                                                    ("downloadFile", {**gated, "accessToken": TOKEN}),
                                                    ("repoExists", {"repo": "org/none"}))
        self.assertEqual(pages, "granted")  # only the files are gated
        self.assertRegex(files["message"], "restricted")
        self.assertEqual((stranger["refused"], exists), (403, False))

    def test_meets_injected_faults(self):
        self.hub.faults.append(Fault(at="hub", path="/tree/", status=429, headers={"Retry-After": "1"}))
        self.assertEqual(self.call("listFiles", repo="org/folders")["refused"], 429)


class OneCacheForBoth(WithTheirClient):
    def scan(self):
        found = self.call("scanCacheDir", cacheDir=str(self.cache()))
        self.assertEqual(found["warnings"], [])
        return {one["id"]["name"]: one for one in found["repos"]}

    def fetch(self, *paths):
        self.calls(*(("downloadFileToCacheDir", {"repo": self.MODEL, "path": path, "cacheDir": str(self.cache())}) for path in paths))

    def test_they_find_what_we_downloaded(self):
        self.download()
        self.download("--include", "*", model="org/folders@v1")
        found = self.scan()
        self.assertEqual(set(found), {"org/model", "org/folders"})
        self.assertEqual(found["org/model"]["size"], sum(file.size for file in self.repo.files().values()))
        revision = found["org/model"]["revisions"][0]
        self.assertEqual((revision["commitOid"], revision["refs"]), (self.repo.resolve("main"), ["main"]))
        self.assertEqual({pathlib.Path(one["path"]).name for one in revision["files"]}, set(self.repo.files()))
        self.hub.forget()  # and they use it, without fetching it again
        path = self.call("downloadFileToCacheDir", repo=self.MODEL, path="model.safetensors", cacheDir=str(self.cache()),
                         revision=self.repo.resolve("main"))
        self.assertTrue(pathlib.Path(path).samefile(self.folder() / "blobs" / self.repo.files()["model.safetensors"].etag))
        self.assertEqual(self.hub.body_bytes(), 0)

    def test_they_find_a_partial_model(self):
        process = self.start("download", self.MODEL, "--yes")
        with self.signalled(process, 9, 6 * MEBIBYTE):
            self.end(process)
        self.assertEqual(self.call("scanCacheDir", cacheDir=str(self.cache()))["warnings"], [])

    def test_we_find_and_load_what_they_downloaded(self):
        self.call("snapshotDownload", repo=self.MODEL, cacheDir=str(self.cache()))
        self.assert_loads()
        self.run_it("logits", self.MODEL, "--tokens", "1,2,3", "-o", self.home / "out", "--device", "cpu", HF_HUB_OFFLINE="1")
        self.assertGreater((self.home / "out").stat().st_size, 3 * 512 * 4)
        self.run_it("verify", self.MODEL)
        self.hub.forget()
        self.download()  # nothing is left to do
        self.assertEqual(self.hub.body_bytes(), 0)
        self.assert_whole()

    def test_we_list_what_they_downloaded_file_by_file_without_a_ref(self):
        sha = self.repo.resolve("main")
        self.fetch(*self.repo.files())
        self.assertFalse((self.folder() / "refs").exists())
        self.assertTrue((self.folder() / "snapshots" / sha).exists())
        self.assertIn(self.MODEL, [one["name"] for one in self.listed()])
        self.run_it("generate", "Hi", "-m", self.MODEL, "-n", "1", "--device", "cpu", HF_HUB_OFFLINE="1")

    def test_our_download_completes_theirs(self):
        first = [path for path in self.repo.files() if path != "model.safetensors"]
        self.fetch(*first)
        partial = self.folder() / "blobs" / (self.repo.files()["model.safetensors"].etag + ".incomplete")
        partial.write_bytes(b"theirs, and not ours to append to")
        self.download()
        self.assertEqual(partial.read_bytes(), b"theirs, and not ours to append to")
        partial.unlink()
        self.assert_whole()


if __name__ == "__main__":
    scene.main()
