"""Builds packages of a build folder once for all tests: packages.folder(BUILD). And what the documents say about them."""
import fcntl
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
EPOCH = "1700000000"
NAMES = ("inferno", "inferno-balancer", "libinferno0", "libinferno-dev")


def folder(build):
    """A folder with the .deb files and the tarball of this build; made again if the program or the library is newer."""
    build = pathlib.Path(build).resolve()
    out = build / "deploy-packages"
    out.mkdir(exist_ok=True)
    with open(out / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = out / "stamp"
        sources = [build / "inferno", build / "libinferno.so", build / "libinferno.a", build / "CPackConfig.cmake", *(ROOT / "deploy").rglob("*"), *(ROOT / "packaging").rglob("*")]
        if not stamp.exists() or stamp.stat().st_mtime < max(file.stat().st_mtime for file in sources):
            done = subprocess.run(["cpack", "-B", str(out)], cwd=build, capture_output=True, text=True, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH})
            assert done.returncode == 0, done.stdout + done.stderr
            stamp.touch()
    return out


def blocks():
    """The blocks of commands of docs/install.md."""
    return re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/install.md").read_text(), re.DOTALL | re.MULTILINE)


def documented(number):
    return blocks()[number]


def deb(build, name="inferno"):
    return next(folder(build).glob(f"{name}_*.deb"))


def tarball(build):
    return next(folder(build).glob("inferno-*.tar.xz"))
