"""Runs inside the container that service_test.py boots: the packages, the units, their sandbox, watchdog and socket, and a
cluster of three, all under systemd."""
import asyncio
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import load

KEY = ""
ENV = pathlib.Path("/etc/inferno")


def run(*command, check=True, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if check and done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}\n{journal()}")
    return done.stdout


def journal(unit="inferno*"):
    return subprocess.run(["journalctl", "--no-pager", "-o", "cat", "-n", "40", "-u", unit], capture_output=True, text=True).stdout


def until(ready, seconds, what):
    begin = time.monotonic()
    while not ready():
        if time.monotonic() - begin > seconds:
            raise AssertionError(f"not within {seconds} s: {what}\n{journal()}")
        time.sleep(0.02)
    return time.monotonic() - begin


def figures(name, **values):
    print(f"FIGURES {name}: " + ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in values.items()), flush=True)


def pid(unit):
    return int(run("systemctl", "show", "-p", "MainPID", "--value", unit))


def is_ready(port=8000):
    return subprocess.run(["inferno", "health", f"http://127.0.0.1:{port}/readyz", "--timeout", "1"], capture_output=True).returncode == 0


class Load:
    """Requests in the background while the block runs; all must succeed."""

    def __init__(self, rate, port=8000):
        self.rate, self.url, self.over, self.results = rate, f"http://127.0.0.1:{port}", threading.Event(), []

    def __enter__(self):
        make = lambda number: load.Request(stream=number % 2 == 0, session=number, tokens=16)
        self.thread = threading.Thread(target=lambda: asyncio.run(load.open_loop(self.url, KEY, self.rate, self.over.is_set, make, self.results)))
        self.thread.start()
        return self.results

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def expect_none_failed(results, least, name, **more):
    failed = [result for result in results if not result.ok]
    figures(name, requests=len(results), failed=len(failed), slowest_s=load.summary(results)["slowest s"], **more)
    assert len(results) >= least, f"only {len(results)} requests"
    assert not failed, f"{load.summary(results)}\n{journal()}"


def install():
    global KEY
    run("ip", "link", "set", "lo", "up")
    run("dpkg", "-i", "/inferno.deb", "/inferno-balancer.deb")
    KEY = (ENV / "api-key").read_text().strip()
    # Nothing but `enable --now` is needed for the built-in model; short times for the test, and the sandbox looked at.
    drop = pathlib.Path("/etc/systemd/system/inferno@.service.d")
    drop.mkdir(parents=True)
    (drop / "test.conf").write_text(
        "[Service]\nWatchdogSec=3\nRestartSec=100ms\nStartLimitBurst=100\n"
        "ExecStartPre=/usr/bin/inferno doctor --self-test\n"
        "ExecStartPre=/bin/sh -c 'id; test -r ${CREDENTIALS_DIRECTORY}/api-key; ! touch /var/lib/inferno/x; ! touch /etc/x; ! cat /etc/inferno/api-key'\n")
    run("systemctl", "daemon-reload")


# For commands of the documents: no password is asked for, and the editor that `systemctl edit` opens, which wants a terminal, writes
# what the comment beside that command says.
SUDO = """
sudo() {
  if [ "$1" = -u ]; then runuser -u "$2" -- env "${@:3}"
  elif [ "$1 $2" = "systemctl edit" ]; then SYSTEMD_EDITOR=/edit script -qec "$*" /dev/null
  else "$@"; fi
}
"""


def documented(number, page="service.md", extra=("", ""), **environment):
    """Runs a block of commands of a page of docs/, as root; `extra` is a text in it and what stands there here."""
    block = re.findall(r"^```sh\n(.*?)^```", pathlib.Path("/", page).read_text(), re.DOTALL | re.MULTILINE)[number]
    assert extra[0] in block, block
    if edited := re.search(r"systemctl edit \S+ +# (\[\w+\]) (.*)", block):
        editor = pathlib.Path("/edit")
        editor.write_text(f"#!/bin/sh\nprintf '%s\\n' '{edited[1]}' '{edited[2]}' >\"$1\"\n")
        editor.chmod(0o755)
    return run("bash", "-euc", SUDO + (block.replace(*extra) if extra[0] else block), stdin=subprocess.DEVNULL, cwd="/", env={**os.environ, **environment})


def models():
    return json.loads(run("curl", "-sSf", "-H", f"Authorization: Bearer {KEY}", "http://127.0.0.1:8000/v1/models"))["data"]


def service():
    begin = time.monotonic()
    told = documented(0)  # enable --now, and a first request
    figures("enable --now and a first answer", seconds=round(time.monotonic() - begin, 2))
    assert '"id":"builtin"' in told, told
    assert is_ready(), "ready when start returns"
    assert "Serving builtin" in run("systemctl", "status", "inferno@builtin", "--no-pager"), "the status"
    results = []
    asyncio.run(load.ask("http://127.0.0.1:8000", load.Request(), KEY, results))
    asyncio.run(load.ask("http://127.0.0.1:8000", load.Request(), "wrong", results))
    assert results[0].ok and results[1].why == "status 401", results
    status = pathlib.Path(f"/proc/{pid('inferno@builtin')}/status").read_text()
    assert re.search(r"Seccomp:\s+2", status) and re.search(r"NoNewPrivs:\s+1", status) and re.search(r"CapEff:\s+0+\n", status), status
    told = journal("inferno@builtin")
    assert "without JIT compiler" in told and "0 errors" in told, told  # doctor, under MemoryDenyWriteExecute
    figures("exposure under systemd", value=re.search(r"exposure level .*: ([0-9.]+)", run("systemd-analyze", "security", "--no-pager", "inferno@builtin"))[1])
    # From here on without the checks before every start.
    drop = pathlib.Path("/etc/systemd/system/inferno@.service.d/test.conf")
    drop.write_text("\n".join(line for line in drop.read_text().splitlines() if "ExecStartPre" not in line) + "\n")
    run("systemctl", "daemon-reload")


def failures():
    old = pid("inferno@builtin")
    os.kill(old, signal.SIGSTOP)
    took = until(lambda: pid("inferno@builtin") not in (0, old) and is_ready(), 15, "a hung server is restarted")
    figures("hung server", watchdog_s=3, ready_again_after_s=round(took, 1))
    assert took <= 3 + 5, took
    old = pid("inferno@builtin")
    os.kill(old, signal.SIGKILL)
    took = until(lambda: pid("inferno@builtin") not in (0, old) and is_ready(), 15, "a killed server is restarted")
    figures("killed server", ready_again_after_s=round(took, 2))


def own_model():
    """A download from a hub on this machine, of the built-in model under the name that docs/service.md has."""
    run("systemctl", "disable", "-q", "--now", "inferno@builtin")
    with subprocess.Popen(["python3", "-B", "/hub/hub.py", "/hub/models"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as hub:
        documented(1, HF_ENDPOINT=hub.stdout.readline().strip())
        hub.stdin.close()
    assert [model["id"] for model in models()] == ["openai/gpt-oss-20b"], models()
    run("systemctl", "disable", "-q", "--now", "inferno@main")
    run("systemctl", "start", "inferno@builtin")


def restarts(full):
    with Load(30 if full else 20) as results:
        time.sleep(1)
        run("systemctl", "restart", "inferno@builtin")
        time.sleep(1)
    figures("systemctl restart without a socket unit", requests=len(results), failed=sum(not result.ok for result in results))
    run("systemctl", "stop", "inferno@builtin")
    documented(2)  # the socket unit, and a restart
    assert is_ready(), "with the socket unit"
    run("systemctl", "stop", "inferno@main.socket", "inferno@main")
    run("systemctl", "start", "inferno@builtin.socket")
    results = []
    begin = time.monotonic()
    asyncio.run(load.ask("http://127.0.0.1:8000", load.Request(), KEY, results))  # starts the service
    assert results[0].ok, results
    figures("first request starts the service", seconds=round(time.monotonic() - begin, 2))
    with Load(30 if full else 20) as results:
        for _ in range(3 if full else 2):
            time.sleep(2.5)
            run("systemctl", "restart", "inferno@builtin")
        time.sleep(2.5)
    expect_none_failed(results, 200 if full else 100, "systemctl restart with the socket unit")
    run("systemctl", "stop", "inferno@builtin.socket", "inferno@builtin")


def in_rotation():
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.connect("/run/inferno-balancer/admin.sock")
        link.sendall(b"show stat\n")
        text = b""
        while part := link.recv(1 << 16):
            text += part
    rows = [line.split(",") for line in text.decode().splitlines()]
    return sum(row[0] == "workers" and row[1] != "BACKEND" and row[17] == "UP" for row in rows if len(row) > 17)


def cluster(full):
    example = json.loads(pathlib.Path("/usr/share/doc/inferno/examples/serf.json").read_text())
    key = run("serf", "keygen").strip()
    (ENV / "serf.json").write_text(json.dumps({**example, "encrypt_key": key, "retry_join": ["127.0.0.1:7946"]}))
    (ENV / "balancer.env").write_text("BIND=127.0.0.1:7946\nINFERNO_LISTEN=127.0.0.1:8080\n")
    for number in (1, 2, 3):
        (ENV / f"w{number}.env").write_text(f"MODEL=builtin\nPORT=800{number}\nFLAGS=--port 800{number} --threads 1 --max-queue 256 --log-level warning\n"
                                            f"MEMBER_BIND=127.0.0.1:1794{number}\nMEMBER_RPC=127.0.0.1:1737{number}\n")
    workers = [f"inferno@w{number}" for number in (1, 2, 3)]
    run("systemctl", "enable", "-q", "inferno-balancer-members", *(worker.replace("inferno@", "inferno-member@") for worker in workers))
    begin = time.monotonic()
    run("systemctl", "start", "inferno-balancer", *workers)
    until(lambda: in_rotation() == 3, 30, "three workers in rotation")
    figures("cluster of three under systemd", in_rotation_after_s=round(time.monotonic() - begin, 1))
    with Load(40 if full else 25, 8080) as results:
        for worker in workers:
            time.sleep(3 if full else 1)
            run("systemctl", "restart", worker)
            until(lambda: in_rotation() == 3, 20, f"{worker} is back")
        run("systemctl", "reload", "inferno-balancer")
        time.sleep(2 if full else 1)
    expect_none_failed(results, 500 if full else 80, "rolling restart by systemctl and a reload of HAProxy")
    with Load(25, 8080) as results:
        time.sleep(1)
        os.kill(pid("inferno@w2"), signal.SIGKILL)
        time.sleep(2)
        until(lambda: in_rotation() == 3, 20, "the killed worker is back")
    before = sum(result.failed_before_first_byte for result in results)
    figures("kill -9 under systemd", requests=len(results), failed_before_first_byte=before, streams_cut=sum(not result.ok for result in results) - before)
    assert before == 0, load.summary(results)
    run("systemctl", "stop", "inferno@w3")
    figures("leave by systemctl stop", seconds=round(until(lambda: in_rotation() == 2, 10, "w3 has left"), 2))
    assert "127.0.0.1:8003" not in pathlib.Path("/var/lib/inferno-balancer/prometheus.json").read_text()


def documented_cluster():
    """docs/cluster.md as it stands, with the addresses of a worker and the balancer on one machine."""
    run("systemctl", "stop", "inferno-balancer", "inferno@w1", "inferno@w2")
    run("dpkg", "--purge", "inferno-balancer")
    for address in ("10.0.0.1", "10.0.0.11"):
        run("ip", "address", "add", f"{address}/32", "dev", "lo")
    serf = json.loads((ENV / "serf.json").read_text())
    (ENV / "serf.json").write_text(json.dumps({**serf, "retry_join": ["10.0.0.1"]}))
    # Both agents are on this machine, so one has another port for commands.
    documented(0, "cluster.md", ("MEMBER_BIND=10.0.0.11\n", "MEMBER_BIND=10.0.0.11\nMEMBER_RPC=127.0.0.1:17373\n"))
    documented(1, "cluster.md")
    figures("cluster as documented", in_rotation_after_s=round(until(lambda: in_rotation() == 1, 20, "the worker is in rotation"), 2))
    results = []
    asyncio.run(load.ask("http://10.0.0.1:8080", load.Request(), KEY, results))
    assert results[0].ok, results
    assert "vllm:num_requests_running" in run("curl", "-sSf", "http://10.0.0.11:8000/metrics")
    assert "10.0.0.11:8000" in pathlib.Path("/var/lib/inferno-balancer/prometheus.json").read_text()
    assert "haproxy_" in run("curl", "-sSf", "http://127.0.0.1:8404/metrics")


def main(full):
    try:
        install()
        service()
        failures()
        own_model()
        restarts(full)
        cluster(full)
        documented_cluster()
    except BaseException as problem:
        print(problem, journal(), sep="\n", flush=True)
        raise
    print("all done", flush=True)
    sys.exit(0)
