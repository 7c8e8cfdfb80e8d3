#!/usr/bin/env python3
"""Writes tests/data/jinja/constructs.json: what Jinja2 makes of each template in constructs.py."""
import json
import pathlib

import constructs
import jinja_oracle

OUT = pathlib.Path(__file__).resolve().parent.parent / "data/jinja/constructs.json"
groups = {topic: ["{{ " + text + " }}" for text in texts] for topic, texts in constructs.EXPRESSIONS.items()}
groups.update(constructs.TEMPLATES)
cases = []
for topic, templates in groups.items():
    for template in templates:
        answer = jinja_oracle.render(template, constructs.VARIABLES)
        cases.append({"topic": topic, "template": template, **answer})
OUT.parent.mkdir(parents=True, exist_ok=True)
lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
OUT.write_text('{"variables": ' + json.dumps(constructs.VARIABLES, ensure_ascii=False) + ',\n"cases": [\n' + lines + "\n]}\n")
print(len(cases), "cases")
