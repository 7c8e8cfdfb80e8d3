"""Screens of a terminal that a test compares whole, row by row, with stored text.

A file has the screens of one width, each below a line "=== NUMBER NAME". What differs from run to run is replaced: figures by #,
what a model wrote by {answer}. A screen is compared until it agrees; one that stands still and differs is reported, and the test
goes on, so that one run shows all differences."""
import difflib
import re
import time

STILL_SECONDS = 15  # a finished step whose screen stands still so long will not change
MAX_DIFFERENCES = 5
TITLE = "=== "
# The line below an answer, and the one that greets: their figures decide where they are broken, so they are broken anew.
STATISTICS = (r"^\d+ tokens?, [\d.-]+ tokens/s, first token after [\d.]+ m?s; prompt: \d+ tokens?, \d+ cached; context: [\d,]+ of [\d,]+"
              r"(; stopped(: (token limit|context full))?)?$")
GREETING = r"^\S+ \(\w+\), context of [\d,]+ tokens, loaded in [\d.]+ s$"
# Others, and what stands for them. A space may be the end of a row.
FIGURES = [(r"^device: .+ \(\w+\)$", "device: {device}"),
           (r"first-hour-\w{8}", "first-hour-########"),
           (r"127\.0\.0\.1:\d{5}", "127.0.0.1:#####"),
           (r"\d{4}-\d\d-\d\d\b", "####-##-##"),
           (r"^(builtin +safetensors) +[\d.]+ MB", r"\1   ##.# MB"),
           (r"[\d,]+ of ([\d,]+) tokens in use \(\d+ %\)", r"# of \1 tokens in use (# %)"),
           (r"memory, ~\d+ k", "memory, ~# k"),
           (r"waiting \d+ s\b", "waiting # s"),
           (r"stopped at \d+ %", "stopped at # %"),
           (r"[\d.]+ [kM]B of ([\d.]+ MB) are here", r"# kB of \1 are here"),
           (r"[\d.]+ [kM]B already downloaded", "# kB already downloaded"),
           (r"downloaded [\d.]+ MB in [\d.]+ s \([\d.]+ [kMG]?B/s\)", "downloaded # MB in # s (# MB/s)")]


def wrapped(text, columns):
    """The rows of a text that is broken between words, as the screen must show them."""
    rows = []
    for line in text.split("\n"):
        row = ""
        for word in line.split(" "):
            if row and len(row) + 1 + len(word) > columns:
                rows.append(row)
                row = word
            else:
                row = f"{row} {word}" if row else word
        rows.append(row)
    return [row.rstrip() for row in rows]


def over_rows(pattern):
    """The pattern, whose spaces may be the ends of rows."""
    return re.compile(pattern.replace(" ", r"[ \n]"), re.MULTILINE)


def cut(text, columns):
    """The rows of a line that the terminal breaks."""
    return [text[at:at + columns].rstrip() for at in range(0, len(text), columns)] or [""]


def masked(text, columns, keeps_counts):
    """The rows of a screen without the figures that differ from run to run, given its lines, which the terminal would break after
    `columns`. Counts of tokens are kept if the model is known to write as many."""
    def figures(found):
        line = found[0].replace("\n", " ")
        times = re.sub(r"[\d.-]+(?= (tokens/s|m?s\b))", "#", line).replace("# ms", "# s")
        return "\n".join(wrapped(times if keeps_counts else re.sub(r"\d[\d,]*", "#", times).replace("# token,", "# tokens,"), columns))

    for pattern in (STATISTICS, GREETING):
        text = over_rows(pattern).sub(figures, text)
    for pattern, placeholder in FIGURES:
        text = over_rows(pattern).sub(placeholder, text)
    return "\n".join(row for line in text.split("\n") for row in cut(line, columns))


def without_answers(text, beginning):
    """The text with {answer} for what follows the row `beginning`, or the top if that is "", up to the line of figures, the next
    prompt or the exit code."""
    out, is_answer = [], False
    if not beginning:
        out, is_answer = ["{answer}"], True
    for row in text.split("\n"):
        if is_answer and re.match(r"[\d#]+ tokens?, [#-]|>>>(?: |$)|code=|error: |note: |context full", row):
            is_answer = False
        if not is_answer:
            out.append(row)
            if row == beginning:
                out.append("{answer}")
                is_answer = True
    return "\n".join(out)


class StoredScreens:
    def __init__(self, file, rewrites):
        self.file, self.rewrites = file, rewrites
        self.stored = {} if rewrites else self.read()
        self.seen, self.differences = {}, []

    def read(self):
        if not self.file.exists():
            return {}
        parts = re.split(rf"(?m)^{TITLE}(.*)\n", self.file.read_text())
        return {title: text.rstrip("\n") for title, text in zip(parts[1::2], parts[2::2])}

    def compare(self, name, look):
        """The finished screen of a step; look() returns its text without what differs from run to run."""
        title = f"{len(self.seen) + 1:02} {name}"
        if self.rewrites:
            self.seen[title] = self.still(look, 1)[0]
            return
        expected = self.stored.get(title)
        self.seen[title] = expected
        if expected is None:
            self.differences.append(f"{self.file.name} has no screen {title!r}")
            return
        text, agrees = self.still(look, STILL_SECONDS, expected)
        if not agrees:
            self.differences.append("\n".join(difflib.unified_diff(expected.split("\n"), text.split("\n"), f"{self.file.name}: {title}",
                                                                   "this screen", lineterm="")))
        if len(self.differences) > MAX_DIFFERENCES:
            self.finish()

    @staticmethod
    def still(look, seconds, expected=None):
        """What look() returns when it is as expected or has not changed for so long."""
        text, since = look(), time.monotonic()
        while text != expected and time.monotonic() - since < seconds:
            time.sleep(0.05)
            now = look()
            if now != text:
                text, since = now, time.monotonic()
        return text, text == expected

    def finish(self):
        if self.rewrites:
            self.file.parent.mkdir(exist_ok=True)
            self.file.write_text("".join(f"{TITLE}{title}\n{text}\n" for title, text in self.seen.items()))
            return
        if not self.differences and list(self.stored) != list(self.seen):
            self.differences.append(f"{self.file.name} has screens that were not seen: {sorted(set(self.stored) - set(self.seen))}")
        if self.differences:
            raise AssertionError("\n\n".join(self.differences) + "\n\nIf the new screens are right: tests/cli/first_hour_test.py INFERNO --rewrite")
