#!/usr/bin/env python3
"""Makes the pictures of the README: `inferno play` and `inferno download` in a real terminal, and the plot of the stored benchmarks.

  tools/record.py PROGRAM           writes docs/images/play.svg, download.svg and benchmark.svg
  tools/record.py PROGRAM --check   makes them again and fails if a picture, or the table of benchmarks in README.md, is out of date

The model is the built-in one at temperature 0, the hub is that of the tests. A recording has steps, which are waited for: after each
word that is typed and when a command is done. Their screens must agree, apart from numbers and the name of the CPU; the screens
between them depend on time and must be on the way to the next step. The plot must agree to the byte.
"""
import dataclasses
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/cli"), str(ROOT / "tests/hub")]
from faults import Fault  # noqa: E402
from hub import Hub  # noqa: E402
from scene import model_files  # noqa: E402
from tmux import TmuxScreen  # noqa: E402

IMAGES = ROOT / "docs/images"
BENCHMARK = IMAGES / "benchmark.svg"
RESULTS = "bench/results/h200.json"
PROGRESS = r" \d+ % |^loading "  # rows that come and go
COLUMNS, ROWS = 80, 30
CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 19, 16
LAST_SECONDS = 5
HOME = pathlib.Path("/tmp/home-")  # and eight letters
# Of terminals in light and in dark: paper, ink, dim, then the colours 1 to 6 of the terminal.
THEMES = {"light": "#ffffff #24292f #6e7781 #cf222e #116329 #7d4e00 #0969da #8250df #1b7c83".split(),
          "dark": "#0d1117 #e6edf3 #8b949e #ff7b72 #56d364 #e3b341 #79c0ff #d2a8ff #56d4dd".split()}
NAMES = "paper ink dim c1 c2 c3 c4 c5 c6".split()


@dataclasses.dataclass
class Frame:
    at: float
    lines: list
    is_step: bool = False


class Recorder:
    def __init__(self, screen):
        self.screen, self.frames, self.begin = screen, [], time.monotonic()

    def look(self, is_step=False):
        lines = "\n".join(line.rstrip() for line in self.screen.coloured()).rstrip("\n").split("\n")
        if not self.frames or self.frames[-1].lines != lines:
            self.frames.append(Frame(time.monotonic() - self.begin, lines))
        self.frames[-1].is_step |= is_step

    def watch(self, pattern, seconds=60):
        """Records until the pattern is on the screen."""
        def look():
            self.look()
            time.sleep(0.1)
        self.screen.shows(pattern, seconds, meanwhile=look)
        self.look(is_step=True)

    def enter(self, line):
        typed = ""
        for word in re.findall(r"\S+\s*", line):
            self.screen.type(word)
            typed += word
            self.screen.until(lambda: self.screen.visible().endswith(typed.rstrip()), typed)
            self.look(is_step=True)
            self.rest(0.15)
        self.screen.key("Enter")

    def rest(self, seconds):
        """A reader's pause: later frames come so much later."""
        self.begin -= seconds


def record_play(recorder):
    recorder.enter("inferno play --temperature 0")
    recorder.watch(r"^>>> *$")
    recorder.enter("Tell me a story about a fox and a river.")
    recorder.watch(r"context: [\d,]+ of\s+2,048(.|\n)*^>>> *$")
    recorder.rest(2)
    recorder.enter("/context")
    recorder.watch(r"turns +1(.|\n)*^>>> *$")


def record_download(recorder):
    recorder.enter("inferno download tales/fox")
    recorder.watch(r"now: inferno play(.|\n)*^\$ *$")
    recorder.rest(1)
    recorder.enter("inferno list")
    recorder.watch(r"tales/fox(.|\n)*tales/fox(.|\n)*^\$ *$")


def record(program, script):
    folder = pathlib.Path(tempfile.mkdtemp(prefix=HOME.name, dir=HOME.parent))
    hub = Hub()
    hub.add("tales/fox").commit(model_files(24))
    hub.faults.append(Fault(rate=8e6))
    environment = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder), "TERM": "xterm-256color", "LANG": "C.UTF-8",
                   "INFERNO_CONFIG": "", "HF_ENDPOINT": hub.url}
    (folder / "bin").mkdir()
    (folder / "bin/inferno").symlink_to(program)
    screen = TmuxScreen(folder, COLUMNS, environment, ROWS)
    try:
        for key, shown in ((None, "$"), ("clear", "$ clear"), ("Enter", "$")):
            if key:
                screen.key(key)
            screen.until(lambda: screen.visible() == shown, shown)
        recorder = Recorder(screen)
        script(recorder)
        return recorder.frames
    finally:
        screen.close()
        hub.close()
        shutil.rmtree(folder, ignore_errors=True)


def runs(line, styles):
    """(column, classes, text) of each stretch of a line in one style, and the styles that go on in the next line."""
    column, found = 0, []
    for codes, text in re.findall(r"(?:\x1b\[([0-9;]*)m)|([^\x1b]+)", line):
        if text:
            if text.strip():
                found.append((column, " ".join(sorted(styles)), text))
            column += len(text)
            continue
        for code in (int(code or 0) for code in codes.split(";")):
            if code in (0, 39):
                styles = set() if code == 0 else {style for style in styles if not style.startswith("c")}
            elif code in (1, 2, 3, 4):
                styles.add({1: "bold", 2: "dim", 3: "italic", 4: "line"}[code])
            elif code in (22, 23, 24):
                styles -= {22: {"bold", "dim"}, 23: {"italic"}, 24: {"line"}}[code]
            elif 31 <= code <= 36 or 91 <= code <= 96:
                styles = {style for style in styles if not style.startswith("c")} | {f"c{code % 10}"}
            elif code in (37, 90, 97):
                styles = {style for style in styles if not style.startswith("c")} | ({"dim"} if code == 90 else set())
    return found, styles


def drawn(frame):
    rows, styles = [], set()
    for row, line in enumerate(frame.lines):
        found, styles = runs(line, styles)
        for column, classes, text in found:
            kind = f' class="{classes}"' if classes else ""
            rows.append(f'<text x="{MARGIN + column * CELL_WIDTH:.1f}" y="{MARGIN + (row + 0.75) * CELL_HEIGHT:.1f}" '
                        f'textLength="{len(text.rstrip()) * CELL_WIDTH:.1f}"{kind}>{html.escape(text.rstrip(), quote=False)}</text>')
    return "\n".join(rows)


def as_svg(frames, title):
    whole = frames[-1].at + LAST_SECONDS
    rows = max(len(frame.lines) for frame in frames)
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, rows * CELL_HEIGHT + 2 * MARGIN
    variables = {name: "".join(f"--{key}:{value};" for key, value in zip(NAMES, values)) for name, values in THEMES.items()}
    style = [f"svg{{{variables['light']}}}", f"@media(prefers-color-scheme:dark){{svg{{{variables['dark']}}}}}",
             "rect{fill:var(--paper);stroke:var(--dim)}", "text{fill:var(--ink);font:14px ui-monospace,Menlo,Consolas,monospace;white-space:pre}",
             ".bold{font-weight:bold}.italic{font-style:italic}.line{text-decoration:underline}.dim{fill:var(--dim)}",
             *(f".c{i}{{fill:var(--c{i})}}" for i in range(1, 7)), "g{visibility:hidden}"]
    groups = []
    for i, frame in enumerate(frames):
        begin, end = 100 * frame.at / whole, 100 * frames[i + 1].at / whole if i + 1 < len(frames) else 100
        style.append(f"@keyframes f{i}{{0%{{visibility:hidden}}{begin:.2f}%{{visibility:visible}}"
                     + (f"{end:.2f}%{{visibility:hidden}}" if end < 100 else "") + "}" + f"#f{i}{{animation:f{i} {whole:.1f}s step-end infinite}}")
        groups.append(f'<g id="f{i}"{" class=" + chr(34) + "step" + chr(34) if frame.is_step else ""}>\n{drawn(frame)}\n</g>')
    style.append(f"@media(prefers-reduced-motion:reduce){{g{{animation:none!important}}#f{len(frames) - 1}{{visibility:visible}}}}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">\n<title>{html.escape(title)}</title>\n'
            f"<style>{''.join(style)}</style>\n" f'<rect x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8"/>\n'
            + "\n".join(groups) + "\n</svg>\n")


def screens(svg):
    """(is a step, its text) of each frame, without blanks, numbers and lines of progress."""
    found = []
    for kind, frame in re.findall(r'<g id="f\d+"( class="step")?>(.*?)</g>', svg, re.DOTALL):
        rows = {}
        for y, words in re.findall(r'<text x="[\d.]+" y="([\d.]+)"[^>]*>([^<]*)</text>', frame):
            rows[y] = rows.get(y, "") + html.unescape(words) + " "
        kept = ["device:" if row.startswith("device: ") else row for row in rows.values() if not re.search(PROGRESS, row)]
        text = re.sub(rf"{HOME}\w{{8}}", "HOME", re.sub(r"\s", "", "".join(kept)))
        found.append((bool(kind), re.sub(r"\d[\d.,:]*([kMG]?B|ms|s|min)?", "#", text)))
    return found


def differences(kept, now):
    """What is out of date in a recording that was kept."""
    steps = [text for is_step, text in now if is_step]
    found, at = [], 0
    for number, (is_step, text) in enumerate(kept):
        expected = steps[at] if at < len(steps) else "(nothing)"
        at += is_step
        if text != expected if is_step else not expected.startswith(text):
            found.append(f"frame {number}\n  kept: {text}\n  now:  {expected}")
    if at < len(steps):
        found.append(f"{len(steps) - at} more steps: {steps[at]}")
    return found


def draw_benchmark(program, file):
    subprocess.run([program, "bench", "--from", RESULTS, "--plot", file], check=True, timeout=60, cwd=ROOT)


def measured(label, results):
    """The rate that the stored results have for a row of README's table, such as "gpt-oss-20b, bf16 + MXFP4, after 16 k tokens"."""
    shape, *parts = label.lower().split(", ")
    wanted = {"shape": shape, "weights": "bf16+mxfp4", "batch": 1, "depth": 0, "tokens": 256}
    for part in parts:
        if found := re.fullmatch(r"after (\d+) k tokens", part):
            wanted["depth"] = int(found[1]) * 1024
        elif found := re.fullmatch(r"prompt of ([\d,]+) tokens", part):
            wanted["tokens"] = int(found[1].replace(",", ""))
        elif found := re.fullmatch(r"(\d+) streams", part):
            wanted |= {"batch": int(found[1]), "depth": 1024}
        elif part != "total":
            wanted["weights"] = part.replace(" ", "")
    rates = [row["tokens_per_second"] for row in results
             if "--router-skew" not in row["command"] and all(row[key] == value for key, value in wanted.items())]
    return f"{rates[0]:,.0f}" if len(rates) == 1 else f"{len(rates)} results"


def stale_rows(readme, results):
    """The rows of README's table of a GPU that differ from the stored results."""
    table = readme[readme.index("| | Inferno | llama.cpp |"):].split("\n\n")[0]
    rows = re.findall(r"(?m)^\| (\S.*?) \| ([\d,]+) \| ([\d,]+) \|$", table)
    wrong = [f"{label}: {rate}, stored: {measured(label, results)}" for label, rate, _ in rows if rate != measured(label, results)]
    return wrong if rows else ["the table is empty"]


def stale_benchmark(program):
    problems = stale_rows((ROOT / "README.md").read_text(), json.loads((ROOT / RESULTS).read_text())["results"])
    with tempfile.TemporaryDirectory() as folder:
        draw_benchmark(program, f"{folder}/now.svg")
        if not BENCHMARK.exists() or pathlib.Path(f"{folder}/now.svg").read_bytes() != BENCHMARK.read_bytes():
            problems.append(f"{RESULTS} is drawn differently")
    return problems


RECORDINGS = {"play": (record_play, "A conversation with the built-in model in a terminal"),
              "download": (record_download, "A download from a hub in a terminal, and the list of models")}


def main():
    if not shutil.which("tmux") and not os.environ.get("CI"):
        print("tmux is not installed")
        sys.exit(77)
    program, check = os.path.abspath(sys.argv[1]), "--check" in sys.argv[2:]
    stale = {}
    for name, (script, title) in RECORDINGS.items():
        svg, file = as_svg(record(program, script), title), IMAGES / f"{name}.svg"
        if check:
            stale[file] = differences(screens(file.read_text()), screens(svg))
        else:
            IMAGES.mkdir(exist_ok=True)
            file.write_text(svg)
    if check:
        stale[BENCHMARK] = stale_benchmark(program)
    else:
        draw_benchmark(program, BENCHMARK)
    for file, problems in stale.items():
        if problems:
            print(f"{file.relative_to(ROOT)} is out of date: run tools/record.py PROGRAM", *problems, sep="\n")
    sys.exit(1 if any(stale.values()) else 0)


if __name__ == "__main__":
    main()
