"""Faults as data: which requests a fault applies to and how it changes their responses."""
import random
import threading
import time
from dataclasses import dataclass, field, fields

from wire import Answer, BrokenOff


@dataclass
class Fault:
    # Which requests: the listener (hub or cdn), the method, a part of the path; the first `skip` of these requests pass,
    # and the fault applies to the next `times` (None: all).
    at: str = "cdn"
    method: str = ""
    path: str = ""
    ranged: bool = False          # only requests with a Range
    skip: int = 0
    times: int | None = None
    # Replaces the response.
    status: int | None = None
    body: bytes = b""
    location: str | None = None   # for a redirect
    # The true response with other headers; None removes a header.
    headers: dict = field(default_factory=dict)
    ignore_range: bool = False    # 200 and everything
    edit: object = None           # edit(answer) changes the response; only from Python
    # The true headers with another body.
    cut: object = None            # closes after this many bytes; a pair is a range for a random number, the same for the same seed
    flip: int | None = None       # the byte of the file whose lowest bit is flipped
    stall: tuple | None = None    # (after how many bytes, for how many seconds)
    rate: float | None = None     # maximum bytes per second
    seed: int = 0

    def __post_init__(self):
        self.lock = threading.Lock()
        self.met = 0              # number of requests that the fault was applied to
        self.random = random.Random(self.seed)

    @staticmethod
    def from_json(value):
        known = {one.name for one in fields(Fault)}
        if unknown := set(value) - known:
            raise ValueError(f"no such fault: {sorted(unknown)}")
        if isinstance(value.get("body"), str):
            value["body"] = value["body"].encode()
        return Fault(**value)

    def meets(self, listener, request):
        if self.at not in ("any", listener) or self.method not in ("", request.method) or self.path not in request.path:
            return False
        if self.ranged and "range" not in request.headers:
            return False
        with self.lock:
            if self.skip > 0:
                self.skip -= 1
                return False
            if self.times is not None and self.times <= 0:
                return False
            if self.times is not None:
                self.times -= 1
            self.met += 1
            return True

    def applied(self, request, truth):
        """truth(request) -> Answer is the response of an honest server."""
        if self.ignore_range:
            request.headers.pop("range", None)
        if self.status is not None or self.location is not None:
            headers = dict(self.headers)
            if self.location is not None:
                headers["Location"] = self.location
            return Answer(self.status or 302, headers, self.body)
        answer = truth(request)
        answer.headers.update(self.headers)
        if self.edit is not None:
            self.edit(answer)
        if any(value is not None for value in (self.cut, self.flip, self.stall, self.rate)):
            answer.trouble = Trouble(self)
        return answer


class Trouble:
    """A fault applied to one body."""

    def __init__(self, fault):
        self.flip, self.stall, self.rate = fault.flip, fault.stall, fault.rate
        with fault.lock:
            self.cut = fault.random.randint(*fault.cut) if isinstance(fault.cut, (tuple, list)) else fault.cut
        self.begin = time.monotonic()
        self.closes = False

    def before(self, sent, step):
        """How many bytes may be sent now, after those already sent; waits or closes the connection."""
        if self.cut is not None:
            if sent >= self.cut:
                raise BrokenOff
            step = min(step, self.cut - sent)
        if self.stall is not None:
            after, seconds = self.stall
            if sent < after:
                step = min(step, after - sent)
            else:
                self.stall = None
                time.sleep(seconds)
        if self.rate is not None:
            step = max(1, min(step, int(self.rate / 50)))
            time.sleep(max(0.0, (sent + step) / self.rate - (time.monotonic() - self.begin)))
        return step

    def changed(self, at, piece):
        if self.flip is None or not at <= self.flip < at + len(piece):
            return piece
        changed = bytearray(piece)
        changed[self.flip - at] ^= 1
        return bytes(changed)


class Watch:
    """Counts the bytes of all bodies and calls a function once at a threshold."""

    def __init__(self):
        self.lock = threading.Lock()
        self.total = 0
        self.goal = self.action = None

    def after(self, goal, action):
        with self.lock:
            self.total, self.goal, self.action = 0, goal, action

    def step(self, wanted):
        goal = self.goal
        # Small steps, so that the threshold is hit closely.
        return wanted if goal is None else max(1, min(wanted, 1 << 18, goal - self.total if goal > self.total else wanted))

    def add(self, done):
        with self.lock:
            self.total += done
            if self.goal is None or self.total < self.goal:
                return
            action, self.goal, self.action = self.action, None, None
        action()
