#!/usr/bin/env python3
"""A hub for tests: the API, files and content network of the Hugging Face Hub on loopback, with fault injection.

In a test:    with Hub() as hub: hub.add("org/name").commit({...}); hub.faults.append(Fault(cut=1000)); ... hub.url
As a program: hub.py FOLDER [--page N] [--token T]   serves FOLDER/<org>/<name>/<files> and prints its address; other
              programs order faults by POST /.control {"faults": [{"at": "cdn", "cut": 1000}]} and read the requests by GET.
"""
import argparse
import base64
import hashlib
import hmac
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time
import urllib.parse

from faults import Fault, Watch
from repos import Repo
from wire import Answer, Listener, json_answer

SECRET = b"a key that signs addresses"
EXPOSED = "X-Repo-Commit,X-Request-Id,X-Error-Code,X-Error-Message,X-Total-Count,ETag,Link,Accept-Ranges,Content-Range,X-Linked-Size,X-Linked-ETag,X-Xet-Hash"


class Refusal(Exception):
    def __init__(self, status, code, message):
        self.status, self.code, self.message = status, code, message


class Hub:
    def __init__(self, tls=None, cdn_tls="as the hub", folder=None, cdn_address="127.0.0.1"):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="hub-", dir=quick_folder()))
        self.repos, self.tokens = {}, {}  # token -> name of its user
        self.faults, self.watch, self.requests, self.cdn_requests = [], Watch(), [], []
        self.page = 1000            # entries on one page of a tree or a search
        self.sign_seconds = 3600    # how long a signed URL is valid
        self.limit = None           # requests to the hub in a window, then 429
        self.window = 300
        self.lock = threading.Lock()
        self.hub = Listener("hub", lambda request: self.answer("hub", request), tls=tls, log=self.requests)
        self.cdn = Listener("cdn", lambda request: self.answer("cdn", request), address=cdn_address,
                            tls=tls if cdn_tls == "as the hub" else cdn_tls, log=self.cdn_requests)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.hub.close()
        self.cdn.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def url(self):
        return self.hub.url

    def add(self, name, **about):
        repo = self.repos[name] = Repo(name, self.folder, **about)
        return repo

    def forget(self):
        """Removes all faults and recorded requests."""
        self.faults.clear()
        self.requests.clear()
        self.cdn_requests.clear()
        self.watch.after(None, None)

    def body_bytes(self, name=""):
        """Bytes of files sent since forget(), for URLs that contain `part`."""
        return sum(one.content for one in [*self.requests, *self.cdn_requests] if name in one.path)

    # ---- responses

    def answer(self, listener, request):
        if request.path.startswith("/.control"):
            return self.control(request)
        truth = self.hub_answer if listener == "hub" else self.cdn_answer
        fault = next((one for one in list(self.faults) if one.meets(listener, request)), None)
        answer = fault.applied(request, truth) if fault else truth(request)
        if answer.file is not None or listener == "cdn":
            answer.watch = self.watch
        return answer

    def control(self, request):
        if request.method == "POST":
            order = json.loads(request.body)
            if "faults" in order:
                self.faults[:] = [Fault.from_json(one) for one in order["faults"]]
            for name in ("page", "sign_seconds", "limit"):
                if name in order:
                    setattr(self, name, order[name])
        listed = [{"listener": name, "method": one.method, "target": one.target, "status": one.status, "sent": one.sent,
                   "authorization": "authorization" in one.headers, "range": one.headers.get("range")}
                  for name, log in (("hub", self.requests), ("cdn", self.cdn_requests)) for one in log
                  if not one.path.startswith("/.control")]
        return json_answer({"requests": listed})

    def hub_answer(self, request):
        common = {"X-Powered-By": "huggingface-moon", "X-Request-Id": f"Root=1-{len(self.requests):08x}", "Vary": "Origin, Accept",
                  "Access-Control-Expose-Headers": EXPOSED}
        try:
            if self.limit is not None:
                common |= self.count(request)
            answer = self.route(request)
        except Refusal as refusal:
            headers = {"X-Error-Message": refusal.message}
            if refusal.code:
                headers["X-Error-Code"] = refusal.code
            answer = json_answer({"error": refusal.message}, refusal.status, headers)
        answer.headers = {**common, **answer.headers}
        return answer

    def count(self, request):
        left = self.limit - len(self.requests)
        bucket = "resolvers" if "/resolve/" in request.path else "api"
        headers = {"RateLimit": f'"{bucket}";r={max(0, left)};t={self.window}',
                   "RateLimit-Policy": f'"fixed window";"{bucket}";q={self.limit};w={self.window}'}
        if left < 0:
            raise Refusal(429, None, "We had to rate limit your IP. To continue using our service, create a HF account or login")
        return headers

    def user(self, request):
        given = request.headers.get("authorization")
        if given is None:
            return None
        token = given.removeprefix("Bearer ")
        if token not in self.tokens:
            raise Refusal(401, None, "Invalid credentials in Authorization header")
        return token

    def route(self, request):
        token = self.user(request)
        parts = [urllib.parse.unquote(part, errors="surrogateescape") for part in request.raw_path.split("/")[1:]]
        if parts[:2] == ["api", "whoami-v2"]:
            return self.who_am_i(token)
        if parts == ["api", "models"]:
            return self.search(request, token)
        if parts[:2] == ["api", "models"]:
            return self.api(request, token, parts[2:])
        if parts[:3] == ["api", "resolve-cache", "models"]:
            repo = self.readable("/".join(parts[3:5]), token, content=True)
            return self.plain(request, repo, parts[5], "/".join(parts[6:]))
        if len(parts) > 4 and parts[2] in ("resolve", "raw"):
            return self.resolve(request, token, parts)
        raise Refusal(404, None, "Sorry, we can't find the page you are looking for.")

    def readable(self, name, token, content=False):
        """The repository, if this token may see it or its files; the hub hides all others."""
        repo = self.repos.get(name)
        if repo is None or (repo.private and token not in repo.allowed):
            if token is None:
                raise Refusal(401, "RepoNotFound", "Invalid username or password.")
            raise Refusal(404, "RepoNotFound", "Repository not found")
        if repo.disabled:
            raise Refusal(403, None, "Access to this resource is disabled.")
        if content and repo.gated and token not in repo.allowed:
            if token is None:
                raise Refusal(401, "GatedRepo", f"Access to model {name} is restricted. You must have access to it and be "
                                                "authenticated to access it. Please log in.")
            raise Refusal(403, "GatedRepo", f"Access to model {name} is restricted and you are not in the authorized list. "
                                            f"Visit {self.url}/{name} to ask for access.")
        return repo

    def who_am_i(self, token):
        if token is None:
            raise Refusal(401, None, "Invalid username or password.")
        return json_answer({"type": "user", "id": "0" * 24, "name": self.tokens[token], "fullname": self.tokens[token],
                            "email": None, "isPro": False, "orgs": [],
                            "auth": {"type": "access_token", "accessToken": {"displayName": "for tests", "role": "read",
                                                                             "createdAt": "2026-01-02T03:04:05.000Z"}}})

    @staticmethod
    def commit_of(repo, revision):
        sha = repo.resolve(revision)
        if sha is None:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return sha

    def api(self, request, token, parts):
        name, what = "/".join(parts[:2]), parts[2] if len(parts) > 2 else ""
        known = self.repos.get(name)
        if known is not None and known.renamed_to:
            return Answer(307, {"Location": request.target.replace(f"/{name}", f"/{known.renamed_to}", 1)})
        repo = self.readable(name, token, content=what == "auth-check")
        if what == "auth-check":
            return json_answer({})
        if what == "refs":
            return json_answer(repo.refs())
        if what in ("", "revision"):
            info = repo.info(self.commit_of(repo, parts[3] if what else "main"), request.one("blobs") == "true")
            return json_answer(expanded(info, request))
        if what == "tree" and len(parts) > 3:
            sha = self.commit_of(repo, parts[3])
            entries = repo.tree(sha, "/".join(parts[4:]), request.one("recursive") in ("true", "1"), request.one("expand") == "true")
            if entries is None:
                raise Refusal(404, "EntryNotFound", f"{'/'.join(parts[4:])} does not exist on \"{parts[3]}\"")
            return self.paged(request, entries, int(request.one("limit", self.page)))
        if what == "paths-info":
            return self.paths_info(request, repo, self.commit_of(repo, parts[3]))
        raise Refusal(404, None, "Sorry, we can't find the page you are looking for.")

    def paths_info(self, request, repo, sha):
        if request.headers.get("content-type", "").startswith("application/json"):
            order = json.loads(request.body)
        else:
            form = urllib.parse.parse_qs(request.body.decode())
            order = {"paths": form.get("paths", []), "expand": form.get("expand") == ["true"]}
        entries = {one["path"]: one for one in repo.tree(sha, "", True, bool(order.get("expand")))}
        return json_answer([entries[path] for path in order["paths"] if path in entries])

    def paged(self, request, entries, limit):
        begin = int(base64.urlsafe_b64decode(request.one("cursor", "MA==")))
        limit = max(1, min(limit, self.page))
        headers = {}
        if begin + limit < len(entries):
            cursor = base64.urlsafe_b64encode(str(begin + limit).encode()).decode()
            query = [(key, one) for key, many in request.query.items() if key != "cursor" for one in many]
            following = urllib.parse.urlencode([*query, ("cursor", cursor)])
            headers["Link"] = f'<{self.url}{request.raw_path}?{following}>; rel="next"'
        return json_answer(entries[begin:begin + limit], headers=headers)

    def search(self, request, token):
        found = []
        for repo in self.repos.values():
            if repo.renamed_to or (repo.private and token not in repo.allowed):
                continue
            info = repo.info(repo.resolve("main"))
            wanted = request.one("search", "").lower()
            tags = {*info["tags"], info["pipeline_tag"], info["library_name"]}
            if wanted not in repo.id.lower() or not set(request.query.get("filter", [])) <= tags:
                continue
            if request.one("author") not in (None, info["author"]) or request.one("pipeline_tag") not in (None, info["pipeline_tag"]):
                continue
            if request.one("gated") not in (None, str(bool(repo.gated)).lower()):
                continue
            found.append(info)
        order = request.one("sort", "trendingScore")
        found.sort(key=lambda info: info.get(order) or 0, reverse=request.one("direction") != "1")
        return self.paged(request, [expanded(info, request, brief=True) for info in found], int(request.one("limit", self.page)))

    # ---- files

    def resolve(self, request, token, parts):
        name, revision, path = "/".join(parts[:2]), parts[3], "/".join(parts[4:])
        known = self.repos.get(name)
        if known is not None and known.renamed_to:
            return Answer(307, {"Location": request.target.replace(f"/{name}", f"/{known.renamed_to}", 1)})
        repo = self.readable(name, token, content=True)
        sha = self.commit_of(repo, revision)
        file = repo.commits[sha]["files"].get(path)
        if file is None:
            raise Refusal(404, "EntryNotFound", "Entry not found")
        headers = {"X-Repo-Commit": sha, "Accept-Ranges": "bytes", "X-Linked-Size": str(file.size),
                   "X-Linked-ETag": f'"{file.etag}"', "ETag": f'"{file.etag}"'}
        if parts[2] == "raw":
            if not file.lfs:
                return self.plain(request, repo, sha, path)
            return Answer(200, {"X-Repo-Commit": sha, "ETag": f'"{file.oid}"', "Content-Type": "text/plain"}, file.pointer)
        if not file.lfs:
            # The hub's own cache, by commit; the URL contains the original path.
            query = urllib.parse.quote(request.raw_path, safe="") + "=&etag=" + urllib.parse.quote(f'"{file.etag}"', safe="")
            quoted = urllib.parse.quote(path, errors="replace")
            return redirect(307, f"/api/resolve-cache/models/{name}/{sha}/{quoted}?{query}", headers)
        if file.xet:
            headers["X-Xet-Hash"] = file.xet_hash
            headers["Link"] = (f'<{self.url}/api/models/{name}/xet-read-token/{sha}>; rel="xet-auth", '
                               f'<{self.cdn.url}/v1/reconstructions/{file.xet_hash}>; rel="xet-reconstruction-info"')
        return redirect(302, self.signed(file), headers)

    def signed(self, file):
        path = f"/repos/{file.sha256[:2]}/{file.sha256}"
        expires = int(time.time() + self.sign_seconds)
        name = urllib.parse.quote(f'attachment; filename="{file.path.rsplit("/", 1)[-1]}";', safe="", errors="replace")
        return (f"{self.cdn.url}{path}?response-content-disposition={name}&Expires={expires}"
                f"&Signature={signature(path, expires)}&Key-Pair-Id=K24J24Z295AEI9")

    def plain(self, request, repo, revision, path):
        sha = self.commit_of(repo, revision)
        file = repo.commits[sha]["files"].get(path)
        if file is None:
            raise Refusal(404, "EntryNotFound", "Entry not found")
        kind = "application/json" if path.endswith(".json") else "text/plain; charset=utf-8"
        return ranged(request, file, {"X-Repo-Commit": sha, "ETag": f'"{file.etag}"', "Accept-Ranges": "bytes", "Content-Type": kind,
                                      "Content-Disposition": "inline"})

    def cdn_answer(self, request):
        """Accepts signed URLs only, and no second credential besides the signature, like S3 and CloudFront."""
        if "authorization" in request.headers:
            return denied(400, "InvalidArgument", "Only one auth mechanism allowed")
        expires = int(request.one("Expires", "0"))
        if request.one("Signature") != signature(request.path, expires) or expires < time.time():
            return denied(403, "AccessDenied", "Access denied")
        wanted = request.path.rsplit("/", 1)[-1]
        for repo in list(self.repos.values()):
            for commit in list(repo.commits.values()):
                for file in commit["files"].values():
                    if file.sha256 == wanted:
                        return ranged(request, file, {"ETag": f'"{file.sha1[:32]}"', "Accept-Ranges": "bytes", "X-Cache": "Hit from cloudfront",
                                                      "Content-Type": "binary/octet-stream"})
        return denied(404, "NoSuchKey", "The specified key does not exist.")


def quick_folder():
    """A folder in memory if there is one with enough space, because tests write and sync gigabytes."""
    memory = "/dev/shm"
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 << 30:
        return memory
    return None


def signature(path, expires):
    return hmac.new(SECRET, f"{path}?{expires}".encode(), hashlib.sha256).hexdigest()


def redirect(status, location, headers):
    text = f"{'Found' if status == 302 else 'Temporary Redirect'}. Redirecting to {location}".encode()
    return Answer(status, {"Content-Type": "text/plain; charset=utf-8", "Location": location, **headers}, text)


def denied(status, code, message):
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return Answer(status, {"Content-Type": "application/xml"}, body.encode())


def expanded(info, request, brief=False):
    """Selects the requested fields."""
    wanted = request.query.get("expand", []) + request.query.get("expand[]", [])
    if wanted:
        return {key: info[key] for key in ("_id", "id", *wanted) if key in info}
    if brief and request.one("full") is None:
        kept = ("_id", "id", "modelId", "private", "downloads", "likes", "tags", "pipeline_tag", "library_name", "createdAt", "trendingScore")
        return {key: info[key] for key in kept if key in info}
    return info


def ranged(request, file, headers):
    asked = request.headers.get("range", "")
    if asked.startswith("bytes=") and "," not in asked:
        first, _, last = asked[6:].partition("-")
        begin = int(first) if first else max(0, file.size - int(last))
        end = min(int(last) + 1, file.size) if first and last else file.size
        if begin >= file.size or begin >= end:
            return Answer(416, {**headers, "Content-Range": f"bytes */{file.size}", "Content-Type": "text/plain"}, b"")
        headers = {**headers, "Content-Range": f"bytes {begin}-{end - 1}/{file.size}"}
        return Answer(206, headers, file=file.location, begin=begin, length=end - begin)
    return Answer(200, headers, file=file.location, length=file.size)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=pathlib.Path)
    options.add_argument("--page", type=int, default=1000, help="entries on one page")
    options.add_argument("--token", action="append", default=[], help="a token that is good")
    arguments = options.parse_args()
    with Hub() as hub:
        hub.page = arguments.page
        hub.tokens = {token: "tester" for token in arguments.token}
        for folder in sorted(arguments.folder.glob("*/*")):
            name = folder.relative_to(arguments.folder).as_posix()
            repo = hub.add(name, private="private" in name, gated="manual" if "gated" in name else False)
            repo.commit({file.relative_to(folder).as_posix(): file for file in sorted(folder.rglob("*")) if file.is_file()})
        print(hub.url, flush=True)
        sys.stdin.read()  # until the parent process ends


if __name__ == "__main__":
    main()
