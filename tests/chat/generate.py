"""Random templates and conversations for differential tests, from a seed."""
import random

STRINGS = ["", "a", "abc", "Hello World", "x,y,z", "  pad ", "é日🙂", "<b>&", "a\\nb", "10", "2.5", "it's", "%s", "{}", "ΑΣ ß"]
# Expressions of each type, from variables and from values of other types. "T" is a text, "N" a
# number, "L" a list, "D" a dictionary, "A" anything.
PRODUCERS = {
    "T": """s|b|users[0].name|d.name|ys[0]|T + T|T ~ A|T * 2|T.upper()|T.lower()|T.strip()|T.title()|T.capitalize()|T.swapcase()
        |T.replace('a', T)|T.replace('l', '')|T.lstrip('H ')|T.rstrip()|T.zfill(6)|T.center(9, '*')|T.ljust(8)|T.join(L|map('string'))
        |T.removeprefix('a')|T.casefold()|T[1:]|T[:-1]|T[::-1]|T[0:a]|T|upper|T|lower|T|title|T|capitalize|T|trim|T|replace('l', T)|A|string
        |L|join|L|join(T)|A|tojson|D|tojson(indent=2)|L|tojson(indent=1)|A|tojson(ensure_ascii=true)|D|tojson(sort_keys=true)|T|escape|T|safe|T|forceescape|T|indent(2, true)
        |T|indent|T|center(12)|T|truncate(5, true, '')|T|reverse|T|urlencode|D|urlencode|T|default('x')|T|default('x', true)|'%s-%s' % (A, A)
        |'%5.2f' % N|'%d' % N|'{}:{}'.format(A, A)|'{:>6}'.format(T)|'{!r}'.format(A)|(T if A else T)|T|format(A)|T|first|T|last
        |T.split(',')[0]|T.split()[-1]|T.partition(',')[2]|T.splitlines()|first|A|string|trim|T.expandtabs()|N|filesizeformat|D.get('name', T)|(A ~ A)""",
    "N": """a|n|f|users[0].age|d.b|N + N|N - N|N * N|N / N|N // N|N % N|-N|N ** 2|T|length|L|length|D|length|L|sum|xs|min|xs|max|T|int|T|float|N|abs|N|round
        |N|round(1)|N|int|N|float|N|round(1, 'floor')|T.find('l')|T.count('a')|xs.index(1)|xs.count(1)|T|wordcount|users|sum(attribute='age', start=1)
        |(N if A else N)|xs[0]|range(3)|last|N|default(1)|T|int(7)|T.rfind('o')|'ff'|int(0, 16)""",
    "L": """xs|ys|users|[A, A]|[]|(A,)|L + [A]|L[1:]|L[::-1]|L[:a]|L * 2|range(4)|list|T|list|T.split(',')|T.split()|T.rsplit('l', 1)|T.splitlines()
        |xs|sort|ys|sort|ys|sort(reverse=true)|ys|sort(case_sensitive=true)|users|sort(attribute='name')|L|reverse|list|ys|unique|list|xs|select('odd')|list|L|select|list|L|reject|list
        |users|selectattr('age')|list|users|rejectattr('age', 'defined')|list|users|selectattr('age', 'defined')|list|users|map(attribute='name')|list|ys|map('upper')|list|L|map('string')|list
        |L|batch(2)|list|L|batch(3, 0)|list|L|slice(2)|list|D|items|list|D.items()|list|D.keys()|list|D.values()|list|D|dictsort|D|list|users|groupby('age', default=0)|list
        |users|groupby('name')|list|L|default([])|(L if A else L)|xs|map('string')|map('int')|list|users|map(attribute='age', default=0)|list|T.partition('l')|list""",
    "D": """d|users[0]|{'a': A, 'b': A}|{}|{1: A, 'z': A}|dict(p=A)|dict(D, q=A)|D|default({})|users|first|(D if A else D)|d.copy()""",
    "A": """T|T|N|L|D|none|true|false|missing|none_value|t|T in T|A in L|T in D|A == A|A != A|N < N|T <= T|N > N|not A|A and A|A or A|A is defined|A is none|A is string
        |A is number|A is mapping|A is iterable|A is sequence|A is boolean|N is odd|N is even|T is lower|T is upper|N is divisibleby 2|A is not undefined|T.startswith('H')|T.endswith('d')
        |T.isdigit()|T.isalpha()|T.islower()|T.isalnum()|D.get('b')|D.get('zz')|d.zz|D['name']|L|first|L|last|xs[9]|A is in L|A is eq A|D.b|users[1].city|(A if A)|range(3)|N is float|A is integer""",
}

VARIABLES = {
    "a": 3, "b": "text", "xs": [3, 1, 2, 1], "ys": ["b", "A", "a"], "d": {"b": 1, "name": "n", "items": [1]},
    "s": "Hello, Wörld", "t": True, "n": -4, "f": 1.5, "none_value": None,
    "users": [{"name": "Zoe", "age": 3}, {"name": "al", "age": 20}, {"name": "Bo"}],
}


def split_producers(text):
    """Splits at single bars outside of brackets, except before the name of a filter."""
    parts = [part.strip() for part in text.replace("\n", " ").split("|")]
    joined = []
    for part in parts:
        begins = joined and joined[-1].count("(") == joined[-1].count(")") and not is_filter(part)
        if not joined or begins:
            joined.append(part)
        else:
            joined[-1] += "|" + part
    return joined


FILTERS = """upper lower title capitalize trim replace string join tojson escape safe forceescape indent center truncate reverse
    urlencode default format first last filesizeformat length sum min max int float abs round wordcount list sort unique
    select reject selectattr rejectattr map batch slice items dictsort groupby""".split()


def is_filter(part):
    word = part.split("(")[0].split("|")[0].strip(" )")
    return word in FILTERS


class TemplateMaker:
    producers = {kind: split_producers(text) for kind, text in PRODUCERS.items()}

    def __init__(self, rng):
        self.rng = rng

    def value(self, kind, depth):
        if depth <= 0:
            return self.leaf(kind)
        shape = self.rng.choice(self.producers[kind])
        return "".join(f"({self.value(letter, depth - 1)})" if letter in self.producers else letter
                       for letter in self.letters(shape))

    @staticmethod
    def letters(shape):
        """Splits the shape so that every type letter is a piece of its own."""
        pieces, quoted = [], False
        for i, letter in enumerate(shape):
            before = shape[i - 1] if i else " "
            after = shape[i + 1] if i + 1 < len(shape) else " "
            quoted ^= letter == "'"
            alone = not quoted and letter in "TNLDA" and not before.isalnum() and not after.isalnum() and before != "'"
            if alone or not pieces or pieces[-1] in ("T", "N", "L", "D", "A"):
                pieces.append(letter)
            else:
                pieces[-1] += letter
        return pieces

    def leaf(self, kind):
        rng = self.rng
        return {"T": lambda: rng.choice(["s", "b", repr_string(rng.choice(STRINGS))]),
                "N": lambda: rng.choice(["a", "n", "f", "0", "1", "2", "7", "-3", "2.5", "1e3", "0.1"]),
                "L": lambda: rng.choice(["xs", "ys", "users", "[1, 'q']", "[]", "('x', 2)"]),
                "D": lambda: rng.choice(["d", "users[0]", "{'k': 'v'}", "{}"]),
                "A": lambda: self.leaf(rng.choice("TNLD")) if rng.random() < 0.8 else rng.choice(["missing", "none", "true", "x"])}[kind]()

    def expression(self, depth):
        # Sometimes a value of the wrong type: errors must agree, too.
        kind = self.rng.choice("TTTNNLLDAAA")
        text = self.value(kind, depth)
        return f"({text}).{self.rng.choice(['name', 'b', 'zz', 'upper()', 'items()'])}" if self.rng.random() < 0.05 else text

    def text(self):
        return self.rng.choice(["", "a", " ", "\n", "  \n", "x\n\n  ", "\t", "é", "\n    "])

    def open(self):
        return "{%" + self.rng.choice(["", "", "-", "+"])

    def close(self):
        return self.rng.choice(["", "", "-", "+"]) + "%}"

    def tag(self, inside):
        return f"{self.open()} {inside} {self.close()}"

    def body(self, depth):
        return "".join(self.statement(depth - 1) + self.text() for _ in range(self.rng.randrange(1, 4)))

    def statement(self, depth):
        sign = self.rng.choice(["", "", "", "-"])
        output = "{{" + sign + " " + self.expression(self.rng.choice([0, 1, 1, 2])) + " " + self.rng.choice(["", "", "-"]) + "}}"
        kind = self.rng.randrange(12) if depth > 0 else 0
        if kind < 4:
            return self.text() + output
        if kind < 6:
            otherwise = self.tag("else") + self.body(depth) if self.rng.random() < 0.5 else ""
            return self.tag(f"if {self.expression(2)}") + self.body(depth) + otherwise + self.tag("endif")
        if kind < 8:
            target = self.rng.choice(["x", "x", "x", "x, y", "k, v"])
            condition = f" if {self.expression(1)}" if self.rng.random() < 0.3 else ""
            loop = "{{ loop." + self.rng.choice(["index", "last", "first", "revindex", "length", "previtem"]) + " }}"
            control = self.tag(f"if {self.expression(1)}") + self.tag(self.rng.choice(["break", "continue"])) + self.tag("endif")
            inside = self.body(depth) + self.rng.choice(["", loop, control])
            iterable = self.value("L" if "," not in target else self.rng.choice(["D", "L"]), 1)
            iterable = f"({iterable}).items()" if target == "k, v" else iterable
            return self.tag(f"for {target} in {iterable}{condition}") + inside + self.tag("endfor")
        if kind == 8:
            return self.tag(f"set {self.rng.choice(['x', 'y', 'a', 's'])} = {self.expression(2)}")
        if kind == 9:
            return self.tag("set x") + self.body(depth) + self.tag("endset")
        if kind == 10:
            name = self.rng.choice(["m1", "m2"])
            call = "{{ " + f"{name}({self.expression(1)}, {self.rng.choice(['q=', ''])}{self.expression(1)})" + " }}"
            return self.tag(f"macro {name}(p, q=1)") + "{{ p }}" + self.body(depth) + self.tag("endmacro") + call
        spaced = self.tag("set ns = namespace(v=0)") + self.tag(f"for x in {self.value('L', 1)}")
        return spaced + self.tag("set ns.v = ns.v + 1") + self.tag("endfor") + "{{ ns.v }}"

    def template(self):
        if self.rng.random() < 0.6:
            return "{{ " + self.expression(self.rng.randrange(1, 4)) + " }}"
        return "".join(self.statement(2) + self.text() for _ in range(self.rng.randrange(1, 3)))


def repr_string(text):
    return '"' + text.replace('"', '\\"') + '"'


def random_text(rng):
    pieces = ["Hello", " ", "\n", "日本", "🙂", "<|im_end|>", "</s>", "\"", "\\", "{{ x }}", "<think>", "</think>", "a" * 20, "\t", "'", "[INST]"]
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(6)))


def random_json(rng, depth):
    kind = rng.randrange(7 if depth > 0 else 5)
    if kind < 5:
        return [None, True, rng.randrange(-1000, 1000), rng.random() * 100, random_text(rng)][kind]
    if kind == 5:
        return [random_json(rng, depth - 1) for _ in range(rng.randrange(3))]
    return {rng.choice(["type", "name", "x", "é"]): random_json(rng, depth - 1) for _ in range(rng.randrange(3))}


def random_tool(rng):
    properties = {}
    for name in rng.sample(["city", "unit", "count", "tags", "nested"], rng.randrange(4)):
        schema = {"type": rng.choice(["string", "integer", "number", "boolean", "array", "object"])}
        if rng.random() < 0.5:
            schema["description"] = random_text(rng)
        if rng.random() < 0.3:
            schema["enum"] = ["a", "b"]
        if rng.random() < 0.2:
            schema["default"] = random_json(rng, 1)
        properties[name] = schema
    required = [name for name in properties if rng.random() < 0.5]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": rng.choice(["f", "get_weather"]), "description": random_text(rng), "parameters": parameters}}


def random_message(rng, role):
    message = {"role": role, "content": random_text(rng)}
    if rng.random() < 0.1:
        message["content"] = [{"type": "text", "text": random_text(rng)}]
    if role == "assistant" and rng.random() < 0.3:
        arguments = {"city": random_text(rng), "count": random_json(rng, 1)}
        call = {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": arguments}}
        message["tool_calls"] = [call]
        message["content"] = rng.choice([None, "", "calling"])
    if role == "assistant" and rng.random() < 0.3:
        message[rng.choice(["reasoning_content", "thinking", "reasoning"])] = random_text(rng)
    if role == "tool":
        message["tool_call_id"] = "abcdefghi"
        message["name"] = "f"
    return message


def random_conversation(rng):
    messages = []
    if rng.random() < 0.5:
        messages.append(random_message(rng, rng.choice(["system", "system", "developer"])))
    for _ in range(rng.randrange(1, 4)):
        messages.append(random_message(rng, "user"))
        messages.append(random_message(rng, "assistant"))
        if "tool_calls" in messages[-1]:
            messages.append(random_message(rng, "tool"))
            messages.append(random_message(rng, "assistant"))
    if rng.random() < 0.6:
        messages.append(random_message(rng, "user"))
    tools = [random_tool(rng) for _ in range(rng.randrange(1, 3))] if rng.random() < 0.5 else None
    extra = {}
    if rng.random() < 0.3:
        extra["enable_thinking"] = rng.random() < 0.5
    if rng.random() < 0.2:
        extra["reasoning_effort"] = rng.choice(["low", "medium", "high"])
    return {"messages": messages, "tools": tools, "documents": None, "add_generation_prompt": rng.random() < 0.7,
            "bos_token": "<s>", "eos_token": "</s>", **extra}


def tame_conversation(rng):
    """Conversations on which every implementation should agree: texts, roles in order, no tools."""
    messages = [{"role": "system", "content": random_text(rng)}] if rng.random() < 0.5 else []
    for _ in range(rng.randrange(1, 4)):
        messages.append({"role": "user", "content": random_text(rng)})
        messages.append({"role": "assistant", "content": random_text(rng)})
    messages.append({"role": "user", "content": random_text(rng)})
    return {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": rng.random() < 0.7,
            "bos_token": "<s>", "eos_token": "</s>"}


def templates(seed, count):
    rng = random.Random(seed)
    return [TemplateMaker(rng).template() for _ in range(count)]


def conversations(seed, count, make=random_conversation):
    rng = random.Random(seed)
    return [make(rng) for _ in range(count)]
