"""Makes a story: chooses a plot and a cast that suit the request, and tells it."""
import functools

from . import world
from .grammar import expand, parse, polish, read_plots

PLOTS = read_plots()
# Plots that assume a character; with another trait they would contradict it.
STRICT = {"race", "lazy_winter", "sharing", "noisy_one", "afraid_of_dark", "new_neighbour", "first_day", "concert",
          "different", "afraid_of_something", "broken_and_hidden", "quarrel", "magic_wish", "build_together", "clever_trick", "runaway_hat"}
PLACE_WORDS = {"land": "quiet little lovely green small old sunny peaceful faraway".split(),
               "water": "deep blue quiet clear calm faraway".split(), "sky": ["quiet"]}


class Cast(dict):
    """The slots of one story. What the request names is kept as attributes for the request."""

    def __init__(self, rng, hero, plot, trait=None):
        super().__init__()
        self.rng, self.hero, self.trait = rng, hero, trait
        self.pronoun = rng.choice(hero.pronouns)
        self.name = world.random_name(rng, self.pronoun) if rng.random() < 0.85 else None
        self.friend = world.friend_for(rng, hero)
        self.place = world.random_place(rng, hero, plot)
        self.object, self.object_noun = world.random_object(rng, plot)
        self._fill_hero()
        self._fill_friend()
        self._fill_world()

    def _fill_hero(self):
        he, him, his, himself = world.PRONOUNS[self.pronoun]
        kind = {"shore": "land", "person": "land"}.get(self.hero.kind, self.hero.kind)
        go, went, ran = world.MOVES[kind]
        self.update(h=self.name or "the " + self.hero.noun, hn=self.hero.noun, hns=self.hero.plural, he=he, him=him,
                    his=his, himself=himself, hv=self.name or "my friend", go=go, went=went, ran=lambda rng: rng.choice(ran),
                    t=" " + self.trait if self.trait else "")

    def _fill_friend(self):
        rng, friend = self.rng, self.friend
        pronoun = rng.choice(friend.pronouns)
        he, him, his, himself = world.PRONOUNS[pronoun]
        name = world.random_name(rng, pronoun) if rng.random() < 0.7 else None
        while name and name == self.name:
            name = world.random_name(rng, pronoun)
        noun = friend.noun
        self.update(f=name or "the " + noun, fhe=he, fhim=him, fhis=his, fhimself=himself, fn=noun, fv=name or "my friend",
                    ff=f"{name} the {noun}" if name else "the " + noun,
                    fi=f"a {noun} named {name}" if name else rng.choice(["a ", "a young ", "a little ", "a friendly "]) + noun)

    def _fill_world(self):
        rng, place = self.rng, self.place
        wet = "water" if self.hero.kind == "water" else "land"
        if place.article == "-":
            inpa = inp = f"{place.preposition} {place.noun}"
            p = place.noun
        else:
            look = rng.choice(world_words(place.kind)) + " " if place.article != "the" and rng.random() < 0.6 else ""
            article = "a" if place.article == "an" else place.article
            inpa = f"{place.preposition} {article} {look}{place.noun}"
            inp, p = f"{place.preposition} the {place.noun}", "the " + place.noun
        lists = world.LISTS
        self.update(inpa=inpa, inp=inp, p=p, clause=rng.choice(place.clauses), o=self.object, on=self.object_noun,
                    food=rng.choice(world.FOODS), spot=rng.choice(lists["spot." + wet]),
                    lm=rng.choice(lists["lm." + wet]), under=rng.choice(lists["under." + wet]),
                    e=self._elder(lists["elder." + wet]), skill=rng.choice(lists["skill"]), fear=rng.choice(lists["fear"]),
                    clauseback=rng.choice(world.CLAUSE_BACK))

    def _elder(self, elders):
        taken = {self.hero.noun, self.friend.noun}
        return self.rng.choice([e for e in elders if not taken & set(e.lower().split())])


def world_words(kind):
    return PLACE_WORDS["water" if kind == "water" else "sky" if kind == "sky" else "land"]


@functools.lru_cache(maxsize=None)
def openings(named):
    return [parse(line) for line in world.OPENINGS["named" if named else "unnamed"]]


@functools.lru_cache(maxsize=None)
def closings():
    return [parse(line) for line in world.OPENINGS["closings"]]


def plots_for(kind, trait=None, theme=None):
    """Plots that such a hero can be in and that do not contradict the trait."""
    kind = "water" if kind == "water" else kind
    fitting = [plot for plot in PLOTS if plot.suits(kind)]
    if theme:
        return [plot for plot in fitting if theme in plot.themes] or fitting
    if trait:
        own = [plot for plot in fitting if trait in plot.traits]
        neutral = [plot for plot in fitting if plot.name not in STRICT]
        return own * max(1, 6 * len(neutral) // len(own)) + neutral if own else neutral
    return fitting


def tell(plot, cast):
    """The story as a list of paragraphs' sentences: one text for each beat, opening first."""
    rng = cast.rng
    opening = expand(rng.choice(openings(cast.name is not None)), cast, rng)
    beats = [opening]
    if cast.trait:
        evidence, closing = world.TRAITS[cast.trait]
        if rng.random() < 0.75:
            beats[0] += " " + expand(parse(rng.choice(evidence)), cast, rng) + "."
    beats += [expand(rng.choice(beat), cast, rng) for beat in plot.beats]
    if cast.trait and rng.random() < (0.6 if cast.trait in plot.traits else 0.4):
        last = expand(parse(rng.choice(closing)), cast, rng)
        beats[-1] += " " + last + ("" if last[-1] in '.!"' else ".")
    if rng.random() < 0.55:
        beats[-1] += " " + expand(rng.choice(closings()), cast, rng)
    return [polish(beat) for beat in beats]


def tell_at_once(plot, cast):
    """A story that begins in the middle, 'One day, a mouse named Nell found a key', and its further beats."""
    rng, name = cast.rng, cast.name
    look = rng.choice(["", "", "little ", "young ", "small ", "old "]) if not cast.trait else cast.trait + " "
    introductions = iter([f"a {look}{cast.hero.noun} {rng.choice(['named', 'called'])} {name}"])
    cast["h"] = lambda _: next(introductions, name)
    first = polish(expand(rng.choice(plot.beats[0]), cast, rng))
    cast["h"] = name
    return first, [polish(expand(rng.choice(beat), cast, rng)) for beat in plot.beats[1:]]


def paragraphs(rng, beats):
    """Beats as running text with a few paragraph breaks."""
    if rng.random() < 0.25:
        return " ".join(beats)
    text = beats[0]
    for number, beat in enumerate(beats[1:], 1):
        text += ("\n\n" if number % 2 == 1 and number < len(beats) - 1 else " ") + beat
    return text
