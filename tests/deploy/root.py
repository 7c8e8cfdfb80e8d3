"""A Debian root for tests, made once by mmdebstrap and kept, and containers of it: a chroot, or a booted systemd."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

CACHE = pathlib.Path(os.environ.get("INFERNO_DEPLOY_CACHE", "/var/cache/inferno-tests"))
SYSTEM = ["systemd", "systemd-sysv", "dbus", "iproute2", "curl", "ca-certificates", "haproxy", "serf", "python3-minimal", "python3", "xz-utils"]


def allowed(promised):
    """How many seconds a test allows for what the documents promise in `promised` seconds. Three times as many while other programs
    keep the cores busy (builds beside the tests, or the tests that ran before): then each gets a part of a core, and the first
    reading of a file waits for theirs."""
    return promised if os.getloadavg()[0] <= os.cpu_count() else 3 * promised


def dependencies(package):
    """The names in a package's Depends."""
    text = subprocess.run(["dpkg-deb", "-f", package, "Depends"], check=True, capture_output=True, text=True).stdout
    return re.findall(r"([a-z0-9.+-]+)(?: \([^)]*\))?(?:,|\n|$)", text)


def archive(packages):
    """A tar file of minimal Debian 12 with these packages."""
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"root-{abs(hash_of(packages)):x}.tar"
    if not path.exists():
        temporary = path.with_suffix(f".{os.getpid()}.tar")
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", "--dpkgopt=path-exclude=/usr/share/man/*",
                        "--dpkgopt=path-exclude=/usr/share/locale/*", "bookworm", str(temporary)], check=True, stdin=subprocess.DEVNULL)
        temporary.rename(path)
    return path


def hash_of(packages):
    import zlib
    return zlib.crc32(" ".join(sorted(packages)).encode())


@contextlib.contextmanager
def unpacked(packages):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inferno-root-", dir=CACHE if CACHE.exists() else None))
    try:
        subprocess.run(["tar", "-xf", str(archive(packages)), "-C", str(folder)], check=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def chroot(folder, *command, **more):
    """Runs a command in a root without a network."""
    return subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                           'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/tmp" && ip link set lo up && exec chroot "$0" "$@"', str(folder), *command],
                          capture_output=True, text=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"},
                          **more)


def boot(folder, script, seconds=240):
    """Boots systemd in a root, runs a script (a Python program in the folder) as a service and returns what it printed and its exit code."""
    (folder / "test.py").write_text(script)
    unit = ("[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nTimeoutStartSec=infinity\nStandardOutput=file:/test.out\nStandardError=file:/test.out\n"
            "ExecStart=/bin/sh -c 'python3 -B /test.py; echo $? >/test.rc'\nExecStopPost=/bin/systemctl --no-block poweroff\n[Install]\nWantedBy=default.target\n")
    (folder / "etc/systemd/system/inferno-test.service").write_text(unit)
    wants = folder / "etc/systemd/system/default.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "inferno-test.service").symlink_to("/etc/systemd/system/inferno-test.service")
    # Where cgroups v1 and v2 are mounted together, systemd is given v2 alone.
    own = 'mount --make-rprivate / && umount -R /sys/fs/cgroup 2>/dev/null; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"'
    container = subprocess.Popen(["unshare", "--mount", "sh", "-c", own, "sh", "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot", "--private-network",
                                  f"--directory={folder}", "--machine=inferno-test"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        console, _ = container.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        container.terminate()
        try:
            console, _ = container.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            container.kill()
            console, _ = container.communicate()
    out = folder / "test.out"
    code = folder / "test.rc"
    return (out.read_text(errors="replace") if out.exists() else "") + ("" if code.exists() else f"\nthe test did not end; console:\n{console[-4000:]}"), \
        int(code.read_text()) if code.exists() else 1
