"""Small definitions for compiler tests, and the results of compiling them."""

from __future__ import annotations

from kafka_msgs.errors import SchemaError
from kafka_msgs_generator.compiler import CompileOptions, compile_text
from kafka_msgs_generator.ir import Message

MARK = "¶"
"""Marks the position in a definition's text that an error must report."""


def data(fields: str, common: str = "", *, flexible: str = "0+", valid: str = "0-9") -> str:
    """Return a data message ``Sample`` with ``fields`` and ``common`` structs given as text."""
    return (
        f'{{"name": "Sample", "type": "data", "validVersions": "{valid}", "flexibleVersions": "{flexible}",\n'
        f' "fields": [{fields}],\n "commonStructs": [{common}]}}'
    )


def head(keys: str, *, name: str = "Sample", kind: str = "data") -> str:
    """Return a message without fields, with further top-level keys given as text."""
    return f'{{"name": "{name}", "type": "{kind}",\n {keys}}}'


def compiled(text: str, reading: CompileOptions | None = None) -> Message:
    """Return the message that a definition's text describes."""
    return compile_text(text, "sample.json", reading).message


def refusal(text: str, reading: CompileOptions | None = None) -> SchemaError:
    """Return the compilation error of a definition."""
    try:
        compile_text(text, "sample.json", reading)
    except SchemaError as error:
        return error
    raise AssertionError(f"accepted: {text}")


def unmarked(text: str) -> tuple[str, tuple[int, int] | None]:
    """Return a definition without its mark, and the mark's line and column."""
    if MARK not in text:
        return text, None
    before = text[: text.index(MARK)].split("\n")
    return text.replace(MARK, ""), (len(before), len(before[-1]) + 1)
