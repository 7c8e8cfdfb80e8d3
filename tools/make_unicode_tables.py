#!/usr/bin/env python3
"""Writes src/chat/jinja/unicode_{letters,numbers,upper,lower}.cpp: what Python's str knows about characters.

Run with the Python whose answers templates are to get; the Unicode version is noted in the files.
"""
import pathlib
import unicodedata

OUT = pathlib.Path(__file__).resolve().parent.parent / "src/chat/jinja"
ALL = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
SURROGATES = range(0xD800, 0xE000)
CLASSES = {
    "alpha": str.isalpha, "decimal": str.isdecimal, "digit": str.isdigit, "numeric": str.isnumeric,
    "upper": str.isupper, "lower": str.islower,
    "title": lambda c: unicodedata.category(c) == "Lt", "printable": str.isprintable,
}


def ranges(test):
    found = []
    for character in ALL:
        code = ord(character)
        if not test(character):
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def strided(test):
    """Ranges of every code point, or of every second one: letters often alternate in case."""
    found = []
    for first, last in ranges(test):
        if found and first == last and found[-1][1] == first - 2 and found[-1][2] in (0, 2):
            found[-1][1], found[-1][2] = last, 2
        else:
            found.append([first, last, 1 if last > first else 0])
    return [(a, b, s or 1) for a, b, s in found]


def mappings(convert, usual=lambda character: character):
    """What differs from the usual: title case is upper case but for a few, folding is lower case."""
    simple, full = [], []
    for character in ALL:
        changed = convert(character)
        if changed == usual(character):
            continue
        code = ord(character)
        if len(changed) > 1:
            full.append((code, [ord(c) for c in changed]))
            continue
        delta = ord(changed) - code
        last = simple[-1] if simple else None
        if last and last[3] == delta and code - last[1] in (1, 2) and last[2] in (0, code - last[1]):
            last[1], last[2] = code, code - last[1]
        else:
            simple.append([code, code, 0, delta])
    return [(a, b, s or 1, d) for a, b, s, d in simple], full


def fill(items, width=108):
    lines, line = [], "   "
    for item in items:
        if len(line) + 1 + len(item) > width:
            lines.append(line)
            line = "   "
        line += " " + item
    return "\n".join(lines + [line])


def write(name, about, body):
    text = f"""// {about} Unicode {unicodedata.unidata_version}, as
// Python's str answers. Made by tools/make_unicode_tables.py.
#include "chat/jinja/unicode_tables.h"

namespace inferno::jinja::unicode {{
namespace {{

{body}
}}  // namespace inferno::jinja::unicode
"""
    (OUT / name).write_text(text)


def class_tables(names):
    tables, functions = "", ""
    for name in names:
        items = [f"{{{a:#x}, {b:#x}, {s}}}," for a, b, s in strided(CLASSES[name])]
        tables += f"constexpr Range {name}_table[] = {{\n{fill(items)}\n}};\n"
        functions += f"std::span<const Range> {name}_ranges() {{ return {name}_table; }}\n"
    return tables + "\n}  // namespace\n\n" + functions


def mapping_tables(kinds):
    tables, functions = "", ""
    for name, functions_of_kind in kinds.items():
        simple, full = mappings(*functions_of_kind)
        items = [f"{{{a:#x}, {b:#x}, {s}, {d}}}," for a, b, s, d in simple]
        tables += f"constexpr Shift {name}_table[] = {{\n{fill(items)}\n}};\n"
        items = [f"{{{c:#x}, {{{', '.join(f'{x:#x}' for x in to)}}}}}," for c, to in full]
        tables += f"constexpr Expansion {name}_expansion_table[] = {{\n{fill(items)}\n}};\n"
        functions += f"std::span<const Shift> {name}_shifts() {{ return {name}_table; }}\n"
        functions += f"std::span<const Expansion> {name}_expansions() {{ return {name}_expansion_table; }}\n"
    return tables + "\n}  // namespace\n\n" + functions


write("unicode_letters.cpp", "Letters and their case.", class_tables(["alpha", "upper", "lower", "title"]))
write("unicode_numbers.cpp", "Digits, numbers and what can be printed.",
      class_tables(["decimal", "digit", "numeric", "printable"]))
write("unicode_upper.cpp", "Upper and title case.",
      mapping_tables({"to_upper": (str.upper,), "to_title": (str.title, str.upper)}))
write("unicode_lower.cpp", "Lower case and folding.",
      mapping_tables({"to_lower": (str.lower,), "to_folded": (str.casefold, str.lower)}))
