"""Access to private and gated models, error messages, and hubs that send too much: access_test.py INFERNO"""
import json
import select
import shutil
import socket
import tempfile
import threading

import certificates
import scene
from faults import Fault
from scene import TOKEN, Scene, model_files

OTHER = "hf_aTokenThatIsNoGood000000000"


class Access(Scene):
    MEBIBYTES = 1

    @classmethod
    def fill(cls):
        super().fill()
        files = model_files(1)
        for name, kind in (("org/private", {"private": True}), ("org/gated", {"gated": "manual"}), ("org/disabled", {"disabled": True}),
                           ("org/xet", {"xet": True})):
            cls.hub.add(name, **kind).commit(files)
        cls.hub.repos["org/model"].tags["v1.0"] = cls.repo.resolve("main")

    def refused(self, name, *words, code=5, **more):
        result = self.download(model=name, code=code, **more)
        for word in words:
            self.assertIn(word, result.err)
        self.assertNotIn(OTHER, result.out + result.err)
        return result

    def test_says_what_to_do_about_each_refusal(self):
        self.refused("org/none", "org/none", "HF_TOKEN", code=(3, 5))
        self.refused("org/private", "HF_TOKEN", code=(3, 5))
        self.refused("org/gated", f"{self.hub.url}/org/gated", "HF_TOKEN")
        self.refused("org/gated", f"{self.hub.url}/org/gated", HF_TOKEN=TOKEN)
        self.refused("org/disabled", "disabled")
        self.refused("org/model@none", "none", "v1.0", "main", code=3)
        self.refused("org/model", "HF_TOKEN", "invalid token", HF_TOKEN=OTHER)
        self.refused("org/none", "Root=1-", code=(3, 5))

    def test_a_token_gives_access(self):
        for name in ("org/private", "org/gated"):
            repo = self.hub.repos[name]
            repo.allowed.add(TOKEN)
            self.addCleanup(repo.allowed.clear)
            self.download(model=name, HF_TOKEN=f"  {TOKEN}\n")
            self.assert_whole(repo)
        self.assertFalse([one for one in self.hub.cdn_requests if "authorization" in one.headers])

    def test_a_token_is_read_from_its_file(self):
        self.hub.repos["org/private"].allowed.add(TOKEN)
        self.addCleanup(self.hub.repos["org/private"].allowed.clear)
        (self.home / "hf").mkdir()
        (self.home / "hf/token").write_text(TOKEN + "\n")
        self.download(model="org/private")
        (self.home / "bad").write_text(OTHER)
        self.refused("org/private", str(self.home / "bad"), HF_TOKEN_PATH=str(self.home / "bad"))
        self.download(model="org/private", HF_TOKEN_PATH=str(self.home / "bad"), HF_TOKEN=TOKEN)

    def test_xet_files_are_fetched_over_http(self):
        self.download(model="org/xet")
        self.assert_whole(self.hub.repos["org/xet"])

    def test_offline_sends_no_request(self):
        for variable, value in (("HF_HUB_OFFLINE", "1"), ("HF_HUB_OFFLINE", "yes"), ("TRANSFORMERS_OFFLINE", "TRUE")):
            self.refused("org/model", variable, **{variable: value})
        self.assertEqual(self.hub.requests, [])
        self.download()
        self.hub.forget()
        self.assert_loads()
        self.assertEqual(self.hub.requests, [])

    def test_a_complete_model_works_while_the_hub_is_down(self):
        self.download()
        self.hub.faults.append(Fault(at="hub", status=503))
        self.run_it("generate", "Hi", "-m", self.MODEL, "-n", "1", "--device", "cpu", INFERNO_HUB_TIME_SCALE="0.001")

    def test_a_login_portal_is_not_mistaken_for_the_hub(self):
        page = b"<html><title>Welcome to the hotel</title>" + b"x" * 5000
        self.hub.faults.append(Fault(at="hub", status=200, body=page, headers={"Content-Type": "text/html"}))
        result = self.refused("org/model", self.hub.url.split("//")[1])
        self.assertLess(len(result.err), 2000)

    def test_an_unreachable_hub_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.refused("org/model", "127.0.0.1", "HF_ENDPOINT", HF_ENDPOINT=f"http://127.0.0.1:{port}", INFERNO_HUB_TIME_SCALE="0.001")


class TooMuch(Scene):
    """Responses of a size, depth or number that no honest hub sends. Rule U bounds the memory, these tests the time."""
    MEBIBYTES = 1

    def refused(self, *faults, **more):
        self.hub.faults[:] = faults
        result = self.download(code=(4, 5), seconds=20, INFERNO_HUB_TIME_SCALE="0.001", **more)
        self.assertLess(len(result.err), 4000)
        return result

    def answers(self, body, path="/tree/"):
        return Fault(at="hub", path=path, status=200, body=body, headers={"Content-Type": "application/json"})

    def test_is_refused(self):
        huge = b"[" + b" " * (300 << 20)
        for path in ("/tree/", "/api/models/"):
            for name, body in (("huge", huge), ("deep", b"[" * 200_000), ("deep objects", b'{"a":' * 200_000), ("empty", b""), ("null", b"null"),
                               ("a number", b"7"), ("not UTF-8", b'[{"path": "\xff\xfe"}]'), ("many", b"[" + b"{}," * 3_000_000 + b"{}]")):
                with self.subTest(name, path=path):
                    self.hub.forget()
                    self.refused(self.answers(body, path))

    def test_pages_without_end_are_an_error(self):
        def again(answer):
            answer.headers["Link"] = f'<{self.hub.url}/api/models/org/model/tree/main?recursive=true&cursor=MA==>; rel="next"'

        fault = Fault(at="hub", path="/tree/", edit=again)
        self.refused(fault)
        self.assertLess(fault.met, 2000)

    def test_headers_without_end_are_an_error(self):
        self.refused(Fault(at="hub", path="/tree/", headers={f"X-{number}": "y" * 4000 for number in range(500)}))

    def test_errors_are_shown_without_control_characters(self):
        words = "\x1b[2Jgo away\x07\x1b]0;x\x07\u202e" + "a" * 100_000
        said = Fault(at="hub", status=403, body=json.dumps({"error": words}).encode(),
                     headers={"X-Error-Message": words[:200].replace("\u202e", ""), "X-Error-Code": "\x1b[31m", "Content-Type": "application/json"})
        result = self.refused(said)  # rule U checks the rest
        self.assertIn("go away", result.err)


class Proxy:
    """Forwards connections to the target of CONNECT."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.asked = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            piece = client.recv(4096)
            if not piece:
                return
            head += piece
        self.asked.append(head.decode())
        host, port = head.split()[1].decode().rsplit(":", 1)
        with client, socket.create_connection((host, int(port))) as server:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for one in ready:
                    piece = one.recv(65536)
                    if not piece:
                        return
                    (server if one is client else client).sendall(piece)


class WithAProxy(Scene):
    MEBIBYTES = 1

    @classmethod
    def setUpClass(cls):
        cls.keys = tempfile.mkdtemp(prefix="hub-keys-")
        cls.addClassCleanup(shutil.rmtree, cls.keys, ignore_errors=True)
        cls.certificates = certificates.Certificates(cls.keys)
        cls.hub_options = {"tls": cls.certificates.server("good")}
        super().setUpClass()

    def test_everything_goes_through_it_and_the_token_only_inside_tls(self):
        proxy = Proxy()
        self.addCleanup(proxy.socket.close)
        self.download(SSL_CERT_FILE=self.certificates.authority, https_proxy=proxy.url, HF_TOKEN=TOKEN)
        self.assert_whole()
        self.assertEqual({head.split()[1] for head in proxy.asked}, {self.hub.hub.url.split("//")[1], self.hub.cdn.url.split("//")[1]})
        self.assertNotIn(TOKEN, "".join(proxy.asked))

    def test_no_proxy_is_respected(self):
        proxy = Proxy()
        self.addCleanup(proxy.socket.close)
        self.download(SSL_CERT_FILE=self.certificates.authority, https_proxy=proxy.url, no_proxy="127.0.0.1")
        self.assertEqual(proxy.asked, [])


if __name__ == "__main__":
    scene.main()
