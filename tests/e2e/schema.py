"""The part of JSON Schema that the server's tool schemas use, as a checker.

A keyword this file does not know is a failure of the test, not a pass: a schema that cannot be
checked here must not look checked.
"""

KNOWN = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "minimum",
    "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties", "pattern",
    "description", "default", "title", "$schema", "oneOf", "anyOf", "format", "propertyNames",
}

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}


def _is(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def _object(schema, value, where):
    properties = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            yield "%s: required member %r is missing" % (where, name)
    extra = schema.get("additionalProperties", True)
    for name, member in value.items():
        here = "%s.%s" % (where, name)
        if name in properties:
            yield from problems(properties[name], member, here)
        elif extra is False:
            yield "%s: not in the schema" % here
        elif isinstance(extra, dict):
            yield from problems(extra, member, here)


def _bounds(schema, value, where):
    if "minimum" in schema and value < schema["minimum"]:
        yield "%s: %r below minimum" % (where, value)
    if "maximum" in schema and value > schema["maximum"]:
        yield "%s: %r above maximum" % (where, value)


def problems(schema, value, where="$"):
    """Every way in which `value` does not fit; nothing when it fits."""
    if schema is True:
        return
    unknown = set(schema) - KNOWN
    if unknown:
        yield "%s: schema keywords this check does not know: %s" % (where, sorted(unknown))
    kinds = schema.get("type")
    if kinds is not None:
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if not any(_is(value, kind) for kind in kinds):
            yield "%s: %r is not %s" % (where, value, "/".join(kinds))
            return
    if "enum" in schema and value not in schema["enum"]:
        yield "%s: %r is not one of %r" % (where, value, schema["enum"])
    if "const" in schema and value != schema["const"]:
        yield "%s: %r is not %r" % (where, value, schema["const"])
    for word in ("oneOf", "anyOf"):
        if word in schema and not any(not list(problems(s, value, where)) for s in schema[word]):
            yield "%s: fits no branch of %s" % (where, word)
    if isinstance(value, dict):
        yield from _object(schema, value, where)
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from problems(schema["items"], item, "%s[%d]" % (where, index))
    elif _is(value, "number"):
        yield from _bounds(schema, value, where)
