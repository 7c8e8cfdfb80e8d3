#!/usr/bin/env python3
"""What the program understands, as the program itself says: program.py INFERNO > data/program.json

`inferno help` names the commands and `/help` in `play` the slash commands and keys. chats.py makes answers of the list, and
tests/cli/builtin_training_test.py compares the list and every name in an answer with the program.
"""
import functools
import json
import pathlib
import re
import subprocess
import sys

LIST = pathlib.Path(__file__).resolve().parent / "data" / "program.json"
KEY = r"(?:Ctrl|Alt)-[A-Z][a-z]*|\bTab\b"
OPTION = r"(?<![\w-])--[a-z][a-z0-9-]*"
SLASH = r"(?<![\w/.:~<\]])/(?:save!|[a-z]+(?:/[a-z]+)*|\?)"


def said(inferno, *arguments, stdin=""):
    done = subprocess.run([inferno, *arguments], input=stdin, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def sections(text):
    """{name: (arguments, meaning)} of the lines '  name   meaning', with the lines that continue them."""
    found, name = {}, None
    for line in text.splitlines():
        if match := re.match(r"  (\S.*?)  +(\S.*)$", line):
            name = match[1]
            found[name] = match[2]
        elif name and re.match(r" {4,}\S", line):
            found[name] += " " + line.strip()
        else:
            name = None
    return found


def understood(inferno):
    """{"commands": {name: [usage, meaning]}, "slash": {words: meaning}, "keys": {keys: meaning}}"""
    commands = {}
    for name in sections(said(inferno, "help").split("\nExamples")[0]):
        meaning, usage = re.match(r"(.*?)\n\nUsage: inferno (.*?)\n", said(inferno, "help", name), re.S).groups()
        commands[name] = [usage.replace(" [OPTIONS]", ""), " ".join(meaning.split())]
    # Notes such as the name of the model share the stream, but are no table.
    listed = subprocess.run([inferno, "play", "builtin", "--device", "cpu"], input="/help\n/bye\n", capture_output=True, text=True)
    table = sections(listed.stdout + listed.stderr)
    return {"commands": commands, "slash": {words: meaning for words, meaning in table.items() if words.startswith("/")},
            "keys": {words: meaning for words, meaning in table.items() if not words.startswith("/")}}


class Program:
    """Answers whether the program understands a name."""

    def __init__(self, inferno):
        self.inferno, self.listed = inferno, understood(inferno)
        helps = {name: said(inferno, "help", name) for name in self.listed["commands"]}
        self.options = {name: set(re.findall(r"--[a-z][a-z0-9-]*", text)) for name, text in helps.items()}
        self.options[""] = set(re.findall(r"--[a-z]+", said(inferno, "completion", "bash").split("compgen -W")[1].splitlines()[0]))
        # The paths of the server stand in the help texts.
        self.slash = {word for words in self.listed["slash"] for word in re.findall(SLASH, words)}
        self.slash |= {path for text in helps.values() for path in re.findall(SLASH, text)}
        self.keys = {key for text in [*self.listed["keys"], *self.listed["keys"].values()] for key in re.findall(KEY, text)}

    @functools.lru_cache(maxsize=None)
    def command(self, name):
        """The command of a name, which may be its second one; None if there is none."""
        if name in self.listed["commands"] or name == "help":
            return name
        match = re.search(r"^Usage: inferno (\S+)", said(self.inferno, "help", name), re.M)
        return match[1] if match else None

    def unknown(self, text):
        """The commands, options, slash commands and keys in a text that the program does not have."""
        wrong = [f"inferno {name}" for name in re.findall(r"\binferno ([a-z][a-z-]*)", text) if not self.command(name)]
        wrong += [name for name in re.findall(SLASH, text) if name not in self.slash]
        wrong += [key for key in re.findall(KEY, text) if key not in self.keys]
        every = set().union(*self.options.values())
        for line in re.findall(r"`([^`]*)`", text):
            match = re.match(r"inferno ([a-z]+)", line)
            known = self.options.get(self.command(match[1]), every) if match else every
            wrong += [f"{option} in {line}" for option in re.findall(OPTION, line) if option not in known | {"--help"}]
        return wrong + [option for option in re.findall(OPTION, re.sub(r"`[^`]*`", "", text)) if option not in every]


def answer(listed, name):
    """What to do, made of what the program says of `name`: a command, '/save' or 'Ctrl-C'."""
    def lowered(text):
        return text[0].lower() + text[1:].rstrip(".")

    if name in listed["commands"]:
        usage, meaning = listed["commands"][name]
        required = re.sub(r" \[.*?\]|\.\.\.", "", usage)
        return f"Run `inferno {required}` to {lowered(re.split('[;:]', meaning)[0])}."
    (words,) = [words for words in listed["slash"] if name in re.findall(SLASH, words)]
    spellings, arguments = re.match(r"(/[^\s,]+(?:, /[^\s,]+)*)(?: \[?([^\]]*)\]?)?$", words).groups()
    forms = [f"`{spelling} {argument}`" if argument else f"`{spelling}`"
             for spelling in spellings.split(", ") for argument in (arguments or "").split(" or ")]
    meaning = listed["slash"][words].split(";")[0].replace("this list", "what you can type")
    return f"Type {', '.join(forms[:-1])}{' or ' if len(forms) > 1 else ''}{forms[-1]} to {lowered(meaning)}."


if __name__ == "__main__":
    print(json.dumps(understood(sys.argv[1]), indent=1))
