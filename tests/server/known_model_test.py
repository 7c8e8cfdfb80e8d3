"""The model with known answers gives them, before a server is involved: known_model_test.py INFERNO"""
import json
import subprocess
import unittest

import known_model
import scene
from scene import FOLDER, TOOLS, environment, generate, known


def batch(model, lines):
    """The results of one `generate --batch`, in order."""
    path = FOLDER / "lines.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = subprocess.run([scene.PROGRAM, "generate", "-m", model, "--batch", path, "--device", "cpu", "--no-harmony-mask"], capture_output=True, timeout=120,
                          env=environment())
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def asked(word, **more):
    return {"messages": [{"role": "user", "content": word}], "tools": TOOLS, **more}


def calls_of(answer):
    return [(call["function"]["name"], parsed(call["function"]["arguments"])) for call in answer.get("tool_calls", [])]


def parsed(arguments):
    """As JSON, or as text where a model wrote something else."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


class KnownModel(unittest.TestCase):
    def check(self, model, answers, **more):
        results = batch(model, [asked(word, **more) for word in answers])
        for (word, (content, reasoning, calls)), answer in zip(answers.items(), results):
            with self.subTest(word=word):
                self.assertEqual(answer["text"], content)
                self.assertEqual(answer.get("reasoning", ""), reasoning)
                self.assertEqual(calls_of(answer), calls)
                self.assertEqual(answer["finish_reason"], "tool_calls" if calls else "stop")

    def test_answers_as_its_chains_say(self):
        self.check(known(), known_model.ANSWERS)
        self.check(known(), known_model.ANSWERS, temperature=0)

    def test_answers_in_channels(self):
        self.check(known(harmony=True), known_model.HARMONY_ANSWERS)

    def test_keeps_the_text_of_broken_output(self):
        words = list(known_model.HARMONY_FAULTS)
        for word, answer in zip(words, batch(known(harmony=True), [asked(word) for word in words])):
            with self.subTest(word=word):
                self.assertIn(known_model.HARMONY_FAULTS[word], answer["text"] + json.dumps(answer.get("tool_calls", [])))
                self.assertNotIn("<|", answer["text"])

    def test_has_chains_without_an_end(self):
        for harmony in (False, True):
            answer = generate("long", "--chat", "-m", known(harmony), "-n", "200")
            self.assertEqual((answer["completion_tokens"], answer["finish_reason"]), (200, "length"))
            words = (known_model.WORDS * 21)[:200 - 5 * harmony]
            self.assertEqual(answer["text"], "".join(words))

    def test_counts_far_beyond_the_first_positions(self):
        # RoPE's peak must stay sharp over the whole context.
        answer = generate("long", "--chat", "-m", known(), "-n", "6000")
        self.assertEqual(answer["text"], "".join(known_model.WORDS) * 600)

    def test_rolls_dice_by_seed(self):
        rolls = {seed: generate("dice", "--chat", "-m", known(), "-n", "20", "-s", seed)["text"] for seed in (1, 1, 2)}
        self.assertEqual(len(set(rolls.values())), 2)
        self.assertEqual(generate("dice", "--chat", "-m", known(), "-n", "20", "-s", "1")["text"], rolls[1])


if __name__ == "__main__":
    scene.main()
