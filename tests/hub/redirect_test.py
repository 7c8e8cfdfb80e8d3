"""D7, D16: redirects and TLS: redirect_test.py INFERNO"""
import pathlib
import shutil
import tempfile
import warnings

import certificates
import scene
from faults import Fault
from hub import Hub
from scene import TOKEN, Scene, model_files
from wire import Answer, Listener

warnings.filterwarnings("ignore", category=DeprecationWarning)  # ssl warns about old versions of TLS
WEIGHTS = "model.safetensors"


class Foreign:
    """An attacker's server that tries to obtain a token."""

    def __init__(self, address="127.0.0.1", location=None, tls=None):
        self.seen = []
        self.location = location
        self.listener = Listener("foreign", self.answer, address=address, tls=tls, log=self.seen)

    def answer(self, _):
        return Answer(302, {"Location": self.location}) if self.location else Answer(200, {}, b"not what you asked for")

    def tokens(self):
        # Anywhere: in a header or in the URL.
        return [one for one in self.seen if TOKEN in str(one.headers) + one.target]


class Redirected(Scene):
    """D7"""
    MEBIBYTES = 1

    def foreign(self, **options):
        server = Foreign(**options)
        self.addCleanup(server.listener.close)
        return server

    def refused(self, *faults, code=5, hops=10, **more):
        home = pathlib.Path(tempfile.mkdtemp(dir=self.home))
        self.hub.forget()
        self.hub.faults[:] = faults
        result = self.download(home=home, code=code, HF_TOKEN=TOKEN, **more)
        self.assertLess(result.seconds, 2, "says so at once")
        met = sum(fault.met for fault in faults)
        self.assertGreater(met, 0, "the fault was never met")
        self.assertLessEqual(met, hops + 1)
        if self.folder(home=home).exists():
            self.assert_not_whole(home=home)
        self.assertFalse([one for one in self.hub.cdn_requests if "authorization" in one.headers])
        return result

    def test_in_a_circle(self):
        for at, path in (("hub", "/tree/"), ("hub", f"/{WEIGHTS}"), ("cdn", "/repos/")):
            here = self.hub.hub.url if at == "hub" else self.hub.cdn.url
            with self.subTest("to itself", at=at, path=path):
                self.refused(Fault(at=at, path=path, location=f"{here}{path}loop/tree/x/{WEIGHTS}/repos/"))
            with self.subTest("there and back", at=at, path=path):
                self.refused(Fault(at=at, path=path, location=f"{here}/elsewhere"), Fault(at=at, path="/elsewhere", location=f"{here}{path}"))

    def test_too_often(self):
        hops = [Fault(path="/repos/", location=f"{self.hub.cdn.url}/hop/1")]
        hops += [Fault(path=f"/hop/{number}", location=f"{self.hub.cdn.url}/hop/{number + 1}") for number in range(21, 0, -1)]
        self.refused(*hops)

    def test_a_few_times_works(self):
        """Relative, to the same host without its scheme, and on to the content network."""
        repo_path = f"/{self.MODEL}/resolve/"
        self.hub.faults[:] = [Fault(at="hub", path=repo_path, location="/one", times=1), Fault(at="hub", path="/one", location="//" + self.hub.url.split("//")[1] + "/two", times=1),
                              Fault(at="hub", path="/two", location=f"{self.hub.url}/{self.MODEL}/resolve/main/{WEIGHTS}", times=1)]
        self.download("--include", WEIGHTS, HF_TOKEN=TOKEN)
        self.assert_whole(only=[WEIGHTS])
        self.assertEqual(self.hub.faults[2].met, 1)

    def test_to_a_renamed_model_keeps_the_token(self):
        self.hub.add("org/former", renamed_to=self.MODEL)
        self.repo.private = True
        self.repo.allowed.add(TOKEN)
        self.addCleanup(setattr, self.repo, "private", False)
        self.download(model="org/former", HF_TOKEN=TOKEN)

    def test_to_other_hosts_and_ports_never_with_the_token(self):
        for name, foreign in (("port", self.foreign()), ("host", self.foreign(address="127.0.0.2"))):
            for path in ("/api/models/", "/tree/", "/resolve/", "/api/resolve-cache/"):
                with self.subTest(name, path=path):
                    self.hub.forget()
                    home = self.home / f"{name}{path.replace('/', '-')}"
                    home.mkdir()
                    self.hub.faults.append(Fault(at="hub", path=path, location=f"{foreign.listener.url}/steal"))
                    self.download(home=home, code=(0, 4, 5), HF_TOKEN=TOKEN, INFERNO_HUB_TIME_SCALE="0.01")
                    self.assertGreater(self.hub.faults[0].met, 0)
            self.assertGreater(len(foreign.seen), 0)
            self.assertEqual(foreign.tokens(), [])

    def test_away_and_back_again_never_with_the_token(self):
        """A foreign host redirects back to the hub: the attacker chose this request."""
        foreign = self.foreign(location=f"{self.hub.url}/api/whoami-v2")
        self.hub.faults.append(Fault(at="hub", path="/tree/", location=f"{foreign.listener.url}/x"))
        self.download(code=(0, 4, 5), HF_TOKEN=TOKEN, INFERNO_HUB_TIME_SCALE="0.01")
        self.assertEqual(foreign.tokens(), [])

    def test_to_a_next_page_on_another_host(self):
        foreign = self.foreign()

        def elsewhere(answer):
            answer.headers["Link"] = f'<{foreign.listener.url}/api/models/org/model/tree/main?cursor=x>; rel="next"'

        self.hub.faults.append(Fault(at="hub", path="/tree/", edit=elsewhere))
        self.download(code=(0, 4, 5), HF_TOKEN=TOKEN, INFERNO_HUB_TIME_SCALE="0.01")
        self.assertEqual(foreign.tokens(), [])

    def test_to_other_schemes(self):
        secret = self.home / "secret"
        secret.write_text("of this machine")
        for location in (f"file://{secret}", "ftp://127.0.0.1/x", "gopher://127.0.0.1:1/x", "dict://127.0.0.1:1/x", "data:,x", "http://", "http://[", ""):
            with self.subTest(location):
                result = self.refused(Fault(path="/repos/", location=location), code=(4, 5), INFERNO_HUB_TIME_SCALE="0.001")
                self.assertNotIn("of this machine", result.out + result.err)


class Secured(Scene):
    """D16, and https to http of D7"""
    MEBIBYTES = 1

    @classmethod
    def setUpClass(cls):
        cls.keys = tempfile.mkdtemp(prefix="hub-keys-")
        cls.addClassCleanup(shutil.rmtree, cls.keys, ignore_errors=True)
        cls.certificates = certificates.Certificates(cls.keys)
        cls.files = model_files(cls.MEBIBYTES)
        cls.hub_options = {"tls": cls.certificates.server("good")}
        super().setUpClass()

    def served(self, **options):
        hub = Hub(**options)
        self.addCleanup(hub.close)
        hub.tokens[TOKEN] = "tester"
        hub.add(self.MODEL).commit(self.files)
        return hub

    def trusting(self, variable="SSL_CERT_FILE"):
        return {variable: self.certificates.authority, "HF_TOKEN": TOKEN}

    def test_a_server_with_a_valid_certificate_is_trusted(self):
        for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            home = self.home / variable
            home.mkdir()
            self.download(home=home, **self.trusting(variable))
            self.assert_whole(home=home)

    def test_invalid_certificates_are_refused(self):
        make = self.certificates
        expired = ("20200101000000Z", "20210101000000Z")
        for name, context, word in (("expired", make.server("expired", dates=expired), "expired"),
                                    ("of another host", make.server("other", "DNS:example.org"), "host|name|match"),
                                    ("signed by itself", make.self_signed(), "self.signed|certificate"),
                                    ("TLS 1.1", certificates.old(make.server("old")), "protocol|version|TLS")):
            with self.subTest(name):
                hub = self.served(tls=context)
                result = self.download(code=5, HF_ENDPOINT=hub.url, **self.trusting())
                self.assertRegex(result.err, f"(?i){word}")
                self.assertLess(result.seconds, 2)
                self.assertEqual(hub.requests, [], "the hub received no request")

    def test_an_unknown_authority_is_refused(self):
        result = self.download(code=5, HF_TOKEN=TOKEN)
        self.assertRegex(result.err, "(?i)certificate")

    def test_the_content_network_is_checked_too(self):
        hub = self.served(tls=self.certificates.server("fine"), cdn_tls=self.certificates.self_signed("cdn"))
        self.download(code=5, HF_ENDPOINT=hub.url, **self.trusting())
        self.assertEqual(hub.cdn_requests, [])

    def test_nothing_leads_from_https_to_http(self):
        hub = self.served(tls=self.certificates.server("strict"), cdn_tls=None)
        result = self.download(code=5, HF_ENDPOINT=hub.url, **self.trusting())
        self.assertRegex(result.err, "http")
        self.assertEqual(hub.cdn_requests, [], "nothing was asked in the clear")
        plain = Foreign()
        self.addCleanup(plain.listener.close)
        for path in ("/api/models/", "/tree/"):
            hub.faults[:] = [Fault(at="hub", path=path, location=f"{plain.listener.url}/x")]
            self.download(code=5, HF_ENDPOINT=hub.url, **self.trusting())
        self.assertEqual(plain.seen, [])

    def test_http_is_for_this_machine_only(self):
        result = self.download(code=(2, 5), HF_ENDPOINT="http://192.0.2.1", HF_TOKEN=TOKEN)
        self.assertLess(result.seconds, 2, "it never tried")
        self.assertRegex(result.err, "https")


if __name__ == "__main__":
    scene.main()
