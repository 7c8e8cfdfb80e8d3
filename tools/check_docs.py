#!/usr/bin/env python3
"""Runs the commands that the documentation shows, so that what a reader copies works.

Fenced blocks marked `console` in README.md, CONTRIBUTING.md, SECURITY.md and docs/ are read. In them

    $ inferno inspect tests/data/models/llama      is run in a copy of tests/data and must end with exit code 0
    $ inferno inspect tests/data/nothing  # exit 3    must end with exit code 3
    $ ./dev test                                   must be a command that ./dev help lists
    anything else                                  is output: it must occur in that command's output, in order;
                                                   … stands for any text, and alone on a line for any lines

Links to files of the repository must lead somewhere, and docs/commands.md must name every command and option.

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

SECONDS = 120


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
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ.get('PATH', '')}", "NO_COLOR": "1"}
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


def broken_links(root, path, text):
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
        if "://" not in link and not link.startswith("mailto:") and not (root / path).parent.joinpath(link).exists():
            yield f"{path}: link to {link}, which is not there"


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


def help_of(program, *command):
    return subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True).stdout


def documents(root):
    for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"):
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
    for path in documents(root):
        text = (root / path).read_text(encoding="utf-8")
        yield from broken_links(root, path, text)
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
