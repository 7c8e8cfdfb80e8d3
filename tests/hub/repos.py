"""Model repositories of the test hub: commits of files, branches and tags, and their API responses."""
import hashlib
import json
import os
import pathlib
import struct
import time

LFS_SUFFIXES = (".safetensors", ".gguf", ".bin", ".pth", ".pt", ".h5", ".onnx", ".msgpack", ".ot", ".tflite")
LFS_BYTES = 10_000_000


def git_blob_oid(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class File:
    """One file's content, on disk so that it can be sent without a copy."""

    def __init__(self, path, location, xet=False):
        self.path, self.location = path, pathlib.Path(location)
        self.size = self.location.stat().st_size
        sha256, sha1 = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % self.size)
        with open(location, "rb") as file:
            while piece := file.read(1 << 20):
                sha256.update(piece)
                sha1.update(piece)
        self.sha256, self.sha1 = sha256.hexdigest(), sha1.hexdigest()
        self.lfs = path.endswith(LFS_SUFFIXES) or self.size > LFS_BYTES
        self.xet = xet and self.lfs
        # The pointer that git stores for a file in LFS.
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {self.size}\n".encode()
        self.pointer = pointer
        self.oid = git_blob_oid(pointer) if self.lfs else self.sha1
        self.etag = self.sha256 if self.lfs else self.sha1  # a blob's name in the cache

    @property
    def xet_hash(self):
        return hashlib.blake2s(self.sha256.encode()).hexdigest()

    def entry(self):
        found = {"type": "file", "oid": self.oid, "size": self.size, "path": self.path}
        if self.lfs:
            found["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": len(self.pointer)}
        if self.xet:
            found["xetHash"] = self.xet_hash
        return found


class Repo:
    def __init__(self, name, store, *, private=False, gated=False, disabled=False, xet=False, renamed_to=None, **about):
        self.id, self.store = name, pathlib.Path(store)
        self.private, self.gated, self.disabled, self.xet, self.renamed_to = private, gated, disabled, xet, renamed_to
        self.about = {"downloads": 0, "likes": 0, "tags": [], "trendingScore": 0, "createdAt": "2026-01-02T03:04:05.000Z", **about}
        self.commits, self.branches, self.tags, self.pulls = {}, {}, {}, {}
        self.allowed = set()  # tokens with access, if private or gated

    def commit(self, files, branch="main", title="Upload"):
        """files: {path: bytes, or the Path of a file}, the whole tree of the new commit. Returns its hash."""
        tree = {}
        for path, content in files.items():
            if isinstance(content, (bytes, bytearray)):
                location = self.store / hashlib.sha256(content).hexdigest()
                if not location.exists():
                    location.write_bytes(content)
                content = location
            tree[path] = File(path, content, self.xet)
        listing = json.dumps([self.id, len(self.commits), sorted((path, file.oid) for path, file in tree.items())])
        sha = hashlib.sha1(listing.encode("utf-8", "surrogatepass")).hexdigest()
        self.commits[sha] = {"files": tree, "title": title,
                             "date": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_790_000_000 + len(self.commits)))}
        self.branches[branch] = sha
        return sha

    def resolve(self, revision):
        """The commit that a branch, a tag, a pull request or a commit names; or None."""
        if revision in self.commits:
            return revision
        short = [sha for sha in self.commits if len(revision) >= 7 and sha.startswith(revision)]
        named = {**self.pulls, **self.tags, **self.branches, "HEAD": self.branches.get("main")}
        return named.get(revision) or named.get(revision.removeprefix("refs/heads/")) or (short[0] if short else None)

    def files(self, revision="main"):
        sha = self.resolve(revision)
        return self.commits[sha]["files"] if sha else {}

    def tree(self, sha, below, recursive, expand):
        """Entries below a folder, or None if it does not exist."""
        commit, prefix, found, folders = self.commits[sha], f"{below}/" if below else "", [], {}
        for path, file in commit["files"].items():
            if not path.startswith(prefix):
                continue
            parts = path[len(prefix):].split("/")
            for depth in range(1, len(parts)):
                folder = prefix + "/".join(parts[:depth])
                folders.setdefault(folder, {"type": "directory", "oid": hashlib.sha1(folder.encode("utf-8", "replace")).hexdigest(),
                                            "size": 0, "path": folder})
                if not recursive:
                    break
            if recursive or len(parts) == 1:
                found.append(file.entry())
        entries = sorted(folders.values(), key=lambda one: one["path"]) + found
        if expand:
            for entry in entries:
                entry["lastCommit"] = {"id": sha, "title": commit["title"], "date": commit["date"]}
        return entries if entries or not below else None

    def refs(self):
        def listed(names, kind):
            return [{"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": sha} for name, sha in names.items()]
        pulls = [{"name": name, "ref": name, "targetCommit": sha} for name, sha in self.pulls.items()]
        return {"branches": listed(self.branches, "heads"), "tags": listed(self.tags, "tags"), "converts": [],
                "pullRequests": pulls}

    def info(self, sha, blobs=False):
        """All fields of the API."""
        commit = self.commits[sha] if sha else {"files": {}, "date": self.about["createdAt"]}
        files = commit["files"].values()
        siblings = []
        for file in files:
            sibling = {"rfilename": file.path}
            if blobs:
                sibling |= {"size": file.size, "blobId": file.oid}
                if file.lfs:
                    sibling["lfs"] = {"sha256": file.sha256, "size": file.size, "pointerSize": len(file.pointer)}
            siblings.append(sibling)
        known = {"_id": hashlib.sha1(self.id.encode()).hexdigest()[:24], "id": self.id, "modelId": self.id,
                 "author": self.id.split("/")[0], "sha": sha, "lastModified": commit["date"], "private": self.private,
                 "disabled": self.disabled, "gated": self.gated, "siblings": siblings, "spaces": [],
                 "pipeline_tag": "text-generation", "library_name": "transformers",
                 "usedStorage": sum(file.size for file in files)}
        return {**known, **self.read(commit["files"]), **self.about}

    @staticmethod
    def read(files):
        """What the hub derives from the files: safetensors parameters, the architecture in config.json."""
        found, parameters = {}, {}
        for file in files.values():
            if file.path.endswith(".safetensors"):
                for dtype, count in safetensors_parameters(file.location).items():
                    parameters[dtype] = parameters.get(dtype, 0) + count
        if parameters:
            found["safetensors"] = {"parameters": parameters, "total": sum(parameters.values())}
        if "config.json" in files:
            try:
                config = json.loads(files["config.json"].location.read_bytes())
                found["config"] = {key: config[key] for key in ("architectures", "model_type") if key in config}
            except (ValueError, TypeError):
                pass
        return found


def safetensors_parameters(location):
    try:
        with open(location, "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            if size > os.stat(location).st_size:
                return {}
            header = json.loads(file.read(size))
    except (ValueError, struct.error):
        return {}
    counts = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            count = 1
            for extent in tensor["shape"]:
                count *= extent
            counts[tensor["dtype"]] = counts.get(tensor["dtype"], 0) + count
    return counts
