#!/usr/bin/env python3
"""Fails when the agreement with the reference was not really tested: a test skipped because the shared data was
missing, or a reference model or Harmony text that no passed test names.

Run by .ci/run:  check_conformance.py TESTS.XML SHARED     (TESTS.XML from ctest --output-junit)
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as xml


def plain(name):
    """Letters and digits only, because GoogleTest allows no others in a test's name."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def words_of(name):
    """The parts of a test's name that may be a model: between slashes and dots."""
    return {plain(part) for part in re.split(r"[/.]", name)}


def reference_names(shared):
    reference = shared / "reference"
    yield from sorted(folder.name for folder in (reference / "models").iterdir() if folder.is_dir())
    yield from sorted(file.stem for file in (reference / "gguf").glob("*.gguf"))
    yield from sorted(file.stem for file in (reference / "harmony").glob("*.txt") if not is_exception(file.stem))


def is_exception(harmony_text):
    """Texts that the reference's README exempts: built-in tools, and another rule for dropping analysis."""
    return "browser" in harmony_text or "python" in harmony_text or harmony_text == "test_keep_analysis_between_finals"


def problems_in(junit, shared):
    if not (shared / "reference").is_dir():
        yield f"{shared}/reference is not there: nothing was compared with the reference"
        return
    named = set()
    for case in xml.parse(junit).getroot().iter("testcase"):
        output = (case.findtext("system-out") or "") + "".join(
            skipped.get("message", "") for skipped in case.iter("skipped"))
        if case.find("skipped") is not None and re.search(r"shared", output, re.IGNORECASE):
            yield f"{case.get('name')}: skipped for want of the shared data"
        if case.get("status") == "run" and case.find("failure") is None:
            named |= words_of(case.get("name"))
    for name in reference_names(shared):
        if plain(name) not in named:
            yield f"{name}: no passed test names this reference"


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: check_conformance.py TESTS.XML SHARED")
    problems = list(problems_in(sys.argv[1], pathlib.Path(sys.argv[2])))
    for problem in problems:
        print(problem)
    if not problems:
        print("conformance: every reference model and text was tested, nothing was skipped")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
