"""Holds what a daemon said against its API document.

Reads the document and a list of cases, each with the JSON `value` and what it should be: the name
of a `schema`, or `method`, `path` and `status` of an answer. Every value must be valid, also with a
field that nobody knows in each of its objects, and must not be once it is broken.
"""

import json
import re
import sys

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

document = json.load(open(sys.argv[1]))
cases = json.load(open(sys.argv[2]))
resource = Resource(contents=document, specification=DRAFT202012)
registry = Registry().with_resource("urn:api", resource)


def validator(pointer):
    return Draft202012Validator({"$ref": f"urn:api#{pointer}"}, registry=registry)


def schema_of(case):
    """Where in the document the case's schema is; none for an answer without a body."""
    if "schema" in case:
        return "/components/schemas/" + case["schema"]
    for template, methods in document["paths"].items():
        pattern = re.sub(r"\{\w+\}", "[^/]+", template)
        if re.fullmatch(pattern, case["path"].split("?")[0]):
            found = template
            break
    else:
        raise SystemExit(f"no path for {case['method']} {case['path']}")
    answers = methods[case["method"].lower()]["responses"]
    status = str(case["status"])
    assert status in answers, f"{case['method']} {case['path']}: {status} is not described"
    answer = answers[status]
    if "$ref" in answer:
        return "/components/responses/Problem/content/application~1problem+json/schema"
    if "content" not in answer:
        assert case["value"] is None, case
        return None
    place = found.replace("~", "~0").replace("/", "~1")
    place = f"/paths/{place}/{case['method'].lower()}/responses/{status}/content"
    return f"{place}/application~1json/schema"


def extended(value):
    """With a field that nobody knows, in each object that we make ourselves."""
    if isinstance(value, dict):
        return {**{name: extended(below) for name, below in value.items()}, "unheardOf": {"a": 1}}
    if isinstance(value, list):
        return [extended(below) for below in value]
    return value


# What is taken from callers and told back is as strict as when it came.
STRICT = {"settings", "decision", "decisions"}


def without_strict(value):
    if isinstance(value, dict):
        kept = {name: below for name, below in value.items() if name not in STRICT}
        return {name: without_strict(below) for name, below in kept.items()}
    if isinstance(value, list):
        return [without_strict(below) for below in value]
    return value


def restored(value, whole):
    """Puts back what must not be extended."""
    if isinstance(value, dict) and isinstance(whole, dict):
        strict = {name: below for name, below in whole.items() if name in STRICT}
        known = {name: restored(below, whole.get(name)) for name, below in value.items()}
        return {**known, **strict}
    if isinstance(value, list) and isinstance(whole, list):
        return [restored(a, b) for a, b in zip(value, whole)]
    return value


seen = set()
for number, case in enumerate(cases):
    pointer = schema_of(case)
    if pointer is None:
        continue
    value, check = case["value"], validator(pointer)
    more = restored(extended(without_strict(value)), value)
    for kind, shape in (("", value), ("with extras", more)):
        error = next(iter(check.iter_errors(shape)), None)
        if error is not None:
            told = json.dumps(shape)[:2000]
            raise SystemExit(f"case {number} {kind} {pointer}\n{error.message[:2000]}\n{told}")
    tags = [name for name in ("type", "kind", "event") if isinstance(value, dict) and name in value]
    for broken in (7, [], *({**value, name: 7} for name in tags)):
        assert not check.is_valid(broken), f"{pointer} is valid for {broken}"
    seen.add(pointer.rsplit("/", 1)[-1] if "schema" in case else pointer)
print(json.dumps(sorted(seen)))
