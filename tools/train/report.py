#!/usr/bin/env python3
"""A transcript as Markdown.  report.py TRANSCRIPT > docs/builtin-transcript.md"""
import json
import pathlib
import sys


def quoted(text):
    return "\n".join("> " + line if line else ">" for line in text.split("\n"))


def main():
    transcript = json.loads(pathlib.Path(sys.argv[1]).read_text())
    spoken = transcript["at 0.7"]
    print("# The built-in model in its own words\n\nTemperature 0.7, top-p 0.95, one sample each. The figures are in [builtin-model.md](builtin-model.md).\n")
    print("## Twenty stories\n")
    for row in spoken["stories"]:
        print(f"**{row['request']}** ({row['words']} words)\n\n{quoted(row['story'])}\n")
    print("## Forty held-out questions\n\n| question | answer | |\n|---|---|---|")
    for row in spoken["heldout_questions"]:
        print(f"| {row['question']} | {row['answer'].replace('|', '/')} | {'right' if row['right'] else '**wrong**'} |")
    print("\n## Conversations\n")
    for talk in transcript["talks"]:
        for role, text in talk:
            print(f"**{role}**\n\n{quoted(text)}\n")
        print("---\n")


if __name__ == "__main__":
    main()
