#!/usr/bin/env python3
"""What the server costs: the same requests through `inferno serve` and through `inferno generate --batch`, in turns.

    python3 tools/compare_server.py build/release/inferno [--model MODEL] [--streams 1,8,32] [--rounds 5]

Prints tokens/s of both, and CPU milliseconds per generated token: of the thread of the server that runs the model, of all its other
threads, and of the whole other program without loading. CPU time hardly depends on what else runs on the machine, tokens/s do. Both
programs compute with one thread, so that none waits for another. Needs nothing but Python.
"""
import argparse
import http.client
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

WORDS = "time year people way day man thing woman life child world school state family student group country problem hand part place".split()


def requests_of(count, tokens, chance):
    """Prompts that share no beginning, so that no cache helps the server."""
    return [{"prompt": " ".join(chance.choice(WORDS) for _ in range(100)), "max_tokens": tokens, "ignore_eos": True, "temperature": 0} for _ in range(count)]


class Server:
    def __init__(self, program, model, streams):
        self.process = subprocess.Popen([program, "serve", model, "--port", "0", "--device", "cpu", "--threads", "1", "--parallel", str(streams), "--log-level", "off"],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            if "http://127.0.0.1:" in line:
                self.port = int(line.split("http://127.0.0.1:")[1].split()[0].split("/")[0])
                break
        while self.ask("GET", "/health")[0] != 200:
            time.sleep(0.05)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def threads(self):
        """CPU seconds of each thread."""
        folder = f"/proc/{self.process.pid}/task"
        return {task: int(open(f"{folder}/{task}/schedstat").read().split()[0]) / 1e9 for task in os.listdir(folder)}

    def answer(self, request):
        status, text = self.ask("POST", "/v1/completions", {**request, "stream": True})
        if status != 200 or "[DONE]" not in text:
            sys.exit(f"the server answered {status}: {text[:500]}")

    def measure(self, requests, streams):
        """Seconds, CPU seconds of the thread with the model, and of the others."""
        left, lock = list(requests), threading.Lock()

        def work():
            while True:
                with lock:
                    if not left:
                        return
                    request = left.pop()
                self.answer(request)

        before, begin = self.threads(), time.monotonic()
        clients = [threading.Thread(target=work) for _ in range(streams)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        seconds = time.monotonic() - begin
        used = sorted(now - before.get(task, 0) for task, now in self.threads().items())
        return seconds, used[-1], sum(used[:-1])


def run_batch(program, model, requests, streams):
    """The answers, and CPU seconds of the whole program."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(one) + "\n" for one in requests)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([program, "generate", "-m", model, "--batch", file.name, "--parallel", str(streams), "--threads", "1", "--device", "cpu"],
                              capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return [json.loads(line) for line in done.stdout.splitlines()], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_batch(program, model, requests, streams):
    """Seconds and CPU seconds without those of loading."""
    _, loading = run_batch(program, model, [{"prompt": "a", "max_tokens": 1}], streams)
    answers, used = run_batch(program, model, requests, streams)
    times = [one["timings"] for one in answers]
    if streams == 1:
        return sum(one["prompt_ms"] + one["predicted_ms"] for one in times) / 1e3, used - loading
    return max(one["total_ms"] for one in times) / 1e3, used - loading  # all begin at once


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--model", default="builtin")
    parser.add_argument("--streams", default="1,8,32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=256)
    given = parser.parse_args()
    chance = random.Random(7)
    print("| streams | serve tok/s | batch tok/s | serve/batch | CPU ms/token: model's thread | other threads | batch |\n|--:|--:|--:|--:|--:|--:|--:|")
    for streams in map(int, given.streams.split(",")):
        server = Server(given.program, given.model, streams)
        rows = []
        for _ in range(given.rounds):
            requests = requests_of(max(streams, 4), given.tokens, chance)
            total = len(requests) * given.tokens
            batch_seconds, batch_cpu = measure_batch(given.program, given.model, requests, streams)
            seconds, model_cpu, other_cpu = server.measure(requests, streams)
            rows.append((total / seconds, total / batch_seconds, batch_seconds / seconds, *(used * 1e3 / total for used in (model_cpu, other_cpu, batch_cpu))))
        server.process.terminate()
        server.process.wait()
        middle = [statistics.median(column) for column in zip(*rows)]
        print(f"| {streams} | {middle[0]:.0f} | {middle[1]:.0f} | {middle[2]:.2f} | {middle[3]:.4f} | {middle[4]:.4f} | {middle[5]:.4f} |", flush=True)


if __name__ == "__main__":
    main()
