"""The container image, built by packaging/image and run by podman, and deploy/compose.yaml, all without a network: image_test.py INFERNO

Needs root, buildah, podman, podman-compose and crun. Runs again in namespaces of its own, because crun wants cgroups v2 alone.
"""
import asyncio
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

import load
import packages
import root
from packages import ROOT

MAX_SIZE, MAX_COMPRESSED = 60_000_000, 30_000_000
TO_AN_ANSWER = 2  # seconds, from `podman run` on


def alone():
    if os.environ.get("INFERNO_IMAGE_ALONE"):
        return
    os.environ["INFERNO_IMAGE_ALONE"] = "1"
    script = ('mount --make-rprivate / && umount -R /sys/fs/cgroup 2>/dev/null; mount -t cgroup2 none /sys/fs/cgroup && mount -t tmpfs none /run && '
              'ip link set lo up && exec "$@"')
    os.execvp("unshare", ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh", sys.executable, "-B", *sys.argv])


class ImageTest(unittest.TestCase):
    """An image of the program, inferno:test, in storage of its own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="inferno-image-"))
        cls.store = ["--root", f"{cls.folder}/store", "--runroot", "/run/store", "--storage-driver", "vfs"]
        (cls.folder / "containers.conf").write_text('[containers]\ndefault_ulimits = []\ncgroups = "disabled"\n[engine]\ncgroup_manager="cgroupfs"\n'
                                                    f'events_logger="none"\n[network]\nnetwork_config_dir="{cls.folder}/networks"\n')
        os.environ.update(CONTAINERS_CONF=f"{cls.folder}/containers.conf", BUILDAH=" ".join(cls.store), SOURCE_DATE_EPOCH="1700000000")
        cls.build("inferno:test")

    @classmethod
    def tearDownClass(cls):
        cls.podman("rm", "-fa", check=False)
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def build(cls, tag, check=True, **environment):
        """Without a network."""
        done = subprocess.run(["unshare", "--net", ROOT / "packaging/image", PROGRAM, tag], capture_output=True, text=True, env={**os.environ, **environment})
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    @classmethod
    def podman(cls, *arguments, check=True):
        done = subprocess.run(["podman", *cls.store, "--runtime", "crun", *arguments], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 or not check, f"{arguments}: {done.stdout}{done.stderr}"
        return done


class Image(ImageTest):
    def inspect(self, tag="inferno:test"):
        return json.loads(self.podman("image", "inspect", tag).stdout)[0]

    def test_size_user_and_contents(self):
        image = self.inspect()
        self.podman("save", "-o", f"{self.folder}/image.tar", "inferno:test")
        compressed = len(subprocess.run(["gzip", "-6c", f"{self.folder}/image.tar"], check=True, capture_output=True).stdout)
        print(f"FIGURES image: {image['Size'] / 1e6:.1f} MB, compressed {compressed / 1e6:.1f} MB", flush=True)
        self.assertLess(image["Size"], MAX_SIZE)
        self.assertLess(compressed, MAX_COMPRESSED)
        self.assertEqual(image["Config"]["User"], "10001:10001")
        self.assertEqual(image["HealthCheck" if "HealthCheck" in image else "Healthcheck"]["Test"][:3], ["CMD", "/usr/bin/inferno", "health"])
        files = self.files(f"{self.folder}/image.tar")
        self.assertEqual([name for name in files if name.startswith(("bin/", "sbin/", "usr/bin/", "usr/sbin/"))], ["usr/bin/inferno"])
        self.assertLessEqual({"etc/ssl/certs/ca-certificates.crt", "etc/services", "lib64/ld-linux-x86-64.so.2", "usr/share/doc/libc6/copyright"}, set(files))

    def files(self, archive):
        """The names in all layers, without folders."""
        with tarfile.open(archive) as image:
            layers = [tarfile.open(fileobj=image.extractfile(name)) for name in json.load(image.extractfile("manifest.json"))[0]["Layers"]]
            return [member.name for layer in layers for member in layer if not member.isdir()]

    def test_a_changed_file_of_a_package_is_refused(self):
        changed = self.folder / "protocols"
        changed.write_text("tcp 7\n")
        subprocess.run(["mount", "--bind", changed, "/etc/protocols"], check=True)
        try:
            done = self.build("inferno:changed", check=False)
        finally:
            subprocess.run(["umount", "/etc/protocols"], check=True)
        self.assertEqual((done.returncode, done.stderr), (1, "error: /etc/protocols is not what its package has: apt install --reinstall netbase\n"))

    def test_it_answers_offline_read_only_and_without_capabilities(self):
        limits = ["--network", "none", "--read-only", "--tmpfs", "/tmp:mode=1777", "--cap-drop", "ALL"]
        begin = time.monotonic()
        answer = self.podman("run", "--rm", *limits, "inferno:test", "generate", "--chat", "What is Inferno?", "--temperature", "0")
        answered = time.monotonic() - begin
        self.assertIn("Inferno is a program", answer.stdout)
        begin = time.monotonic()
        self.podman("run", "-d", "--name", "one", *limits, "--security-opt", "no-new-privileges", "-e", "INFERNO_API_KEY=key", "inferno:test")
        healthy = self.wait_healthy("one", begin)
        print(f"FIGURES image: answer {answered:.1f} s after podman run, a server healthy after {healthy:.1f} s", flush=True)
        self.assertLess(max(answered, healthy), root.allowed(TO_AN_ANSWER))
        status = self.podman("exec", "one", "/usr/bin/inferno", "health", "http://127.0.0.1:8000/readyz")
        self.assertEqual(status.stdout.strip(), "ok")
        self.podman("stop", "-t", "20", "one")
        self.assertEqual(json.loads(self.podman("inspect", "one").stdout)[0]["State"]["ExitCode"], 0)

    def wait_healthy(self, name, begin):
        while self.podman("exec", name, "/usr/bin/inferno", "health", check=False).returncode != 0:
            self.assertLess(time.monotonic() - begin, 30, self.podman("logs", name, check=False))
            time.sleep(0.05)
        return time.monotonic() - begin

    def test_the_documented_command_serves_a_model_of_the_users_cache(self):
        """With the built-in model under the name that docs/install.md has, in a cache as Hugging Face's tools make it."""
        [command] = (text for text in packages.blocks() if text.startswith("podman run "))
        name = command.split()[-1]
        model = self.folder / "home/.cache/huggingface/hub" / f"models--{name.replace('/', '--')}"
        shutil.copytree(ROOT / "models/builtin", model / "snapshots/0123456789012345678901234567890123456789")
        (model / "refs").mkdir()
        (model / "refs/main").write_text("0123456789012345678901234567890123456789")
        self.podman("tag", "inferno:test", "inferno:latest")
        # No network is lent to the container, so the port is asked for inside.
        command = command.replace("-p 127.0.0.1:8000:8000", "--name documented --network none").rstrip()
        script = f"podman() {{ command podman {' '.join(self.store)} --runtime crun \"$@\"; }}\n{command}"
        with subprocess.Popen(["bash", "-euc", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "HOME": f"{self.folder}/home"}) as server:
            try:
                self.wait_healthy("documented", time.monotonic())
                logs = self.podman("logs", "documented")
                self.assertIn(name, logs.stdout + logs.stderr)
            finally:
                self.podman("stop", "-t", "20", "documented", check=False)
                told = server.communicate(timeout=60)[0]
        self.assertEqual(server.returncode, 0, told)

    def test_the_documented_commands_install_from_source(self):
        """With this build instead of a new one, and without the packages that packages.py makes by the same command."""
        build = pathlib.Path(PROGRAM).parent
        [block] = (text for text in packages.blocks() if text.startswith("./dev build portable "))
        script = block.replace("./dev build portable", "true").replace("build/portable", str(build))
        stubs = f"""sudo() {{ DESTDIR={self.folder}/installed "$@"; }}; cpack() {{ test -f CPackConfig.cmake; }}\n"""
        done = subprocess.run(["bash", "-euc", stubs + script], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        shown = subprocess.run([self.folder / "installed/usr/bin/inferno", "--version"], check=True, capture_output=True, text=True).stdout
        self.assertRegex(shown, r"^inferno \d")
        for name in ("lib/systemd/system/inferno@.service", "share/man/man1/inferno-serve.1.gz", "share/doc/inferno/sbom.cdx.json"):
            self.assertTrue((self.folder / "installed/usr" / name).exists(), name)

    def test_a_public_address_needs_a_key(self):
        done = self.podman("run", "--rm", "--network", "none", "inferno:test", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("without a key", done.stderr)

    def test_the_same_input_gives_the_same_image(self):
        first, archive = self.inspect()["Id"], f"{self.folder}/archive.tar"
        self.build("inferno:test", INFERNO_IMAGE_ARCHIVE=archive)
        with tarfile.open(archive) as tar:
            [made] = json.load(tar.extractfile("manifest.json"))
        self.assertEqual((made["Config"], made["RepoTags"]), (f"{first}.json", ["localhost/inferno:test"]))
        self.podman("rmi", "-f", first)
        self.podman("load", "-i", archive)
        self.assertEqual(self.inspect()["Id"], first)


class Compose(ImageTest):
    """deploy/compose.yaml, with Debian's HAProxy in place of the image from a registry."""

    def setUp(self):
        if subprocess.run(["iptables", "-t", "nat", "-L"], capture_output=True).returncode != 0:
            self.skipTest("podman's networks need iptables")
        haproxy = "/usr/sbin/haproxy"
        libraries = re.findall(r"(/\S+) \(", subprocess.run(["ldd", haproxy], check=True, capture_output=True, text=True).stdout)
        (self.folder / "haproxy/tmp").mkdir(parents=True)
        subprocess.run(["cp", "-L", "--parents", haproxy, *libraries, self.folder / "haproxy"], check=True)
        subprocess.run(["tar", "-cf", f"{self.folder}/haproxy.tar", "-C", self.folder / "haproxy", "."], check=True)
        self.podman("import", "-q", f"{self.folder}/haproxy.tar", "localhost/haproxy:test")
        # podman-compose has no options for the storage.
        program = self.folder / "bin/podman"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {shutil.which("podman")} {" ".join(self.store)} --runtime crun "$@"\n')
        program.chmod(0o755)
        (self.folder / "models").mkdir()
        self.environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "INFERNO_API_KEY": "key", "INFERNO_IMAGE": "localhost/inferno:test",
                            "HAPROXY_IMAGE": "localhost/haproxy:test", "HF_HOME": f"{self.folder}/models"}

    def compose(self, *arguments):
        done = subprocess.run(["podman-compose", "-f", ROOT / "deploy/compose.yaml", *arguments], capture_output=True, text=True, env=self.environment, timeout=120)
        return done.stdout + done.stderr

    def workers_of(self, count):
        """Who answers so many conversations, by the header x-inferno-worker."""
        results = []
        requests = [load.Request(session=number, stream=number % 2 == 0, tokens=8) for number in range(count)]
        asyncio.run(load.burst("http://127.0.0.1:8080", "key", requests, results))
        self.assertTrue(all(result.ok for result in results), load.summary(results))
        return {result.worker for result in results}

    def test_three_workers_behind_haproxy(self):
        told = self.compose("up", "-d")
        try:
            begin = time.monotonic()
            while subprocess.run([PROGRAM, "health", "http://127.0.0.1:8080/readyz", "--timeout", "2"], capture_output=True).returncode != 0:
                self.assertLess(time.monotonic() - begin, 60, f"{told}{self.podman('logs', 'deploy_balancer_1', check=False)}")
                time.sleep(0.1)
            while len(self.workers_of(24)) < 3:  # each is taken in when its name is known and it is ready
                self.assertLess(time.monotonic() - begin, 60)
            self.podman("stop", "-t", "30", "deploy_worker-2_1")
            self.assertEqual(len(self.workers_of(24)), 2)
        finally:
            self.compose("down")


if __name__ == "__main__":
    alone()
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
