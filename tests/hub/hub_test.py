"""The test hub itself: its responses, and that its faults work: hub_test.py"""
import hashlib
import http.client
import json
import time
import unittest
import urllib.parse

from faults import Fault
from hub import Hub

WEIGHTS = bytes(range(256)) * 4096


class TheHub(unittest.TestCase):
    def setUp(self):
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.hub.tokens["good"] = "tester"
        self.repo = self.hub.add("org/model", downloads=5)
        self.sha = self.repo.commit({"config.json": b"{}", "model.safetensors": WEIGHTS, "original/x.bin": b"x"})

    def get(self, url, method="GET", body=None, **headers):
        parts = urllib.parse.urlsplit(url if "://" in url else self.hub.url + url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
        connection.request(method, parts.path + ("?" + parts.query if parts.query else ""), body,
                           {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        try:
            answer.data = answer.read()
        finally:
            connection.close()
        return answer

    def location(self, path="model.safetensors"):
        return self.get(f"/org/model/resolve/main/{path}", "HEAD").getheader("Location")

    def test_names_the_commit_the_hash_and_the_size_of_a_file_and_signs_its_url(self):
        head = self.get("/org/model/resolve/main/model.safetensors", "HEAD")
        self.assertEqual((head.status, head.getheader("X-Repo-Commit")), (302, self.sha))
        self.assertEqual(head.getheader("X-Linked-ETag"), f'"{hashlib.sha256(WEIGHTS).hexdigest()}"')
        self.assertEqual(head.getheader("X-Linked-Size"), str(len(WEIGHTS)))
        self.assertTrue(head.getheader("Location").startswith(self.hub.cdn.url))
        self.assertEqual(self.get(head.getheader("Location")).data, WEIGHTS)

    def test_serves_small_files_itself_under_a_relative_url(self):
        head = self.get("/org/model/resolve/main/config.json", "HEAD")
        self.assertEqual(head.status, 307)
        self.assertTrue(head.getheader("Location").startswith(f"/api/resolve-cache/models/org/model/{self.sha}/config.json?"))
        self.assertEqual(head.getheader("X-Linked-ETag"), '"9e26dfeeb6e641a33dae4961196235bdb965b21b"')  # git's for {}
        self.assertEqual(self.get(head.getheader("Location")).data, b"{}")

    def test_answers_ranges(self):
        url = self.location()
        part = self.get(url, Range="bytes=10-19")
        self.assertEqual((part.status, part.data), (206, WEIGHTS[10:20]))
        self.assertEqual(part.getheader("Content-Range"), f"bytes 10-19/{len(WEIGHTS)}")
        self.assertEqual(self.get(url, Range=f"bytes={len(WEIGHTS) - 3}-").data, WEIGHTS[-3:])
        self.assertEqual(self.get(url, Range=f"bytes={len(WEIGHTS)}-").status, 416)

    def test_accepts_a_signature_alone_and_only_until_it_expires(self):
        self.assertEqual(self.get(self.location(), Authorization="Bearer good").status, 400)
        self.assertEqual(self.get(self.location().replace("Signature=", "Signature=0")).status, 403)
        self.hub.sign_seconds = -1
        self.assertEqual(self.get(self.location()).status, 403)

    def test_pages_trees_and_searches(self):
        self.hub.page = 2
        seen, url = [], "/api/models/org/model/tree/main?recursive=true"
        while url:
            answer = self.get(url)
            seen += [one["path"] for one in json.loads(answer.data)]
            link = answer.getheader("Link")
            url = link and link[1:link.index(">")]
        self.assertEqual(sorted(seen), ["config.json", "model.safetensors", "original", "original/x.bin"])
        found = json.loads(self.get("/api/models?search=MODEL&expand=downloads&expand=siblings").data)
        self.assertEqual([(one["id"], one["downloads"], len(one["siblings"])) for one in found], [("org/model", 5, 3)])

    def test_refuses_as_the_hub_does(self):
        private = self.hub.add("org/private", private=True)
        gated = self.hub.add("org/gated", gated="manual")
        for repo in (private, gated):
            repo.commit({"config.json": b"{}"})
        for path, token, status, code in (("/api/models/org/none", None, 401, "RepoNotFound"),
                                          ("/api/models/org/none", "good", 404, "RepoNotFound"),
                                          ("/api/models/org/private", "good", 404, "RepoNotFound"),
                                          ("/api/models/org/gated/auth-check", None, 401, "GatedRepo"),
                                          ("/org/gated/resolve/main/config.json", "good", 403, "GatedRepo"),
                                          ("/api/models/org/model/revision/none", None, 404, "RevisionNotFound"),
                                          ("/org/model/resolve/main/none", None, 404, "EntryNotFound"),
                                          ("/api/models/org/model", "bad", 401, None)):
            answer = self.get(path, **({"Authorization": f"Bearer {token}"} if token else {}))
            self.assertEqual((answer.status, answer.getheader("X-Error-Code")), (status, code), path)
            self.assertEqual(json.loads(answer.data)["error"], answer.getheader("X-Error-Message"))
        private.allowed.add("good")
        self.assertEqual(self.get("/api/models/org/private", Authorization="Bearer good").status, 200)

    def test_limits_the_request_rate(self):
        self.hub.limit = 2
        codes = [self.get("/api/models/org/model").status for _ in range(3)]
        self.assertEqual(codes, [200, 200, 429])

    def test_faults_apply_to_matching_requests_only(self):
        url = self.location()
        self.hub.faults[:] = [Fault(cut=1000, skip=1, times=1), Fault(at="hub", path="/tree/", status=503, headers={"Retry-After": "2"})]
        self.assertEqual(len(self.get(url).data), len(WEIGHTS))
        with self.assertRaises(http.client.IncompleteRead) as cut:
            self.get(url)
        self.assertEqual(len(cut.exception.partial), 1000)
        self.assertEqual(len(self.get(url).data), len(WEIGHTS))
        busy = self.get("/api/models/org/model/tree/main")
        self.assertEqual((busy.status, busy.getheader("Retry-After")), (503, "2"))
        self.assertEqual(self.get("/api/models/org/model").status, 200)

    def test_faults_of_bodies(self):
        url = self.location()
        self.hub.faults[:] = [Fault(flip=5, times=1), Fault(ignore_range=True, times=1), Fault(stall=(100, 0.3), times=1),
                              Fault(rate=4e6, times=1)]
        wrong = self.get(url).data
        self.assertEqual([at for at in range(len(WEIGHTS)) if wrong[at] != WEIGHTS[at]], [5])
        self.assertEqual(self.get(url, Range="bytes=7-").status, 200)
        for least in (0.3, len(WEIGHTS) / 4e6 - 0.05):
            begin = time.monotonic()
            self.assertEqual(self.get(url).data, WEIGHTS)
            self.assertGreater(time.monotonic() - begin, least)

    def test_faults_can_be_injected_by_other_programs(self):
        order = json.dumps({"faults": [{"at": "hub", "status": 500}], "page": 1}).encode()
        self.assertEqual(self.get("/.control", "POST", order).status, 200)
        self.assertEqual(self.get("/api/models/org/model").status, 500)
        seen = json.loads(self.get("/.control").data)["requests"]
        self.assertEqual([(one["target"], one["status"]) for one in seen], [("/api/models/org/model", 500)])

    def test_a_watch_calls_at_its_threshold(self):
        called = []
        self.hub.watch.after(300_000, lambda: called.append(self.hub.watch.total))
        self.get(self.location())
        self.assertEqual(called, [300_000])


if __name__ == "__main__":
    unittest.main()
