"""Jinja2 configured as in transformers' apply_chat_template: the reference for our interpreter.

Imported by the tests; run alone it reads one JSON object per line ({"template", "variables"}) and answers
each with {"text"} or {"error"}.
"""
import copy
import datetime
import json
import sys
import warnings

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

warnings.simplefilter("ignore", SyntaxWarning)
NOW = datetime.datetime(2025, 8, 5, 14, 30)


class Generation(jinja2.ext.Extension):
    """{% generation %}: prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_print"), [], [], body).set_lineno(line)

    def _print(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


ENVIRONMENT = environment()


def render(template, variables):
    try:
        # Copied, because a few of Jinja2's own filters change the lists they are given.
        text = ENVIRONMENT.from_string(template).render(**copy.deepcopy(variables))
        text.encode()
        return {"text": text}
    except Exception as error:  # a failure is a result, too
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(render(request["template"], request["variables"])), flush=True)
