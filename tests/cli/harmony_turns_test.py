"""Turns in Harmony with tools and schemas and without: harmony_turns_test.py INFERNO [TURNS [TEMPERATURE]]

The model is the built-in one with tools in its prompts. With the mask no reply may break Harmony's form: the parser of replies has nothing to
warn of. The same turns without the mask are counted beside it, and how often the mask forbade the token that the model preferred (in turns at
temperature 0, at most one for each question and kind). Unless a temperature is given, half of the turns are at 1 and half at 4, where many break
the form without the mask."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models  # noqa: E402

SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}}, "required": ["name"],
          "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "look_up", "description": "Looks a word up.", "parameters": {
    "type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"], "additionalProperties": False}}}
KINDS = {"plain": {}, "tools": {"tools": [TOOL]}, "schema": {"schema": SCHEMA}, "both": {"tools": [TOOL], "schema": SCHEMA}}
QUESTIONS = [f"{start} {name}{end}" for start, end in (("Tell me a story about", "."), ("What is", "?"), ("Who knows", "?"), ("I have lost", "!"))
             for name in ("a fox", "the forest", "the king", "my shoe", "the moon", "a bridge", "the model", "a boat", "the wind", "two girls")]


def turns(program, lines, *arguments):
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS")}
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([program, "generate", "--device", "cpu", "--chat", "--parallel", "32", "--batch", "-", *arguments], input=text.encode(),
                          capture_output=True, env={**kept, "HOME": "/nonexistent"})
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(lines) or any("error" in answer for answer in answers):
        sys.exit("%d of %d turns were answered\n%s\n%s" % (
            len(answers), len(lines), [a["error"] for a in answers if "error" in a][:3], done.stderr.decode()[-2000:]))
    return answers


def line(number, kind, **fields):
    question = QUESTIONS[number // len(KINDS) % len(QUESTIONS)]
    return {"id": number, "messages": [{"role": "user", "content": question}], "seed": number, "max_tokens": 48, **KINDS[kind], **fields}


def ends_of(answers):
    ends = {}
    for answer in answers:
        ends[answer["finish_reason"]] = ends.get(answer["finish_reason"], 0) + 1
    return ends


def check(program, model, count, temperature):
    kinds = [list(KINDS)[i % len(KINDS)] for i in range(count)]
    # Every second group of turns is so hot that the model alone does not find the form.
    heats = [temperature or (4.0 if i % 8 >= 4 else 1.0) for i in range(count)]
    lines = [line(i, kind, temperature=heats[i]) for i, kind in enumerate(kinds)]
    masked = turns(program, lines, "-m", model)
    # A schema would bring the mask with it.
    free = [one for one, kind in zip(lines, kinds) if kind in ("plain", "tools")]
    unmasked = turns(program, free, "-m", model, "--no-harmony-mask")
    bad = [answer for answer in masked if answer.get("warnings") or answer["finish_reason"] not in ("stop", "length", "tool_calls")]
    broken = sum(bool(answer.get("warnings")) for answer in unmasked)
    print("with the mask: %d of %d turns broke the form; without: %d of %d" % (len(bad), len(masked), broken, len(unmasked)))
    for kind in KINDS:
        asked = min(len(QUESTIONS), max(4, count // 10 // len(KINDS)))
        greedy = turns(program, [line(i * len(KINDS), kind, temperature=0.0, logprobs=1) for i in range(asked)], "-m", model)
        tokens = [token for answer in greedy for token in answer["logprobs"]["content"]]
        forbidden = sum(token["top_logprobs"][0]["id"] != token["id"] for token in tokens)
        print("at temperature 0, %s: in %d turns the mask forbade %d of %d tokens that the model preferred" % (kind, asked, forbidden, len(tokens)))
    for answer in bad[:3]:
        print("  ", json.dumps(answer)[:300])
    print("ends with the mask:", ends_of(masked))
    print("ends without:", ends_of(unmasked))
    # At the usual temperatures the test could not fail if the model kept to the form by itself.
    return 1 if bad or (temperature is None and broken == 0) else 0


def main():
    program = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 80
    temperature = float(sys.argv[3]) if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory() as folder:
        return check(program, models.harmony_model(folder + "/model"), count, temperature)


if __name__ == "__main__":
    sys.exit(main())
