"""Models for tests of the commands: a tiny random one with a chat template, and a real one if it is available."""
import json
import os
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LLAMA = ROOT / "tests/data/models/llama"
ENDLESS = ROOT / "tests/data/models/gpt_oss"  # a context of 131072 tokens: it generates until it is stopped
SHARED = pathlib.Path(os.environ.get("INFERNO_SHARED", ROOT.parent / "shared"))
STORIES = SHARED / "reference/real/TinyStories-656K"
# Each message is enclosed in control tokens of the tiny vocabulary.
TEMPLATE = ("{{ bos_token }}{% for message in messages %}<{{ message.role }}>{{ message.content }}</{{ message.role }}>\n"
            "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}")


def chat_model(folder, base=LLAMA):
    """A tiny random model as a chat model: links to its files, and a template."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    for file in base.iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def harmony_model(folder):
    """The built-in model with tools in its prompts, which its own template does not show."""
    folder = pathlib.Path(folder)
    shutil.copytree(ROOT / "models/builtin", folder, copy_function=os.symlink)
    file = folder / "chat_template.jinja"
    source = file.read_text()
    file.unlink()
    file.write_text("{%- if tools -%}{{- '<|start|>developer<|message|># Tools\n\n' + (tools | tojson) + '<|end|>' -}}{%- endif -%}\n" + source)
    return folder


def completion_model(folder):
    shutil.copytree(LLAMA, folder, copy_function=os.symlink)
    return pathlib.Path(folder)


def padded_model(folder, tokens):
    """A tiny random model whose tokenizer has fewer tokens than its output has rows, as Qwen's and Phi's have."""
    folder = completion_model(folder)
    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    vocabulary = {text: token for text, token in tokenizer["model"]["vocab"].items() if token < tokens}
    tokenizer["model"]["vocab"] = vocabulary
    tokenizer["model"]["merges"] = [pair for pair in tokenizer["model"]["merges"] if "".join(pair) in vocabulary]
    file.unlink()
    file.write_text(json.dumps(tokenizer))
    return folder


def stories():
    """[(prompt, its greedy continuation)] of the real model, or None if it is not available."""
    if not STORIES.exists():
        return None
    cases = json.loads((STORIES / "golden.json").read_text())["cases"]
    return [(case["prompt"], completion_of(case)) for case in cases]


def completion_of(case):
    # transformers' text begins with the start token and the prompt, and puts a space before the end token. The
    # model also spells that token out in letters before it; these are text.
    text = case["greedy_text"].removeprefix("<|start_story|>").removesuffix(" <|end_story|>")
    at = text.index(case["prompt"]) + len(case["prompt"])
    return text[at:]
