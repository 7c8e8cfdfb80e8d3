#!/usr/bin/env python3
"""Writes constructs.json: the output of Jinja2 for each template in constructs.py."""
import json
import pathlib

import constructs
import jinja_oracle

OUT = pathlib.Path(__file__).resolve().parent / "constructs.json"
groups = {topic: ["{{ " + text + " }}" for text in texts] for topic, texts in constructs.EXPRESSIONS.items()}
groups.update(constructs.TEMPLATES)
cases = []
for topic, templates in groups.items():
    for template in templates:
        answer = jinja_oracle.render(template, constructs.VARIABLES)
        if template in constructs.REFUSED:
            answer = {"error": "refused on purpose"}
        cases.append({"topic": topic, "template": template, **answer})
lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
OUT.write_text('{"variables": ' + json.dumps(constructs.VARIABLES, ensure_ascii=False) + ',\n"cases": [\n' + lines + "\n]}\n")
print(len(cases), "cases")
