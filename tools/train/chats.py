"""Conversations to learn from: stories, continuations, questions about Inferno, small talk, and mixtures of them.

A conversation is a list of (role, text) and becomes text in Harmony's form. Run as a script to read some:
    chats.py [SEED] [COUNT]
"""
import datetime
import json
import random
import sys

import program
from story import requests
from story.grammar import expand, parse, read_lines, read_table

ANOTHER = ["Another one, please.", "another one", "Tell me another story.", "One more, please.", "More!", "one more",
           "Another story, please.", "Can I have another one?", "And another one?", "Again, please. A new one.", "tell me another"]
ANOTHER_ABOUT = ["Now one about X.", "And now a story about X, please.", "Another one, about X.", "Can you tell one about X?",
                 "now one about X", "Great! Now tell me a story about X.", "And one about X?", "Next: a story about X.",
                 "Thank you. Now a story about X, please.", "ok, now X"]
BEFORE_QUESTION = ["", "", "", "", "", "", "Hi, ", "Hello, ", "Please, ", "Hey, ", "Question: ", "I have a question: ",
                   "Tell me, ", "One question: ", "Sorry, ", "Excuse me, ", "ok, ", "And ", "So, ", "Well, ", "quick question: "]
AFTER_QUESTION = ["", "", "", "", "", "", ", please", " with inferno", " in inferno", " here", " exactly", " then", " now"]
FRAMES, SYNONYMS = read_table("small_frames.txt"), read_table("synonyms.txt")
LISTED = json.loads(program.LIST.read_text())
COMMANDS = [[name] for name in LISTED["commands"]]
# How people ask for a name, beside the questions of its own.
ABOUT = ["what {does X do|is X for}", "{explain|how do I use} X"]
ABOUT_SLASH = [*ABOUT, "what happens when I type X", "is there {a|the} {command X|X command}"]
INSTRUCTIONS = ["You are a helpful assistant.", "Be brief.", "You tell stories to children.", "Answer in simple English.",
                "You are Inferno's built-in model.", "Be friendly.", "You are a storyteller.", "Answer questions about Inferno."]


class Facts:
    """Answers, each with the ways to ask for them."""

    def __init__(self, *files):
        self.pairs = []  # ([answer, …], [parsed question, …])
        for name in files:
            self._read(name)

    def _read(self, name):
        answers, questions = [], []
        for line in read_lines(name) + ["A: end"]:
            if line.startswith("A+ "):
                questions = self._known(line[3:])
            elif line.startswith(("A: ", "N: ")):
                if questions and answers:
                    self.pairs.append((answers, questions))
                    answers, questions = [], []
                answers.append(line[3:] if line[0] == "A" else program.answer(LISTED, line[3:]))
                if line[0] == "N":
                    questions = self._about(line[3:])
            else:
                questions += [parse(text.strip()) for text in split_top(line[3:])]

    @staticmethod
    def _about(name):
        forms = [text.replace("X", name) for text in ABOUT_SLASH] if name[0] == "/" else [text.replace("X", f"inferno {name}") for text in ABOUT]
        return [parse(text) for text in forms]

    def _known(self, beginning):
        """The questions of the one answer that begins so, to be added to."""
        found = [questions for answers, questions in self.pairs if answers[0].startswith(beginning)]
        if len(found) != 1:
            raise ValueError(f"{len(found)} answers begin with {beginning!r}")
        return found[0]

    def draw(self, rng):
        answers, questions = rng.choice(self.pairs)
        return expand(rng.choice(questions), {}, rng), rng.choice(answers)


def split_top(text):
    """Splits at '|' outside braces."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == "|" and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return parts + [text[start:]]


USE, PROGRAM = Facts("questions_use.txt", "questions_more.txt", "questions_extra.txt"), Facts("questions_program.txt", "questions_program_more.txt")
SMALL_TALK, REFUSALS = Facts("smalltalk.txt"), Facts("refusals.txt")


def typo(text, rng):
    at = rng.randrange(1, max(2, len(text) - 2))
    kind = rng.random()
    if kind < 0.4:
        return text[:at] + text[at + 1:]
    if kind < 0.8:
        return text[:at] + text[at + 1:at + 2] + text[at] + text[at + 2:]
    return text[:at] + text[at] + text[at:]


def reworded(question, rng):
    """Some words exchanged for others that mean the same."""
    share = rng.choice([0, 0, 0.25, 0.5])
    words = question.split(" ")
    for at, word in enumerate(words):
        command = at > 0 and words[at - 1] == "inferno" or words[at + 1:at + 2] == ["command"]
        if word in SYNONYMS and not command and rng.random() < share:
            words[at] = rng.choice(SYNONYMS[word])
    return " ".join(words)


def named(question, rng):
    """Inferno with a capital letter or without; in a command line always without."""
    words = question.split(" ")
    for at, word in enumerate(words):
        bare = word.rstrip("?,'s")
        if bare == "inferno" and words[at + 1:at + 2] not in COMMANDS and rng.random() < 0.6:
            words[at] = "Inferno" + word[len(bare):]
    return " ".join(words)


def dressed(question, rng, plain=False):
    """The question as people type it: other words, other beginnings, capitals, marks, now and then a mistake."""
    if not plain:
        question = reworded(question, rng)
        for start in ("how do I ", "how can I "):
            if question.startswith(start) and rng.random() < 0.6:
                question = rng.choice(FRAMES["task"]).format(question[len(start):])
                break
        question = rng.choice(BEFORE_QUESTION) + question
        if rng.random() < 0.2:
            question += rng.choice(AFTER_QUESTION)
        question = named(question, rng)
    if rng.random() < 0.06 and len(question) > 8:
        question = typo(question, rng)
    draw = rng.random()
    if draw < 0.65:
        question = question[0].upper() + question[1:]
    elif draw < 0.7:
        question = question.lower()
    if question[-1] not in "?!.":
        question += rng.choice(["?", "?", "?", "", "", ".", "??"]) if not plain else rng.choice(["", "", "!", "."])
    if not plain and rng.random() < 0.25:
        before = rng.random() < 0.5
        question = f"{rng.choice(FRAMES['before'])} {question}" if before else f"{question} {rng.choice(FRAMES['after'])}"
    return question


def story_turn(rng, first):
    if first:
        return requests.request_and_story(rng)
    if rng.random() < 0.5:
        _, text = requests.request_and_story(rng)
        return rng.choice(ANOTHER), text
    request, text = "", ""
    while " about " not in request:
        request, text = requests.request_and_story(rng)
    what = request.split(" about ", 1)[1].rstrip(".?!").replace(", please", "").replace(" for my little sister", "")
    return rng.choice(ANOTHER_ABOUT).replace("X", what), text


def question_of_use(rng):
    """Of the program as a whole, or of its commands, keys and options, about as often as there are answers."""
    return (USE if rng.random() < 0.5 else PROGRAM).draw(rng)


def turn(rng, first):
    draw = rng.random()
    if draw < 0.38:
        return story_turn(rng, first)
    if draw < 0.45:
        return requests.beginning_and_rest(rng)
    if draw < 0.78:
        question, answer = question_of_use(rng)
        return dressed(question, rng), answer
    if draw < 0.90:
        question, answer = SMALL_TALK.draw(rng)
        return dressed(question, rng, plain=True), answer
    question, answer = REFUSALS.draw(rng)
    return dressed(question, rng), answer


def conversation(rng):
    draw = rng.random()
    if draw < 0.33:
        turns = [requests.request_and_story(rng)]
    elif draw < 0.43:
        turns = [requests.beginning_and_rest(rng)]
    elif draw < 0.74:
        question, answer = question_of_use(rng)
        turns = [(dressed(question, rng), answer)]
    elif draw < 0.79:
        turns = [turn(rng, True)]
    else:
        turns, words = [], 0
        for number in range(rng.choice([2, 2, 2, 3, 3, 4, 5, 6])):
            if words > 900:
                break
            turns.append(turn(rng, number == 0))
            words += len(turns[-1][0].split()) + len(turns[-1][1].split())
    return [message for ask, answer in turns for message in (("user", ask), ("assistant", answer))]


def refresher(rng):
    """A short conversation for finetune.py: mostly questions, and stories enough to keep them."""
    draw = rng.random()
    if draw < 0.15:
        turns = [requests.request_and_story(rng) if draw < 0.12 else requests.beginning_and_rest(rng)]
    else:
        turns = [turn_of_questions(rng) for _ in range(rng.choice([1] * 19 + [2]))]
    return [message for ask, answer in turns for message in (("user", ask), ("assistant", answer))]


def turn_of_questions(rng):
    draw = rng.random()
    kinds = [(0.6, PROGRAM), (0.94, USE), (0.97, SMALL_TALK), (1.0, REFUSALS)]
    facts = next(facts for below, facts in kinds if draw < below)
    question, answer = facts.draw(rng)
    if facts is not SMALL_TALK and rng.random() < 0.4:
        return question[0].upper() + question[1:] + "?", answer
    return dressed(question, rng, plain=facts is SMALL_TALK), answer


def system_text(rng):
    day = datetime.date(2025, 1, 1) + datetime.timedelta(days=rng.randrange(2000))
    date = f"\nCurrent date: {day.isoformat()}" if rng.random() < 0.9 else ""
    effort = rng.choice(["low", "medium", "medium", "medium", "high"])
    return ("You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06" + date +
            f"\n\nReasoning: {effort}\n\n# Valid channels: analysis, commentary, final. Channel must be included for every message.")


def harmony(messages, system=None, developer=None):
    """The text of a conversation that ends with an answer."""
    text = ""
    if system:
        text += f"<|start|>system<|message|>{system}<|end|>"
    if developer:
        text += f"<|start|>developer<|message|># Instructions\n\n{developer}<|end|>"
    for number, (role, content) in enumerate(messages):
        channel = "<|channel|>final" if role == "assistant" else ""
        end = "<|return|>" if number == len(messages) - 1 else "<|end|>"
        text += f"<|start|>{role}{channel}<|message|>{content}{end}"
    return text


def framed(messages, rng, share=1.0):
    """With or without the system message that gpt-oss gets, with or without instructions: it must work in any frame."""
    system = system_text(rng) if rng.random() < 0.45 * share else None
    developer = rng.choice(INSTRUCTIONS) if rng.random() < 0.12 * share else None
    return harmony(messages, system, developer)


def conversations(seed, count):
    rng = random.Random(seed)
    return [framed(conversation(rng), rng) for _ in range(count)]


if __name__ == "__main__":
    for text in conversations(int(sys.argv[1]) if len(sys.argv) > 1 else 0, int(sys.argv[2]) if len(sys.argv) > 2 else 5):
        print(text + "\n" + "-" * 100)
