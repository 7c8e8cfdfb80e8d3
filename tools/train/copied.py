#!/usr/bin/env python3
"""How much of the model's output is copied: the longest run of words that a story shares with a text.

    copied.py TRANSCRIPT CORPUS [OWN_CONVERSATIONS]

Prints for each story the longest run shared with the corpus (others' text) and with our own training conversations.
"""
import json
import lzma
import pathlib
import re
import statistics
import sys

import chats

SEED = 4  # words of the run that is looked up first


def words(text):
    return re.findall(r"[a-z0-9']+", text.lower().replace("’", "'"))


def index(stories):
    """Where each run of SEED words occurs: {run: [(story, position), …]}."""
    places = {}
    for number, story in enumerate(stories):
        for at in range(len(story) - SEED + 1):
            places.setdefault(tuple(story[at:at + SEED]), []).append((number, at))
    return places


def extend(longest, stories, places, text):
    """Raises longest[story] to (length, the words) of the longest run shared with this text."""
    for at, run in enumerate(zip(*(text[i:] for i in range(SEED)))):
        for number, start in places.get(run, ()):
            story, length = stories[number], SEED
            while start + length < len(story) and at + length < len(text) and story[start + length] == text[at + length]:
                length += 1
            if length > longest[number][0]:
                longest[number] = (length, " ".join(story[start:start + length]))


def corpus_texts(folder):
    for file in sorted(pathlib.Path(folder).glob("*.xz")):
        with lzma.open(file, "rt", encoding="utf-8") as stream:
            while piece := stream.readlines(4_000_000):
                yield "".join(piece)


def own_texts(count, seed=1, share=4000):
    for part in range(count // share):
        for text in chats.conversations(seed * 1_000_000 + part, share):
            yield from re.findall(r"final<\|message\|>([^<]*)", text)


def report(name, requests, stories, longest):
    lengths = [run[0] for run in longest]
    print(f"\nlongest run of words shared with {name}: median {statistics.median(lengths)}, largest {max(lengths)}")
    for request, story, (length, run) in zip(requests, stories, longest):
        print(f"  {length:3} of {len(story):3}  {request}  | {run[:90]}")


def main():
    rows = json.loads(pathlib.Path(sys.argv[1]).read_text())["at 0.7"]["stories"]
    requests, stories = [row["request"] for row in rows], [words(row["story"]) for row in rows]
    places = index(stories)
    sources = {"others' text": corpus_texts(sys.argv[2])}
    if len(sys.argv) > 3:
        sources["our own conversations"] = own_texts(int(sys.argv[3]))
    for name, texts in sources.items():
        longest = [(0, "")] * len(stories)
        for text in texts:
            extend(longest, stories, places, words(text))
        report(name, requests, stories, longest)


if __name__ == "__main__":
    main()
