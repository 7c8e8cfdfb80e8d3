#!/usr/bin/env python3
"""Checks what can be checked about the documentation: it must not promise what the program and the tree do not have.

Commands. Fenced blocks marked `console` in README.md, CONTRIBUTING.md, SECURITY.md, CHANGELOG.md and docs/ are run. In them

    $ inferno inspect tests/data/models/llama      is run in a copy of tests/data and must end with exit code 0
    $ inferno inspect tests/data/nothing  # exit 3    must end with exit code 3
    $ ./dev test                                   must be a command that ./dev help lists
    anything else                                  is output: it must occur in that command's output, in order;
                                                   … matches any text, and alone on a line any lines

Excerpts. A fenced block marked with a language and a file, such as ```cpp src/model/arch/qwen3.cpp, must occur in
that file; a line with … alone matches any lines.

Names. Links and their #anchors must lead somewhere, files named in `backticks` must exist, docs/commands.md must
name every command and option, and the table and the picture of docs/tour.md must agree with src/ and check_layers.py.

Words. Phrases that were once replaced throughout the sources and documents must not come back.

Commits. A hash in the prose must be a commit of this repository, unless FOREIGN_HASHES says whose it is. Where there is no
history, in a tarball or a shallow clone, nothing is said about them.

Prose has lines of at most 160 characters, so that a change shows in a diff. Decisions and docs/lab are records: they may
name files that are gone.

Run by ctest as `docs` and by `./dev check`:  check_docs.py PROGRAM
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from fnmatch import fnmatch

import check_layers

SECONDS = 120
LINE = 160
PATH_FILES = 45
# Records of what was decided and measured at the time.
RECORDS = ("docs/decisions/", "docs/lab/", "docs/builtin-transcript.md")
FOLDERS = ("include", "examples", "src", "tests", "tools", "bench", "cmake", "docs", "models", "deploy", "packaging", ".github", "dev", ".ci")
# `base/error.h`, `upload_ring.h` and `gemv_*.cu` are files too, by the end of their path.
CODE = re.compile(r"[\w./*-]+\.(h|cpp|cu|cuh|py|mjs)")


class Step:
    """One command of a document and the output shown below it."""

    def __init__(self, place, line):
        self.place = place
        expected = re.search(r"\s+# exit (\d+)\s*$", line)
        self.code = int(expected[1]) if expected else 0
        self.command = line[: expected.start()] if expected else re.sub(r"\s{2,}#.*$", "", line)
        self.shown = []


def steps_in(path, text):
    """The commands of all console blocks, in order."""
    steps, fence = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if fence is None:
            if found := re.match(r"\s*```(\w*)", line):
                fence = found[1]
        elif re.match(r"\s*```\s*$", line):
            fence = None
        elif fence == "console":
            if line.startswith("$ "):
                steps.append(Step(f"{path}:{number}", line[2:]))
            elif steps and steps[-1].place.rsplit(":", 1)[0] == str(path) and line.strip():
                steps[-1].shown.append(line)
    return steps


def first_missing(shown, output):
    """The first shown line that the output does not have, None when all are there in order."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    at = 0
    for wanted in shown:
        wanted = " ".join(wanted.split())
        if wanted in ("…", "..."):
            continue
        pattern = ".*".join(re.escape(part) for part in re.split(r"…|\.\.\.", wanted))
        while at < len(lines) and not re.fullmatch(pattern, lines[at]):
            at += 1
        if at == len(lines):
            return wanted
        at += 1
    return None


def run_step(step, program, folder, known_dev_commands):
    words = shlex.split(step.command)
    if words[0] == "./dev":
        if len(words) > 1 and words[1] not in known_dev_commands:
            return f"./dev has no command {words[1]}"
        return None
    if words[0] != "inferno":
        return None  # git clone, cd: shown for people
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ.get('PATH', '')}", "NO_COLOR": "1",
                   "INFERNO_CONFIG": ""}  # not the developer's own
    try:
        result = subprocess.run(["bash", "-c", step.command], cwd=folder, env=environment, timeout=SECONDS,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return f"not finished after {SECONDS} s"
    output = result.stdout.decode("utf-8", "replace")
    if result.returncode != step.code:
        return f"exit code {result.returncode}, expected {step.code}\n{output}"
    missing = first_missing(step.shown, output)
    return None if missing is None else f"the output lacks the line\n  {missing}\n{output}"


def without_blocks(text):
    """The text with fenced blocks blanked, line by line."""
    return re.sub(r"^```.*?^```", lambda found: re.sub(r"[^\n]", "", found[0]), text, flags=re.DOTALL | re.MULTILINE)


def anchors_in(text):
    """The #anchors that GitHub makes of the headings."""
    seen, anchors = {}, set()
    for heading in re.findall(r"^#+ +(.*?) *$", without_blocks(text), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = seen[slug] = seen.get(slug, 0) + 1
        anchors.add(slug if count == 1 else f"{slug}-{count - 1}")
    return anchors


def broken_links(root, path, text):
    prose = re.sub(r"`[^`\n]*`", "", without_blocks(text))
    for link in re.findall(r"\]\(([^)\s]+)[^)]*\)", prose):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = (root / path).parent / name if name else root / path
        if not target.exists():
            yield f"{path}: link to {link}, which is not there"
        elif anchor and target.suffix == ".md" and anchor not in anchors_in(target.read_text(encoding="utf-8")):
            yield f"{path}: link to {link}, which has no such heading"


def files_in(root):
    return {file.relative_to(root).as_posix() for folder in FOLDERS for file in [root / folder, *(root / folder).rglob("*")]
            if file.exists() and "node_modules" not in file.parts}


def missing_files(path, text, files):
    """Files named in backticks that are not in the tree."""
    for name in sorted(set(re.findall(r"`([^`\s]+)`", without_blocks(text)))):
        name = re.sub(r"\b[A-Z]+$", "*", name.split("#")[0].rstrip("/"))  # tests/data/variants/NAME
        whole = name.split("/")[0] in FOLDERS and "/" in name
        if not whole and not CODE.fullmatch(name):
            continue
        patterns = (name,) if whole else (name, f"*/{name}")
        if not any(fnmatch(file, pattern) for pattern in patterns for file in files):
            yield f"{path}: names {name}, which is not there"


def wrong_excerpts(root, path, text):
    """Blocks that name a file and are not in it."""
    for line, file, block in re.findall(r"^(```\w+ +([\w./-]+)) *\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if not (root / file).exists():
            yield f"{path}: {line}: there is no such file"
            continue
        source, at = (root / file).read_text(encoding="utf-8"), 0
        for part in re.split(r"^ *…\n", block, flags=re.MULTILINE):
            at = source.find(part, at)
            if at < 0:
                yield f"{path}: {line}: the file does not have\n{part.rstrip()}"
                break


# Hashes that are no commits of this repository.
FOREIGN_HASHES = {
    "b21e4de": "llama.cpp",
    "4564255a": "the Gateway API",
    "84436a9": "the Gateway API's inference extension",
}


def commits_of(root):
    """The hashes of the history; None if it is not here as a whole."""
    def git(*arguments):
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""
    # A tarball may lie in a repository of someone else.
    if git("rev-parse", "--show-toplevel", "--is-shallow-repository").split("\n")[:2] != [str(root), "false"]:
        return None
    return git("rev-list", "HEAD").split()


def unknown_commits(path, text, commits):
    for number, line in enumerate(without_blocks(text).splitlines(), 1):
        for name in re.findall(r"(?<![\w@/.-])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}(?![\w/-])", line):
            if name not in FOREIGN_HASHES and not any(commit.startswith(name) for commit in commits):
                yield f"{path}:{number}: {name} is not a commit of this repository"


def long_lines(path, text):
    for number, line in enumerate(without_blocks(text).splitlines(), 1):
        if len(line) > LINE and not line.lstrip().startswith(("|", "    ")):
            yield f"{path}:{number}: {len(line)} characters, the limit is {LINE}"


def layer_problems(root, text, may_include):
    """The table rows | `src/layer` | what it may include | … | and the block ```layers against the tree."""
    rows = dict(re.findall(r"^\| `src/(\w+)` \| ([^|]*?) \|", text, re.MULTILINE))
    picture = re.search(r"^```layers\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    layers = {folder.name for folder in (root / "src").iterdir() if folder.is_dir()}
    for layer in sorted(layers - set(rows)):
        yield f"docs/tour.md: the table has no row for src/{layer}"
    for layer in sorted(set(rows) - layers):
        yield f"docs/tour.md: the table has src/{layer}, which is not there"
    for layer in sorted(layers):
        if picture is None or not re.search(rf"\b{layer}\b", picture[1]):
            yield f"docs/tour.md: the picture does not show {layer}"
    for layer in sorted(layers & set(rows)):
        allowed = may_include.get(layer, set())
        wanted = "everything" if allowed is None else ", ".join(name for name in may_include if name in allowed) or "nothing"
        if rows[layer] != wanted:
            yield f"docs/tour.md: src/{layer} may include {wanted}, the table says {rows[layer]}"


def path_problems(text):
    """The path of a new reader through the tour must stay short."""
    section = re.search(r"^## From main to the first token\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    files = set(re.findall(r"`src/[\w/.]+\.(?:h|cpp)`", section[1])) if section else set()
    if not 1 <= len(files) <= PATH_FILES:
        yield f"docs/tour.md: from main to the first token there are {len(files)} files, expected 1 to {PATH_FILES}"


def undocumented(root, program):
    """Commands and options that `--help` lists and docs/commands.md does not have in that command's section."""
    text = (root / "docs/commands.md").read_text(encoding="utf-8")
    sections = {part.split()[0]: part for part in text.split("\n## inferno ")[1:]}
    for command in re.findall(r"^  (\w+) ", help_of(program).split("Subcommands:")[-1], re.MULTILINE):
        for option in sorted(set(re.findall(r"--[a-z][a-z-]*", help_of(program, command))) - {"--help"}):
            if not re.search(re.escape(option) + r"(?![a-z-])", sections.get(command, "")):
                yield f"docs/commands.md: inferno {command}: {option} is missing"
        if command not in sections:
            yield f"docs/commands.md: inferno {command} is missing"


# Phrases that were replaced throughout, with what is written instead: translated word for word, or of another spelling.
OLD_PHRASES = {
    r"found are:": "models here:",
    r"answers to that and fits": "no matching model fits this machine",
    r"\bso many (models|requests|seconds|times|tokens|bytes for)": "at most N, that many",
    r"likeliest so many": "the K most likely",
    r"nobody confirmed|standard input is no terminal": "confirmation needed and stdin is not a terminal",
    r"is said to have": "expected N bytes, received M",
    r"the bytes that came are": "checksum mismatch",
    r"no line of (figures|statistics)": "don't print statistics",
    r"\bbegin anew\b|\btakes? a setting back": "start over, reset",
    r"turns are left|answer back; taken back": "undone, 1 turn left",
    r"only a part of this model is here|are here already": "partly downloaded, already downloaded",
    r"other places are only read": "part of the program",
    r"ended by the limit of tokens": "stopped: token limit",
    r"so it completes text": "base model without a chat template",
    r"does not have the setting, or|is set so anyway": "this model has no thinking mode",
    r"only the hub knows|forbids asking the hub|disables network access": "needs the network, but NAME is set",
    r"no such quantization in": "NAME has no QUANT; available: …",
    r"(made|generated) or loaded in": "loaded in",
    r"cannot write (all of|the whole) (the )?result|what reads it has gone": "could not write the output",
    r"is there and is no regular file": "exists and is not a regular file",
    r"partly here nothing is loaded": "a partly downloaded model is never loaded",
    r"What it cannot do exactly it refuses": "If it cannot do something exactly, it refuses at load time",
    r"arguments make no sense": "invalid arguments",
    r"\blicence|\borganisation": "license, organization",
    r"(planned|rendered|writes?|written|chooses|read|made|built) anew": "again",
    r"as far as there are such": "where they exist",
}
WORDED = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "src", "docs", "include", "examples")


def old_phrases(root):
    """Lines of the sources and documents with a phrase that was replaced."""
    pattern = re.compile("|".join(f"(?:{phrase})" for phrase in OLD_PHRASES), re.IGNORECASE)
    for name in WORDED:
        for file in [root / name] if (root / name).is_file() else sorted((root / name).rglob("*")):
            path = file.relative_to(root).as_posix()
            if not file.is_file() or path.startswith(RECORDS) or file.suffix not in (".h", ".cpp", ".cu", ".cuh", ".md", ".py", ".html", ".txt", ".in"):
                continue
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                if found := pattern.search(line):
                    better = next(better for phrase, better in OLD_PHRASES.items() if re.search(phrase, line, re.IGNORECASE))
                    yield f"{path}:{number}: \"{found[0]}\", better: {better}"


def help_of(program, *command):
    return subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True).stdout


def documents(root):
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"):
        if (root / name).exists():
            yield pathlib.Path(name)
    yield from sorted(file.relative_to(root) for file in (root / "docs").rglob("*.md"))


def dev_commands(root):
    shown = subprocess.run([root / "dev", "help"], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"^  (\w+)", shown, re.MULTILINE))


def problems_in(root, program):
    known = dev_commands(root)
    if (root / "docs/commands.md").exists():
        yield from undocumented(root, program)
    if (root / "docs/tour.md").exists():
        tour = (root / "docs/tour.md").read_text(encoding="utf-8")
        yield from layer_problems(root, tour, check_layers.MAY_INCLUDE)
        yield from path_problems(tour)
    yield from old_phrases(root)
    files = files_in(root)
    commits = commits_of(root)
    for path in documents(root):
        text = (root / path).read_text(encoding="utf-8")
        if commits is not None:
            yield from unknown_commits(path, text, commits)
        yield from broken_links(root, path, text)
        yield from wrong_excerpts(root, path, text)
        if not path.as_posix().startswith(RECORDS):
            yield from missing_files(path, text, files)
            yield from long_lines(path, text)
        with tempfile.TemporaryDirectory() as folder:  # commands write beside a copy, never into the tree
            if (root / "tests/data").exists():
                shutil.copytree(root / "tests/data", pathlib.Path(folder) / "tests/data")
            for step in steps_in(path, text):
                if problem := run_step(step, program, folder, known):
                    yield f"{step.place}: {step.command}: {problem}"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_docs.py PROGRAM")
    root = pathlib.Path(__file__).resolve().parent.parent
    problems = list(problems_in(root, pathlib.Path(sys.argv[1]).resolve()))
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
