"""The output of ``consume``: lines of text, raw bytes, JSON lines, and kcat's format strings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import click
from attrs import frozen

from kafka_msgs.cli.render.output import echo, json_text, write_bytes
from kafka_msgs.cli.render.records import headers_of, typed
from kafka_msgs.cli.render.timestamps import iso_of_ms
from kafka_msgs.internal_topics.records import TOPICS
from kafka_msgs.records import ConsumerRecord, Payload

__all__ = ["Part", "RecordPrinter", "parse_delimiter", "parse_format"]

Decoder = Callable[[Payload | None], Any]
Part = bytes | str
"""A part of a format string: literal bytes, or the letter of a directive."""

_PART: Final = re.compile(r"%(.?)|\\(x[0-9A-Fa-f]{2}|.)|([^%\\]+)", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "e": b"\x1b", "0": b"\0", "\\": b"\\"}
_DIRECTIVES: Final = "stpokTKSRh"


def parse_format(text: str) -> tuple[Part, ...]:
    """Return the parts of a format string: a click type.

    The directives are kcat's: topic ``%t``, partition ``%p``, offset ``%o``, key ``%k`` and its length ``%K``, value
    ``%s`` and its length ``%S`` (in four bytes ``%R``), timestamp ``%T``, headers ``%h``. Lengths of null are -1.
    """
    return tuple(map(_part, _PART.finditer(text)))


def parse_delimiter(text: str) -> bytes:
    r"""Return the bytes of a text with escapes such as ``\n``: a click type."""
    return b"".join(part for part in parse_format(text.replace("%", "%%")) if isinstance(part, bytes))


def _part(match: re.Match[str]) -> Part:
    directive, escape, literal = match.groups()
    if literal is not None:
        return str(literal).encode()
    if escape is not None:
        return bytes.fromhex(escape[1:]) if len(escape) > 1 else _ESCAPES.get(escape, f"\\{escape}".encode())
    if directive == "%":
        return b"%"
    if not directive or directive not in _DIRECTIVES:
        raise click.BadParameter(f"%{directive} is not one of %{', %'.join(_DIRECTIVES)} and %%")
    return str(directive)


@frozen
class RecordPrinter:
    """Prints records in one of the forms ``text``, ``raw`` and ``jsonl``, or with a format."""

    form: str
    template: tuple[Part, ...] | None
    key_decoder: Decoder
    value_decoder: Decoder
    key_separator: str | None
    delimiter: bytes
    null_marker: str

    def __call__(self, record: ConsumerRecord) -> None:
        """Print a record."""
        if self.template is not None:
            write_bytes(b"".join(self._field(part, record) for part in self.template))
        elif self.form == "jsonl":
            echo(json_text(self._facts(record)))
        elif self.form == "text" and record.topic in TOPICS:
            echo(json_text(typed(record, record.topic)))
        else:
            write_bytes(self._key_prefix(record) + self._value(record) + self.delimiter)

    def _facts(self, record: ConsumerRecord) -> Mapping[str, Any]:
        if record.topic in TOPICS:
            content = typed(record, record.topic)
        else:
            content = {"key": self.key_decoder(record.key), "value": self.value_decoder(record.value)}
        return {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "time": iso_of_ms(record.timestamp),
            **content,
            "headers": headers_of(record),
        }

    def _key_prefix(self, record: ConsumerRecord) -> bytes:
        return b"" if self.key_separator is None else self._key(record) + self.key_separator.encode()

    def _key(self, record: ConsumerRecord) -> bytes:
        return self._text(record.key, self.key_decoder)

    def _value(self, record: ConsumerRecord) -> bytes:
        return self._text(record.value, self.value_decoder)

    def _text(self, data: Payload | None, decode: Decoder) -> bytes:
        """Return bytes unchanged, text in UTF-8, and other values as JSON."""
        if data is None:
            return self.null_marker.encode()
        value = decode(data)
        if isinstance(value, bytes):
            return value
        return (value if isinstance(value, str) else json_text(value)).encode()

    def _field(self, part: Part, record: ConsumerRecord) -> bytes:
        if isinstance(part, bytes):
            return part
        value = _FIELDS[part](self, record)
        return value if isinstance(value, bytes) else str(value).encode()


def _length(data: Payload | None) -> int:
    return -1 if data is None else len(data)


def _headers(record: ConsumerRecord) -> bytes:
    pairs = ((name.encode("utf-8", "surrogateescape"), value) for name, value in record.headers)
    return b",".join(name + b"=" + (b"NULL" if value is None else bytes(value)) for name, value in pairs)


_FIELDS: Final[Mapping[str, Callable[[RecordPrinter, ConsumerRecord], bytes | str | int]]] = {
    "t": lambda _, record: record.topic,
    "p": lambda _, record: record.partition,
    "o": lambda _, record: record.offset,
    "T": lambda _, record: record.timestamp,
    "K": lambda _, record: _length(record.key),
    "S": lambda _, record: _length(record.value),
    "R": lambda _, record: _length(record.value).to_bytes(4, "big", signed=True),
    "h": lambda _, record: _headers(record),
    "k": lambda printer, record: printer._key(record),
    "s": lambda printer, record: printer._value(record),
}
