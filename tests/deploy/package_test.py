"""The packages, installed on a clean Debian: package_test.py INFERNO BUILD

Needs root, mmdebstrap and lintian. The build may be of any preset: what a package contains does not depend on it.
"""
import hashlib
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

import packages
import root
from packages import documented

MAX_PACKAGE = 25_000_000
# What Depends says of every build. The portable one is written for it (check_portable.py); one that is linked with Debian's own
# libraries needs no more, because what needs a newer glibc is in libstdc++.so and libgcc_s.so there.
GLIBC = "2.34"
TO_AN_ANSWER = 5  # seconds, from dpkg -i on


class Contents(unittest.TestCase):
    def test_lintian_finds_no_error(self):
        done = subprocess.run(["lintian", "--fail-on=error", "--allow-root", *(str(packages.deb(BUILD, name)) for name in packages.NAMES)],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_fields(self):
        fields = subprocess.run(["dpkg-deb", "-f", packages.deb(BUILD)], check=True, capture_output=True, text=True).stdout
        self.assertIn(f"Depends: libc6 (>= {GLIBC})", fields)
        self.assertIn("Recommends: libcurl4, ca-certificates", fields)
        print(f"FIGURES .deb: {packages.deb(BUILD).stat().st_size / 1e6:.1f} MB, .tar.xz: {packages.tarball(BUILD).stat().st_size / 1e6:.1f} MB", flush=True)
        self.assertLess(packages.deb(BUILD).stat().st_size, MAX_PACKAGE)

    def test_manual_pages(self):
        with tarfile.open(packages.tarball(BUILD)) as tar, tempfile.TemporaryDirectory() as folder:
            pages = [member for member in tar.getmembers() if "/man1/" in member.name]
            tar.extractall(folder, pages)
            names = [re.sub(r".*/(.*)\.1\.gz", r"\1", page.name) for page in pages]
            shown = subprocess.run([PROGRAM, "--help"], check=True, capture_output=True, text=True).stdout.split("Examples")[0]
            self.assertEqual(sorted(names), sorted(["inferno", *(f"inferno-{name}" for name in re.findall(r"^  (\w+) ", shown, re.MULTILINE))]))
            for page in pages:
                linted = subprocess.run(["mandoc", "-Tlint", "-Wwarning", f"{folder}/{page.name}"], capture_output=True, text=True)
                self.assertEqual(linted.stdout, "", page.name)

    def test_bill_of_materials(self):
        with tarfile.open(packages.tarball(BUILD)) as tar:
            top = tar.getnames()[0].split("/")[0]
            bill = json.load(tar.extractfile(f"{top}/share/doc/inferno/sbom.cdx.json"))
            program = tar.extractfile(f"{top}/bin/inferno").read()
        self.assertEqual(bill["metadata"]["component"]["hashes"][0]["content"], hashlib.sha256(program).hexdigest())
        names = {row["name"] for row in bill["components"]}
        self.assertLessEqual({"fmt", "PCRE2", "OpenSSL", "Boost", "libstdc++"}, names)
        self.assertTrue(all(row.get("version") for row in bill["components"]), bill)
        licenses = subprocess.run([PROGRAM, "--licenses"], check=True, capture_output=True, text=True).stdout
        for name in names - {"libcurl", "nlohmann-json"}:  # opened at run time; called JSON for Modern C++
            self.assertIn(name.split()[-1].lower(), licenses.lower())


class Library(unittest.TestCase):
    """libinferno0 has what programs need that run, libinferno-dev what they are compiled with."""
    LIBRARIES = "usr/lib/x86_64-linux-gnu"

    def field(self, package, name):
        return subprocess.run(["dpkg-deb", "-f", packages.deb(BUILD, package), name], check=True, capture_output=True, text=True).stdout.strip()

    def files(self, package):
        listed = subprocess.run(["dpkg-deb", "-c", packages.deb(BUILD, package)], check=True, capture_output=True, text=True).stdout
        names = re.findall(r" \./(\S+?)(?: -> .*)?$", listed, re.MULTILINE)
        return {name for name in names if not name.endswith("/")}

    def test_files(self):
        version = self.field("libinferno0", "Version")
        shared = {name for name in self.files("libinferno0") if not name.startswith("usr/share/")}
        self.assertEqual(shared, {f"{self.LIBRARIES}/libinferno.so.0", f"{self.LIBRARIES}/libinferno.so.{version}"})
        self.assertIn("usr/share/doc/libinferno0/third-party/pcre2.txt", self.files("libinferno0"))
        for package in packages.NAMES:
            self.assertLessEqual({f"usr/share/doc/{package}/{name}" for name in ("copyright", "changelog.gz")}, self.files(package))
        self.assertLessEqual({"usr/include/inferno/inferno.h", "usr/include/inferno/inferno.hpp", f"{self.LIBRARIES}/libinferno.so",
                              f"{self.LIBRARIES}/libinferno.a", f"{self.LIBRARIES}/pkgconfig/inferno.pc",
                              f"{self.LIBRARIES}/cmake/inferno/inferno-config.cmake", "usr/share/doc/libinferno-dev/examples/c/question.c", "usr/share/inferno/models/builtin/model.safetensors"},
                             self.files("libinferno-dev"))
        self.assertFalse(any("libinferno" in name for name in self.files("inferno")))
        with tarfile.open(packages.tarball(BUILD)) as tar:
            self.assertFalse([name for name in tar.getnames() if "libinferno" in name])

    def test_the_library_is_small(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["dpkg-deb", "-x", packages.deb(BUILD, "libinferno0"), folder], check=True)
            size = pathlib.Path(folder, self.LIBRARIES, "libinferno.so.0").resolve().stat().st_size
        print(f"FIGURES libinferno.so.0: {size / 1e6:.1f} MB, .deb: {packages.deb(BUILD, 'libinferno0').stat().st_size / 1e6:.1f} MB", flush=True)
        with tarfile.open(packages.tarball(BUILD)) as tar:
            program = max(member.size for member in tar.getmembers() if member.name.endswith("/bin/inferno"))
        self.assertLess(size, program - 11_000_000)  # the built-in model, which only the program has

    def test_dependencies(self):
        version = self.field("libinferno0", "Version")
        self.assertIn(f"libc6 (>= {GLIBC})", self.field("libinferno0", "Depends"))
        self.assertEqual(self.field("libinferno-dev", "Depends"), f"libinferno0 (= {version}), libpcre2-dev, libutf8proc-dev")
        shlibs = subprocess.run(["dpkg-deb", "-I", packages.deb(BUILD, "libinferno0"), "shlibs"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(shlibs.strip(), f"libinferno 0 libinferno0 (>= {version})")

    def test_the_documented_commands_compile_an_example_on_a_clean_debian(self):
        debs = [packages.deb(BUILD, name) for name in ("libinferno0", "libinferno-dev")]
        needed = {name for deb in debs for name in root.dependencies(deb)} - {"libinferno0"}
        with root.unpacked(sorted({*needed, "gcc", "libc6-dev", "libstdc++-12-dev", "pkg-config", "iproute2"})) as folder:
            for deb in debs:
                shutil.copy(deb, folder)
            run = lambda command: root.chroot(folder, "sh", "-euc", f"cd /; {command}", timeout=120)
            script = documented(2).replace("sudo apt install", "dpkg -i").replace("0.1.0", self.field("libinferno0", "Version"))
            shared = run(script)
            self.assertEqual(shared.returncode, 0, shared.stdout + shared.stderr)
            self.assertIn("Inferno is a program", shared.stdout)
            linked = run("gcc question.c $(pkg-config --static --cflags --libs inferno | sed s/-linferno/-l:libinferno.a/) -o static; ldd static; ./static $(pkg-config --variable=builtin_model inferno) 'What is Inferno?'")
            self.assertIn("Inferno is a program", linked.stdout, linked.stderr)
            self.assertNotIn("libinferno", linked.stdout)
            without_model = run("./question builtin Hello 2>&1")
            self.assertEqual(without_model.returncode, 1)
            self.assertIn("does not contain the built-in model", without_model.stdout)
            run("cp -r $(pkg-config --variable=builtin_model inferno) model")
            self.assertEqual(run("dpkg --purge libinferno-dev libinferno0").returncode, 0)
            self.assertEqual(run("./static model Hello").returncode, 0)
            self.assertNotEqual(run("./question model Hello").returncode, 0)


class Signature(unittest.TestCase):
    def test_the_documented_commands_accept_what_was_signed_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            run = lambda command: subprocess.run(["bash", "-euc", command], cwd=folder, capture_output=True, text=True)
            shutil.copy(packages.deb(BUILD), folder)
            made = run("sha256sum *.deb >SHA256SUMS && minisign -G -W -p key.pub -s key && minisign -S -s key -m SHA256SUMS")
            self.assertEqual(made.returncode, 0, made.stderr)
            verify = documented(0).replace("PUBLIC_KEY", pathlib.Path(folder, "key.pub").read_text().splitlines()[1])
            self.assertEqual(run(verify).returncode, 0, run(verify).stderr)
            with open(f"{folder}/{packages.deb(BUILD).name}", "ab") as package:
                package.write(b"x")
            self.assertIn("FAILED", run(verify).stdout)
            made = run("sha256sum *.deb >SHA256SUMS")
            self.assertIn("verification failed", run(verify).stderr)
            self.assertNotEqual(run(verify).returncode, 0)


class Completions(unittest.TestCase):
    """Each shell completes with the script that the package installs."""

    def script(self, shell):
        return subprocess.run([PROGRAM, "completion", shell], check=True, capture_output=True, text=True).stdout

    def in_bash(self, *words):
        line = " ".join(f"'{word}'" for word in words)
        code = f'COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _inferno; echo "${{COMPREPLY[@]}}"'
        return subprocess.run(["bash", "-c", f"{self.script('bash')}\n{code}"], check=True, capture_output=True, text=True).stdout.split()

    def in_fish(self, line):
        done = subprocess.run(["fish", "--no-config", "-c", f"{self.script('fish')}\ncomplete -C '{line}'"], check=True, capture_output=True, text=True)
        return [row.split("\t")[0] for row in done.stdout.splitlines()]

    def test_bash(self):
        self.assertEqual(self.in_bash("inferno", "he"), ["health"])
        self.assertIn("--drain-delay", self.in_bash("inferno", "serve", "--dr"))
        self.assertEqual(self.in_bash("inferno", "serve", "--log-format", "j"), ["json"])
        self.assertEqual(self.in_bash("inferno", "serve", "--host", ""), [])
        self.assertNotIn("--jinja", self.in_bash("inferno", "serve", "--"))

    def test_fish(self):
        self.assertEqual(self.in_fish("inferno he"), ["health"])
        self.assertIn("--drain-delay", self.in_fish("inferno serve --dr"))
        self.assertEqual(self.in_fish("inferno serve --log-format j"), ["json"])

    def test_zsh(self):
        done = subprocess.run(["zsh", "-n"], input=self.script("zsh"), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        # Completion itself needs a terminal; that the function is found and runs is seen without one.
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "_inferno").write_text(self.script("zsh"))
            code = f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[inferno]"
            self.assertEqual(subprocess.run(["zsh", "-f", "-c", code], check=True, capture_output=True, text=True).stdout.strip(), "_inferno")


class Installed(unittest.TestCase):
    def test_install_answer_upgrade_and_purge(self):
        deb = packages.deb(BUILD)
        with root.unpacked(sorted({*root.dependencies(deb), *root.SYSTEM})) as folder:
            shutil.copy(deb, folder / "inferno.deb")
            begin = time.monotonic()
            self.run_in(folder, "dpkg", "-i", "/inferno.deb")
            installed = time.monotonic()
            answer = self.run_in(folder, "inferno", "generate", "--chat", "What is Inferno?", "--temperature", "0")
            end = time.monotonic()
            print(f"FIGURES clean Debian 12: dpkg -i {installed - begin:.1f} s, first answer {end - installed:.1f} s after it", flush=True)
            self.assertIn("Inferno is a program", answer)
            self.assertLess(end - begin, root.allowed(TO_AN_ANSWER))
            self.assertIn("inferno", self.run_in(folder, "getent", "passwd", "inferno"))
            self.assertRegex(self.run_in(folder, "id", "inferno"), r"video.*render|render.*video")
            self.assertEqual(self.run_in(folder, "stat", "-c", "%U %a", "/var/lib/inferno", "/etc/inferno/api-key").split(), ["inferno", "2775", "root", "600"])
            key = (folder / "etc/inferno/api-key").read_text()
            self.assertRegex(key, r"^[\w-]{32}\n$")
            self.run_in(folder, "dpkg", "-i", "/inferno.deb")  # an upgrade keeps the key
            self.assertEqual((folder / "etc/inferno/api-key").read_text(), key)
            shutil.copy(packages.tarball(BUILD), folder)
            told = self.run_in(folder, "bash", "-euc", f"cd /; {documented(3)}".replace("0.1.0", packages.tarball(BUILD).name.split("-")[1]))
            self.assertIn("0 errors", told)
            shutil.rmtree(folder / packages.tarball(BUILD).name.removesuffix(".tar.xz"))
            error = root.chroot(folder, "inferno", "search", "qwen").stderr  # curl is in this root, a network is not
            self.assertRegex(error, "error: ")
            (folder / "var/lib/inferno/model").touch()
            (folder / "etc/inferno/mine.env").touch()
            self.run_in(folder, "dpkg", "--purge", "inferno")
            self.assertEqual(self.left_in(folder), ["etc/inferno", "etc/inferno/mine.env", "var/lib/inferno", "var/lib/inferno/model"])
            self.assertIn("inferno", (folder / "etc/passwd").read_text())
            (folder / "etc/inferno/mine.env").unlink()
            (folder / "var/lib/inferno/model").unlink()
            self.installed_as_documented(folder, deb)
            self.run_in(folder, "dpkg", "--purge", "inferno")
            self.assertEqual(self.left_in(folder), [])
            self.assertNotIn("inferno", (folder / "etc/passwd").read_text())

    def installed_as_documented(self, folder, deb):
        """apt, the self-test, and a conversation with standard input in place of a terminal."""
        shutil.copy(deb, folder)
        commands = f'cd /; sudo() {{ "$@" </dev/null; }}\n{documented(1)}'.replace("inferno_0.1.0_amd64.deb", deb.name).replace("apt install", "apt install -qq")
        done = root.chroot(folder, "bash", "-euc", commands, timeout=120, input="What is Inferno?\n")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("0 errors", done.stdout)
        self.assertIn("Inferno is a program", done.stdout)
        (folder / deb.name).unlink()

    def run_in(self, folder, *command):
        done = root.chroot(folder, *command, timeout=120)
        self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")
        return done.stdout

    def left_in(self, folder):
        return sorted(path.relative_to(folder).as_posix() for top in ("usr", "etc", "var/lib", "lib") for path in (folder / top).rglob("*")
                      if "inferno" in path.relative_to(folder).as_posix() and "/dpkg/" not in path.as_posix() and "/apt/" not in path.as_posix())


if __name__ == "__main__":
    PROGRAM, BUILD = os.path.abspath(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
