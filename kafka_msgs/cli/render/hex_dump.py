"""Annotated hex dumps: the meaning of every byte of a message, up to the error if the message is malformed.

This module defines the layout of the dump; the reference interpreter decodes the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from attrs import evolve, frozen
from rich.table import Table
from rich.text import Text

from kafka_msgs.cli.render.console import console, print_json, table
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.codec.reference import Span
from kafka_msgs.codec.reference import annotate as annotate_plan
from kafka_msgs.errors import DecodeError, TrailingDataError
from kafka_msgs.schema import MessageStruct

__all__ = ["Annotation", "annotate", "dump_json", "dump_table", "print_dump", "refuse_trailing", "show_trailing"]

_BYTES_A_LINE: Final = 8
_MOST_LINES: Final = 4
_MOST_CHARACTERS: Final = 60
_TRAILING: Final = "(trailing bytes)"
"""The path of bytes after a message. Brokers accept such bytes, so a frame keeps them."""


@frozen
class Annotation:
    """The meaning of the bytes from ``start`` to ``end`` of a buffer, decoded as one message at one version.

    ``error`` is the error that ended the decoding early, or None for a complete message.
    """

    title: str
    start: int
    end: int
    spans: tuple[Span, ...]
    error: DecodeError | None


def annotate(cls: type[MessageStruct], version: int, data: bytes, offset: int = 0) -> Annotation:
    """Explain the message at ``offset`` of ``data``; malformed bytes are explained up to the error.

    Raises ``UnsupportedVersionError``.
    """
    plan = compile_plan(cls, version)
    spans, error = annotate_plan(plan, data, offset)
    end = spans[-1].end if spans else offset
    return Annotation(f"{plan.name} v{version}", offset, end, tuple(spans), error)


def refuse_trailing(annotation: Annotation, cls: type[MessageStruct], version: int, size: int) -> Annotation:
    """Return the annotation with an error for the bytes after a message that should fill its ``size`` bytes."""
    if annotation.error is not None or annotation.end == size:
        return annotation
    reason = f"{size - annotation.end} bytes left over"
    name = cls.INFO.name
    error = TrailingDataError(message=name, version=version, path="", offset=annotation.end, reason=reason)
    return evolve(annotation, error=error)


def show_trailing(annotation: Annotation, data: bytes) -> Annotation:
    """Return the annotation with a span for the bytes of ``data`` after a complete message."""
    if annotation.error is not None or annotation.end == len(data):
        return annotation
    rest = Span(annotation.end, len(data), _TRAILING, "bytes", data[annotation.end :])
    return evolve(annotation, spans=(*annotation.spans, rest), end=len(data))


def print_dump(data: bytes, annotations: Sequence[Annotation], as_json: bool) -> None:
    """Print the annotated dump as a table or as JSON."""
    if as_json:
        print_json(dump_json(data, annotations))
    else:
        console().print(dump_table(data, annotations))


def dump_json(data: bytes, annotations: Sequence[Annotation]) -> list[dict[str, Any]]:
    """Return the annotated dump as a JSON value: one object for each message, with all its bytes in hexadecimal."""
    return [
        {
            "message": annotation.title,
            "spans": [
                {
                    "offset": span.start,
                    "bytes": data[span.start : span.end].hex(),
                    "field": span.path,
                    "type": span.kind,
                    "value": span.value
                    if isinstance(span.value, str | int | float | None)
                    else _shown_whole(span.value),
                }
                for span in annotation.spans
            ],
            "error": None if annotation.error is None else str(annotation.error),
        }
        for annotation in annotations
    ]


def _shown_whole(value: Any) -> str:
    return value.hex() if isinstance(value, bytes | bytearray | memoryview) else str(value)


def dump_table(data: bytes, annotations: Sequence[Annotation]) -> Table:
    """Return the annotated dump of ``data``, the bytes of one message or of several that follow each other.

    One row per value: offset, bytes, the field's path, its type on the wire, and the value. The last row has the error,
    if any. Long bytes and values are shortened.
    """
    dump = table("offset", "bytes", "field", "type", "value")
    dump.columns[0].justify = "right"
    for annotation in annotations:
        if len(annotations) > 1:
            dump.add_section()
            dump.add_row("", "", Text(annotation.title, style="bold"))
        for span in annotation.spans:
            raw = Text(_hex(data[span.start : span.end]), style="cyan")
            dump.add_row(str(span.start), raw, span.path, _kind(span), _shown(span))
        for row in _error_rows(data, annotation):
            dump.add_row(*row, style="red")
    return dump


def _error_rows(data: bytes, annotation: Annotation) -> Iterator[tuple[str, ...]]:
    """Yield the bytes of the value that failed to decode, and then the error."""
    error = annotation.error
    if error is None:
        return
    if error.offset > annotation.end:
        yield str(annotation.end), _hex(data[annotation.end : error.offset]), error.path, "", ""
    rest = data[max(annotation.end, error.offset) :]
    yield str(error.offset), _hex(rest), error.path, type(error).__name__, error.reason


def _hex(raw: bytes) -> str:
    shown = raw[: _BYTES_A_LINE * _MOST_LINES]
    lines = [shown[start : start + _BYTES_A_LINE].hex(" ") for start in range(0, len(shown), _BYTES_A_LINE)]
    if len(shown) < len(raw):
        lines.append(f"… {len(raw) - len(shown)} more")
    return "\n".join(lines)


def _kind(span: Span) -> str:
    """Omit the name of a struct from an array's type: it is long, and the path identifies it."""
    array, _, element = span.kind.partition(" of ")
    return array if element[:1].isupper() else span.kind


def _shown(span: Span) -> str:
    value = span.value
    if isinstance(value, bytes):
        text = value[:_MOST_CHARACTERS].hex()
    elif isinstance(value, str) and span.kind.endswith("string"):
        text = repr(value)
    else:
        text = "null" if value is None else str(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
