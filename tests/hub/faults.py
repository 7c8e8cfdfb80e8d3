"""What can go wrong on the way, as data: which requests a fault meets and what it does to their answers."""
import random
import threading
import time
from dataclasses import dataclass, field, fields

from wire import Answer, BrokenOff


@dataclass
class Fault:
    # Which requests: the listener (hub or cdn), the method, a part of the path; the first `skip` of them pass unharmed and
    # the next `times` (all, when None) are met.
    at: str = "cdn"
    method: str = ""
    path: str = ""
    ranged: bool = False          # only requests with a Range
    skip: int = 0
    times: int | None = None
    # Another answer instead.
    status: int | None = None
    body: bytes = b""
    location: str | None = None   # for a redirect
    # The true answer, with other headers: None takes one away.
    headers: dict = field(default_factory=dict)
    ignore_range: bool = False    # 200 and everything
    edit: object = None           # edit(answer) changes it; only from Python
    # The true head, another body.
    cut: object = None            # closes after so many bytes; a pair is a random number in it, the same for the same seed
    flip: int | None = None       # the byte of the file whose lowest bit is wrong
    stall: tuple | None = None    # (after how many bytes, for how many seconds)
    rate: float | None = None     # bytes each second, at most
    seed: int = 0

    def __post_init__(self):
        self.lock = threading.Lock()
        self.met = 0              # requests that it was done to
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
        """truth(request) -> Answer is what an honest server would say."""
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
    """A fault at work on one body."""

    def __init__(self, fault):
        self.flip, self.stall, self.rate = fault.flip, fault.stall, fault.rate
        with fault.lock:
            self.cut = fault.random.randint(*fault.cut) if isinstance(fault.cut, (tuple, list)) else fault.cut
        self.begin = time.monotonic()
        self.closes = False

    def before(self, sent, step):
        """How many bytes may go now, after those that went; waits, or breaks off."""
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
    """Counts the bytes of all bodies and calls once when there are so many."""

    def __init__(self):
        self.lock = threading.Lock()
        self.total = 0
        self.goal = self.action = None

    def after(self, goal, action):
        with self.lock:
            self.total, self.goal, self.action = 0, goal, action

    def step(self, wanted):
        goal = self.goal
        # Small steps, so that what is sent when the goal is reached is close to it.
        return wanted if goal is None else max(1, min(wanted, 1 << 18, goal - self.total if goal > self.total else wanted))

    def add(self, done):
        with self.lock:
            self.total += done
            if self.goal is None or self.total < self.goal:
                return
            action, self.goal, self.action = self.action, None, None
        action()
