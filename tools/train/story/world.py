"""Who and what a story can be about, and the slots that a cast fills."""
import collections

from .grammar import read_lines, read_sections, read_table, read_words

HEROES, NAMES, OBJECTS, LISTS = (read_words("heroes.txt"), read_words("names.txt"), read_words("objects.txt"),
                                 read_table("lists.txt"))
OPENINGS = read_sections("openings.txt")
CLAUSE_BACK = [text.strip() for text in OPENINGS["clauseback"][0].split("|")]

PRONOUNS = {"he": ("he", "him", "his", "himself"), "she": ("she", "her", "her", "herself"),
            "it": ("it", "it", "its", "itself")}
# how a kind of hero moves: infinitive, past, hurried past
MOVES = {"land": ("walk", "walked", "ran hurried rushed raced".split()),
         "air": ("fly", "flew", "flew hurried swooped raced".split()),
         "water": ("swim", "swam", "swam darted hurried raced".split()),
         "thing": ("go", "went", "hurried rushed went".split())}

Place = collections.namedtuple("Place", "kind preposition article noun clauses")
Hero = collections.namedtuple("Hero", "noun plural kind pronouns")


def _read_places():
    rows = [[field.strip() for field in line.split("|")] for line in read_lines("places.txt")]
    return [Place(kind, prep, article, noun, [c.strip() for c in clauses.split(";")])
            for kind, prep, article, noun, clauses in rows]


def _read_heroes():
    heroes = []
    for group, words in HEROES.items():
        kind = {"boy": "person", "girl": "person", "child": "person", "old": "person", "shore": "shore"}.get(group, group)
        for word in words:
            noun, _, plural = word.partition("/")
            noun = noun.replace("~", " ")
            pronouns = {"boy": ["he"], "girl": ["she"], "thing": ["he", "he", "she", "she", "it"]}.get(group, ["he", "she"])
            pronouns = {"boy": ["he"], "grandfather": ["he"], "mermaid": ["she"], "girl": ["she"], "hen": ["she"],
                        "grandmother": ["she"], "rooster": ["he"], "cow": ["she"]}.get(noun, pronouns)
            heroes.append(Hero(noun, plural.replace("~", " ") or noun + "s", kind, pronouns))
    return heroes


def _read_traits():
    traits = {}
    for line in read_lines("traits.txt"):
        name, evidence, closing = [field.strip() for field in line.split("|")]
        traits[name] = ([s.strip() for s in evidence.split(";")], [s.strip() for s in closing.split(";")])
    return traits


PLACES, ALL_HEROES, TRAITS = _read_places(), _read_heroes(), _read_traits()
HEROES_OF = collections.defaultdict(list)
for _hero in ALL_HEROES:
    HEROES_OF[_hero.kind].append(_hero)
THINGS = [word.replace("~", " ") for word in OBJECTS["thing"]]
FOODS = [word.replace("~", " ") for word in OBJECTS["food"]]
NAME_STARTS = "Ba Be Bo Da Di Do Fa Fi Fo Ga Gi Go Ja Jo Ka Ki Ko La Le Lo Lu Ma Me Mo Na Ni No Pa Pe Po Ra Ri Ro Sa Si So Ta Ti To Va Vi Wa Wi Za Zi Zo Bri Cla Dru Fro Gri Pla Sno Tri Zor".split()
NAME_ENDS = "lla na nna sha mi rin lin ster der ley ton by n s m bo bi ck da do ffy go ki la lo lly mba mo nd ngo nny nto pp ra ri rt sh ska to tto vi wen x zu zzle".split()


def random_name(rng, pronoun):
    """A known name, or one that nobody has heard before, so that names are copied and not guessed."""
    if rng.random() < 0.35:
        middle = rng.choice(NAME_STARTS).lower() if rng.random() < 0.4 else ""
        return rng.choice(NAME_STARTS) + middle + rng.choice(NAME_ENDS)
    return rng.choice(NAMES["she" if pronoun == "she" else "he" if pronoun == "he" else rng.choice(["he", "she"])])


def random_hero(rng):
    draw = rng.random()
    if draw < 0.06:  # any object can be a hero
        noun = rng.choice(THINGS)
        return Hero(noun, noun + "s", "thing", ["he", "he", "she", "she", "it"])
    kind = rng.choices(["land", "air", "water", "shore", "person", "thing"], [42, 17, 8, 6, 15, 12])[0]
    return rng.choice(HEROES_OF[kind])


def friend_for(rng, hero):
    if hero.kind == "water":
        kind = rng.choice(["water", "water", "shore"])
    else:
        kind = rng.choices(["land", "air", "shore", "person", "thing"], [45, 25, 8, 15, 7])[0]
    friends = [other for other in HEROES_OF[kind] if other.noun != hero.noun]
    return rng.choice(friends)


# Where a plot cannot happen, and where it must.
INDOORS = {"library", "toy shop", "castle", "cottage", "school", "zoo"}
HOT = {"desert", "jungle", "beach", "island", "swamp", "clouds", "space"} | INDOORS
NOWHERE = {"snow_day": HOT, "lazy_winter": HOT, "river_crossing": INDOORS | {"clouds", "space", "desert", "snow"},
           "drought": HOT | {"snow", "sea", "lake", "river"}, "storm_rescue": INDOORS | {"space"},
           "treasure_map": INDOORS | {"clouds", "space"}, "find_the_baby": INDOORS | {"space"},
           "seed": INDOORS | {"space", "clouds", "snow", "desert"}, "feared_monster": INDOORS | {"space"},
           "moon_trip": {"space", "clouds"}, "build_together": INDOORS | {"space", "clouds"},
           "runaway_hat": INDOORS | {"space"}, "lost_way": {"cottage", "school"}, "strange_noise": {"space", "clouds"},
           "help_the_old_one": INDOORS | {"space", "clouds"}, "sharing": {"space"}}
ONLY_IN = {"mend_the_clock": {"village", "town", "city", "kingdom", "valley", "mountains"}}
SHIPS, SHORES = {"boat", "paper boat", "tugboat", "lighthouse", "sailor", "pirate", "fisherman"}, {"sea", "lake", "river", "island", "beach"}
SKY_DWELLERS = {"cloud", "moon", "star", "snowflake", "raindrop", "rocket", "balloon", "kite"}


def random_place(rng, hero, plot):
    wanted = "water" if hero.kind == "water" else "land"
    if rng.random() < (0.6 if hero.noun in SKY_DWELLERS else 0.05 if hero.kind == "air" else 0):
        wanted = "sky"
    banned, needed = NOWHERE.get(plot.name, ()), ONLY_IN.get(plot.name)
    if hero.noun in BIG_SWIMMERS and needed is None:
        needed = BIG_WATERS
    if hero.noun in SHIPS and needed is None and rng.random() < 0.8:
        needed = SHORES
    places = [place for place in PLACES if place.kind == wanted and place.noun not in banned
              and (needed is None or place.noun in needed)]
    return rng.choice(places or [place for place in PLACES if place.noun == "kingdom"])


BREAKABLE = ("cup clock mirror bottle lamp jar doll flute violin teapot shell mask telescope umbrella picture guitar drum crown kite wheel puppet "
             "lantern compass whistle").split() + ["snow globe", "music box", "toy boat", "toy train", "toy car", "wooden horse", "magnifying glass"]
BIG_SWIMMERS, BIG_WATERS = {"whale", "dolphin", "shark", "narwhal", "squid", "octopus", "mermaid", "seahorse", "jellyfish", "sea turtle"}, {"sea", "ocean", "coral reef"}


def random_object(rng, plot):
    noun = rng.choice(BREAKABLE if plot.name in ("broken_and_hidden", "quarrel") else THINGS)
    draw = rng.random()
    if draw < 0.3:
        return noun, noun
    if draw < 0.65:
        return rng.choice(OBJECTS["colour"]) + " " + noun, noun
    return rng.choice(OBJECTS["look"]) + " " + noun, noun
