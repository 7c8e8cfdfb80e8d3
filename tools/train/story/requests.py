"""A request and the story that answers it."""
import random

from . import story, world
from .grammar import expand, parse, polish, read_lines, read_table

REQUESTS, PLAIN_REQUESTS, HINTS = read_lines("requests.txt"), read_lines("plain_requests.txt"), read_table("hints.txt")
THEME_WORDS = {
    "courage": ["courage", "being brave", "bravery"], "helping": ["helping others", "helping"],
    "friendship": ["friendship", "two friends", "good friends", "a new friend"], "kindness": ["kindness", "being kind"],
    "sharing": ["sharing"], "honesty": ["honesty", "telling the truth"], "patience": ["patience", "learning to wait"],
    "teamwork": ["working together", "teamwork"], "forgiveness": ["forgiving", "saying sorry"], "yourself": ["being yourself"],
    "work": ["hard work"], "trying": ["never giving up", "trying again"], "listening": ["listening"],
    "gratitude": ["being thankful", "wishes"], "bedtime": ["going to sleep", "the night"], "curiosity": ["curiosity"],
    "treasure": ["a treasure", "a treasure hunt"], "moon": ["the moon"], "winter": ["winter", "snow"], "music": ["music", "a song"],
    "school": ["school", "the first day of school"], "birthday": ["a birthday"], "rain": ["rain"], "garden": ["a garden"],
    "magic": ["magic"], "cleverness": ["being clever"], "dreams": ["dreams"], "family": ["family"], "cooking": ["baking"]}
MONSTERS = {"dragon", "giant", "troll", "monster"}
CONTINUE = ["Continue this story: {}", "Continue the story: {}", "Please continue: {}", "Go on with this story: {}",
            "How does this story go on? {}", "Finish this story: {}", "Here is the beginning of a story. Please continue it. {}",
            "{}", "What happens next? {}", "Continue: {}", "Can you finish this story for me? {}", "Write the rest of this story: {}"]


def subject(cast, plot, text, rng):
    """How someone who wants this story might call it: 'a brave cat named Tom and a red ball'. Names only what is in it."""
    words = "a " + (cast.trait + " " if cast.trait else rng.choice(["", "", "", "little "])) + cast.hero.noun
    if cast.name and rng.random() < 0.25:
        words += rng.choice([" named ", " called "]) + cast.name
    draw = rng.random()
    if draw < 0.15 and cast.friend.noun in text:
        words += rng.choice([" and a ", " and a ", " and a little ", " and an old ", f" and {cast['his']} ", " and the ", " and a big ",
                             " who meets a "]) + cast.friend.noun
    elif draw < 0.42 and (hint := hint_for(plot, cast, text, rng)):
        words += " " + hint
    elif draw < 0.55 and cast.object_noun in text:
        words += rng.choice([" and a ", " with a ", " who has a ", f" and {cast['his']} "]) + rng.choice([cast.object, cast.object_noun])
    elif draw < 0.64 and cast.place.noun in text:
        words += " " + cast["inpa"]
    elif draw < 0.68 and cast.name:
        words = f"{cast.name} the {cast.hero.noun}"
    if rng.random() < 0.06:
        words = words.replace("a ", "the ", 1)
    return words


def hint_for(plot, cast, text, rng):
    """What the plot is about in a few words; nothing that the story then does not tell."""
    hint = rng.choice(HINTS.get(plot.name, [""]))
    told = {"[on]": cast.object_noun, "[o]": cast.object, "[skill]": cast["skill"], "[fear]": cast["fear"]}
    if any(slot in hint and words not in text for slot, words in told.items()):
        return ""
    return expand(parse(hint), cast, rng)


def draw_story(rng):
    """What is asked for (a text, or None for any story), and the plot and the cast that answer it."""
    hero = world.random_hero(rng)
    kind = "plain" if (draw := rng.random()) < 0.08 else "theme" if draw < 0.14 else "subject"
    trait = rng.choice(list(world.TRAITS)) if rng.random() < (0.5 if kind == "subject" else 0.2) else None
    theme = rng.choice(list(THEME_WORDS)) if kind == "theme" else None
    plots = story.plots_for(hero.kind, trait, theme)
    plot = rng.choice([plot for plot in plots if not (plot.name == "feared_monster" and hero.noun in MONSTERS)])
    if theme and theme not in plot.themes:
        theme, kind = None, "subject"
    if trait and plot.name in story.STRICT and trait not in plot.traits:
        trait = None
    return kind, theme, plot, story.Cast(rng, hero, plot, trait)


def request_and_beats(rng):
    """One request and its story, as a list of beats."""
    kind, theme, plot, cast = draw_story(rng)
    beats = story.tell(plot, cast)
    if kind == "plain":
        return rng.choice(PLAIN_REQUESTS), beats
    what = rng.choice(THEME_WORDS[theme]) if theme else subject(cast, plot, " ".join(beats), rng)
    return ask(what, rng), beats


def ask(what, rng):
    request = polish_request(rng.choice(REQUESTS).replace("X", what))
    if request.startswith(("a ", "an ")) and rng.random() < 0.5:
        request = request[0].upper() + request[1:]
    return request


def polish_request(text):
    lower = text[0].islower()
    text = polish(text)
    return text[0].lower() + text[1:] if lower else text


def request_and_story(rng):
    request, beats = request_and_beats(rng)
    return request, story.paragraphs(rng, beats)


def beginning_and_rest(rng):
    """The first sentences of a story in the request, the rest as the answer."""
    _, _, plot, cast = draw_story(rng)
    if cast.name and rng.random() < 0.45:
        beginning, beats = story.tell_at_once(plot, cast)
    else:
        beats = story.tell(plot, cast)
        keep = rng.choice([1, 2, 2])
        beginning, beats = " ".join(beats[:keep]), beats[keep:]
    return rng.choice(CONTINUE).format(beginning), story.paragraphs(rng, beats)


if __name__ == "__main__":
    import sys
    generator = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 3):
        print("## %s\n%s\n" % request_and_story(generator))
