#!/usr/bin/env python3
"""Tokenizer and token files from our own text and the corpus.  prepare.py --corpus FOLDER --out FOLDER

Writes tokenizer.json, and for each source tokens as int16 with, for conversations, a mask of what the model says.
"""
import argparse
import functools
import json
import lzma
import multiprocessing
import pathlib
import random
import re
import shutil
import time

import numpy
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import chats
from model_ids import CONTROL, VOCABULARY

# Llama 3's, because a GGUF file names a pattern and cannot hold one.
PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def read(corpus, name):
    return lzma.open(pathlib.Path(corpus) / name, "rt", encoding="utf-8").read()


def plain(text):
    """Typographic marks as one types them, blanks as they should be."""
    for old, new in (("“", '"'), ("”", '"'), ("‘", "'"), ("’", "'"), ("—", " - "), ("\u00a0", " "), ("…", "...")):
        text = text.replace(old, new)
    return re.sub(r"[ \t]+\n", "\n", re.sub(r"[ \t]+", " ", text))


@functools.lru_cache(maxsize=None)
def small_stories(corpus):
    """TinyStories and African Storybook, without doubles."""
    stories = re.split(r"<\|endoftext\|>|\n\s*\n\s*\n", read(corpus, "tinystories_fragments.txt.xz"))
    stories += re.split(r"<\|endoftext\|>", read(corpus, "african_storybook_ccby.txt.xz"))
    stories = [plain(story).strip() for story in stories]
    good = [s for s in dict.fromkeys(stories) if 300 < len(s) < 2500 and s[-1] in '.!?"' and s[0] in '"ABCDEFGHIJKLMNOPQRSTUVWXYZ']
    return [re.sub(r"\n(?!\n)", "\n\n", re.sub(r"\n\s*\n", "\n", s)) for s in good]


@functools.lru_cache(maxsize=None)
def fairy_pieces(corpus):
    text = plain(read(corpus, "gutenberg_fairy_tales.txt.xz"))
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", text)
    return [text[at:at + 20_000] for at in range(0, len(text), 20_000)]


def train_tokenizer(corpus, out):
    rng = random.Random(7)
    roles = ["assistant", "user", "system", "developer", "final", "analysis", "commentary"] * 2000
    texts = [re.sub(r"<\|\w+\|>", "\n", t) for t in chats.conversations(99, 12_000)]
    pieces = fairy_pieces(corpus)
    texts += small_stories(corpus) + rng.sample(pieces, min(len(pieces), 250)) + roles
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PATTERN), "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=CONTROL, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(out / "tokenizer.json"))
    return tokenizer


def encoded(task):
    """One worker's share: makes or takes texts, returns their tokens. Run in a process of its own."""
    path, kind, argument = task
    tokenizer = Tokenizer.from_file(path)
    texts = chats.conversations(*argument) if kind == "chats" else argument
    end = "" if kind == "chats" else "<|endoftext|>"
    ids = [i for text in texts for i in tokenizer.encode(text + end, add_special_tokens=False).ids]
    return kind, numpy.array(ids, dtype=numpy.int16)


def spoken(ids, start, assistant):
    """How much each token counts: nothing where others speak, 1 where the model does, 4 where it answers briefly."""
    starts = numpy.flatnonzero(ids == start)
    lengths = numpy.diff(numpy.append(starts, len(ids)))
    flags = (ids[numpy.minimum(starts + 1, len(ids) - 1)] == assistant) * numpy.where(lengths < 80, 4, 1)
    mask = numpy.concatenate([numpy.zeros(starts[0], int), numpy.repeat(flags, lengths)])
    mask[starts] = 0
    mask[numpy.minimum(starts + 1, len(ids) - 1)] = 0
    return mask.astype(numpy.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--conversations", type=int, default=320_000)
    parser.add_argument("--tokenizer", help="an existing tokenizer.json; without it one is trained")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    begin = time.time()
    if arguments.tokenizer:
        shutil.copy(arguments.tokenizer, arguments.out / "tokenizer.json")
        tokenizer = Tokenizer.from_file(arguments.tokenizer)
    else:
        tokenizer = train_tokenizer(arguments.corpus, arguments.out)
    print(f"tokenizer: {tokenizer.get_vocab_size()} tokens, {time.time() - begin:.0f} s", flush=True)
    path, share = str(arguments.out / "tokenizer.json"), 4000
    tasks = [(path, "chats", (arguments.seed * 1_000_000 + i, share)) for i in range(arguments.conversations // share)]
    stories, pieces = small_stories(arguments.corpus), fairy_pieces(arguments.corpus)
    tasks += [(path, "stories", stories[i:i + 500]) for i in range(0, len(stories), 500)]
    tasks += [(path, "fairy", pieces[i:i + 100]) for i in range(0, len(pieces), 100)]
    found = {"chats": [], "stories": [], "fairy": []}
    with multiprocessing.get_context("spawn").Pool() as pool:
        for kind, ids in pool.imap(encoded, tasks, chunksize=1):
            found[kind].append(ids)
    start, assistant = tokenizer.token_to_id("<|start|>"), tokenizer.token_to_id("assistant")
    assert assistant is not None, "'assistant' must be one token"
    for kind, parts in found.items():
        ids = numpy.concatenate(parts)
        mask = spoken(ids, start, assistant) if kind == "chats" else numpy.ones(len(ids), numpy.uint8)
        numpy.save(arguments.out / f"{kind}.ids.npy", ids)
        numpy.save(arguments.out / f"{kind}.mask.npy", mask)
        print(f"{kind}: {len(ids) / 1e6:.1f} M tokens, {(mask > 0).mean():.2f} of them learned, {time.time() - begin:.0f} s", flush=True)
    (arguments.out / "ready").write_text(json.dumps({kind: sum(map(len, parts)) for kind, parts in found.items()}))


if __name__ == "__main__":
    main()
