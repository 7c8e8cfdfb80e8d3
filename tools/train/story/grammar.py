"""The little language in which the stories are written.

    {red|green|}     one of the alternatives, which may nest and may be empty
    [h]              a slot: looked up in the cast (a text, or a function that returns one)

A variant is a line; a beat is a list of variants of which one is taken; a plot is a list of beats.
"""
import functools
import pathlib
import re

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
VOWEL_SOUND = re.compile(r"\b([Aa]) (?=[aeiouAEIOU]|honest|hour)(?!(?:uni|use|usu|one\b|eu|yo))")
CONSONANT_SOUND = re.compile(r"\b([Aa])n (?=(?:uni|use|usu|one\b|eu)|(?!honest|hour)[^aeiouAEIOU\W])")
SENTENCE_START = re.compile(r'(^"?|[.!?] "?|(?<!\.\.)\."? |\n"?)([a-z])')
# After a quoted question or call either its speaker follows, in small letters, or a new sentence.
AFTER_CALL = re.compile(r'([!?]" )([a-z])([^.!?"]*)')
SPEAKER = re.compile(r"^\S*(?: \S+){0,4}? ?\b(said|asked|cried|shouted|called|whispered|thought|laughed|wondered|sobbed|begged|sighed|"
                     r"roared|growled|told|grumbled|answered|sang|came the|was the)\b")


@functools.lru_cache(maxsize=None)
def parse(text):
    """'a{b|c}[d]' as a tuple of parts: a text, ('slot', name) or ('choice', (parts, parts, …))."""
    parts, end = _parse_parts(text, 0, top=True)
    if end != len(text):
        raise ValueError(f"unbalanced braces in {text!r}")
    return parts


def _parse_parts(text, at, top):
    parts, plain = [], at
    while at < len(text):
        letter = text[at]
        if letter not in "{[|}" or (top and letter == "|"):
            at += 1
            continue
        if plain < at:
            parts.append(text[plain:at])
        if letter in "|}":
            return tuple(parts), at
        if letter == "[":
            end = text.index("]", at)
            parts.append(("slot", text[at + 1:end]))
            at = end + 1
        else:
            choice, at = _parse_choice(text, at + 1)
            parts.append(choice)
        plain = at
    if not top:
        raise ValueError(f"missing }} in {text!r}")
    if plain < at:
        parts.append(text[plain:at])
    return tuple(parts), at


def _parse_choice(text, at):
    options = []
    while True:
        parts, at = _parse_parts(text, at, top=False)
        options.append(parts)
        if text[at] == "}":
            return ("choice", tuple(options)), at + 1
        at += 1


def expand(parts, cast, rng):
    """The text of parsed parts, with slots from `cast`, a mapping of names to texts or functions of rng."""
    out = []
    for part in parts:
        if isinstance(part, str):
            out.append(part)
        elif part[0] == "choice":
            out.append(expand(rng.choice(part[1]), cast, rng))
        else:
            value = cast[part[1]]
            out.append(value(rng) if callable(value) else value)
    return "".join(out)


def polish(text):
    """Articles, capitals and spaces as they should be."""
    text = re.sub(r" +", " ", text.replace("~", " ")).strip()
    text = re.sub(r" ([.,!?])", r"\1", text)
    text = VOWEL_SOUND.sub(r"\1n ", text)
    text = CONSONANT_SOUND.sub(r"\1 ", text)
    text = SENTENCE_START.sub(lambda found: found[1] + found[2].upper(), text)
    return AFTER_CALL.sub(_after_call, text)


def _after_call(found):
    first = found[2] if SPEAKER.match(found[2] + found[3]) else found[2].upper()
    return found[1] + first + found[3]


class Plot:
    def __init__(self, name):
        self.name, self.traits, self.themes, self.excluded, self.only = name, [], [], set(), None
        self.beats, self.slots = [], set()

    def suits(self, kind):
        return kind not in self.excluded and (self.only is None or kind in self.only)


def read_plots():
    plots = []
    for file in sorted((DATA / "plots").glob("*.txt")):
        for block in file.read_text().split("@plot ")[1:]:
            plots.append(_read_plot(block))
    return plots


def _read_plot(block):
    head, *beats = re.split(r"^---.*\n", block, flags=re.M)
    lines = head.strip().split("\n")
    plot = Plot(lines[0].strip())
    for line in lines[1:]:
        key, values = line.split(":")
        values = values.split()
        if key == "traits":
            plot.traits = values
        elif key == "themes":
            plot.themes = values
        elif key == "not":
            plot.excluded = set(values)
        elif key == "only":
            plot.only = set(values)
        else:
            raise ValueError(f"{plot.name}: unknown key {key}")
    for beat in beats:
        plot.beats.append([parse(line.strip()) for line in beat.strip().split("\n") if line.strip()])
    plot.slots = set(re.findall(r"\[(\w+)\]", block))
    return plot


def read_lines(name):
    """The lines of a data file without comments."""
    return [line.strip() for line in (DATA / name).read_text().split("\n") if line.strip() and line[0] != "#"]


def read_table(name):
    """'key: a | b | c' as {key: [a, b, c]}."""
    table = {}
    for line in read_lines(name):
        key, values = line.split(":", 1)
        table[key.strip()] = [value.strip() for value in values.split("|")]
    return table


def read_words(name):
    """'key: a b c' as {key: [a, b, c]}; '~' joins words."""
    return {key: values[0].split() for key, values in read_table(name).items()}


def read_sections(name):
    """'@key' followed by lines, as {key: [line, …]}."""
    sections, key = {}, None
    for line in read_lines(name):
        if line.startswith("@"):
            key = line[1:]
            sections[key] = []
        else:
            sections[key].append(line)
    return sections
