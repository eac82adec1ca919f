"""Small definitions for the compiler's tests, and what compiling them gives."""

from __future__ import annotations

from kafka_msgs.errors import SchemaError
from kafka_msgs_generator.compiler import CompileOptions, compile_text
from kafka_msgs_generator.ir import Message

MARK = "¶"
"""Marks the place in a definition's text that an error must name."""


def data(fields: str, common: str = "", *, flexible: str = "0+", valid: str = "0-9") -> str:
    """A data message ``Sample`` with the text of ``fields`` and of ``common`` structs."""
    return (
        f'{{"name": "Sample", "type": "data", "validVersions": "{valid}", "flexibleVersions": "{flexible}",\n'
        f' "fields": [{fields}],\n "commonStructs": [{common}]}}'
    )


def head(keys: str, *, name: str = "Sample", kind: str = "data") -> str:
    """A message without fields, with the text of further top-level keys."""
    return f'{{"name": "{name}", "type": "{kind}",\n {keys}}}'


def compiled(text: str, reading: CompileOptions | None = None) -> Message:
    """The message that a definition's text describes."""
    return compile_text(text, "sample.json", reading).message


def refusal(text: str, reading: CompileOptions | None = None) -> SchemaError:
    """The error that compiling gives."""
    try:
        compile_text(text, "sample.json", reading)
    except SchemaError as error:
        return error
    raise AssertionError(f"accepted: {text}")


def unmarked(text: str) -> tuple[str, tuple[int, int] | None]:
    """A definition without its mark, and the line and column where the mark stood."""
    if MARK not in text:
        return text, None
    before = text[: text.index(MARK)].split("\n")
    return text.replace(MARK, ""), (len(before), len(before[-1]) + 1)
