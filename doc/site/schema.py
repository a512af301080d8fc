# SPDX-License-Identifier: Apache-2.0
"""A JSON schema of doc/format as Markdown: a table of fields for each object, from the outermost in."""

import re

from mdoc import quoted

NAMES = {"string": "text", "boolean": "true or false", "array": "list"}  # the others are said as they are


def reference(schema):
    """A link to what $ref names: a definition, or a field of another document."""
    file, _, path = schema["$ref"].partition("#")
    parts = [part for part in path.split("/") if part not in ("", "properties", "items", "additionalProperties")]
    page = file.replace(".schema.json", ".md")
    if not parts:  # the whole document, within itself
        return "this document"
    if parts[0] == "$defs":
        return f"[{quoted(parts[1])}]({page}#def-{parts[1]})"
    return f"[{quoted('.'.join(parts))}]({page}#{anchor('.'.join(parts))})"


def said(text):
    """A description; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", lambda found: f"<code>{quoted(found[1])}</code>", quoted(text).replace("&#96;", "`"))


def values(schema):
    """The values that an enum or a const allows."""
    if "const" in schema:
        return f"<code>{quoted(str(schema['const']))}</code>"
    if "enum" in schema:
        return " · ".join("null" if value is None else f"<code>{quoted(str(value))}</code>" for value in schema["enum"])
    return ""


def kind(schema):
    """What may stand there, in words."""
    if "$ref" in schema:
        return reference(schema)
    if "anyOf" in schema:
        return " or ".join(kind(choice) for choice in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return values(schema)
    named = schema.get("type", "anything")
    words = [NAMES.get(name, name) for name in ([named] if isinstance(named, str) else named)]
    if "list" in words and isinstance(schema.get("items"), dict):
        words[words.index("list")] = f"list of {kind(schema['items'])}"
    return " or ".join(words)


def inner(schema):
    """(suffix, schema) of the objects within a value: its own fields, those of its items, those of any key."""
    for choice in [schema, *schema.get("anyOf", [])]:
        if "properties" in choice:
            yield "", choice
        if isinstance(choice.get("items"), dict):
            for suffix, found in inner(choice["items"]):
                yield "[]" + suffix, found
        if isinstance(choice.get("additionalProperties"), dict):
            for suffix, found in inner(choice["additionalProperties"]):
                yield ".*" + suffix, found


def table(schema, path):
    required = set(schema.get("required", []))
    yield "| field | what | meaning |"
    yield "|---|---|---|"
    for name, value in schema["properties"].items():
        mark = "" if name in required else " (may be missing)"
        place = f"{path}.{name}" if path else name
        mark_of_place = "" if list(inner(value)) else f'<span id="{anchor(place)}"></span>'
        yield f"| {mark_of_place}<code>{quoted(name)}</code> | {kind(value)}{mark} | {said(value.get('description', ''))} |"


def sections(schema, path):
    """The table of an object, then those of the objects within it."""
    yield from table(schema, path)
    yield ""
    for name, value in schema["properties"].items():
        for suffix, found in inner(value):
            place = f"{path}.{name}{suffix}" if path else f"{name}{suffix}"
            yield f"### <code>{quoted(place)}</code> {{ #{anchor(place)} }}\n"
            if found is not value and found.get("description"):
                yield said(found["description"]) + "\n"
            yield from sections(found, place)


def anchor(place):
    return "field-" + place.replace("[]", "").replace(".*", "-any").replace(".", "-")


def to_markdown(name, schema):
    lines = [f"# {quoted(schema['title'])}", "", said(schema.get("description", "")), ""]
    lines += [f"Made of <code>doc/format/{quoted(name)}.schema.json</code>, which checks the files by machine.", "", "## Fields", ""]
    lines += sections(schema, "")
    definitions = schema.get("$defs", {})
    if definitions:
        lines += ["## Used above", ""]
    for word, found in definitions.items():
        lines += [f"### {quoted(word)} {{ #def-{word} }}", ""]
        if "properties" in found:
            lines += [said(found.get("description", "")), "", *sections(found, f"{word}")]
        else:
            lines += [f"{kind(found)}. {said(found.get('description', ''))}", ""]
    return "\n".join(lines) + "\n"
