"""Checks that every example of an OpenAPI document has the shape that the document says it has."""

import json
import sys

import jsonschema_rs

document = json.load(open(sys.argv[1], encoding="utf-8"))
checked, wrong = 0, []


def check(place, content):
    global checked
    schema = dict(content["schema"], components=document["components"])
    validator = jsonschema_rs.Draft202012Validator(schema)
    shown = [content["example"]] if "example" in content else []
    shown += [one["value"] for one in content.get("examples", {}).values()]
    for example in shown:
        checked += 1
        wrong.extend(f"{place}: {error.message}" for error in validator.iter_errors(example))


for path, operations in document["paths"].items():
    for method, operation in operations.items():
        for content in operation.get("requestBody", {}).get("content", {}).values():
            check(f"{method} {path} body", content)
        for status, answer in operation["responses"].items():
            for content in answer.get("content", {}).values():
                check(f"{method} {path} {status}", content)

print(f"{checked} examples, {len(wrong)} of another shape than their schema")
print("\n".join(wrong))
sys.exit(1 if wrong or not checked else 0)
