"""The input of ``produce``: lines of text, or the JSON lines of ``consume``, parsed to records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, NoReturn

from kafka_msgs.cli.render.output import CommandError

__all__ = ["Encoder", "NewRecord", "records_of_json_lines", "records_of_lines"]

_FIELDS: Final = ("topic", "partition", "offset", "timestamp", "time", "key", "value", "headers")
"""The allowed fields of an object: all fields of ``consume --output jsonl``. Offset and readable time are ignored."""

Encoder = Callable[[Any], bytes | None]
"""Encodes a JSON value to a key or a value."""


class NewRecord(NamedTuple):
    """A record to write; if the time or the partition is None, the producer sets it."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None


def records_of_lines(
    source: Iterable[bytes],
    separator: bytes | None,
    null_marker: bytes | None,
    key_encoder: Encoder | None,
    value_encoder: Encoder | None,
) -> Iterator[NewRecord]:
    """Yield a record for each line. The text before the separator is the key; encoders receive the text as JSON."""
    for number, line in enumerate(source, 1):
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        key, has_key, value = text.partition(separator) if separator else (b"", b"", text)
        try:
            yield NewRecord(
                _content(value if has_key else text, null_marker, value_encoder),
                _content(key, null_marker, key_encoder) if has_key else None,
            )
        except (ValueError, RecursionError) as error:
            raise CommandError(f"line {number}: {error}") from None


def _content(text: bytes, null_marker: bytes | None, encode: Encoder | None) -> bytes | None:
    if text == null_marker:
        return None
    return text if encode is None else encode(_strict_json(text))


def _strict_json(text: bytes) -> Any:
    """Return a JSON value. Raises ``ValueError``, also for ``NaN`` and ``Infinity``."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def records_of_json_lines(
    source: Iterable[bytes], key_encoder: Encoder | None, value_encoder: Encoder | None
) -> Iterator[NewRecord]:
    """Yield a record for each JSON object."""
    for number, line in enumerate(source, 1):
        if line.strip():
            try:
                yield _record(_strict_json(line), key_encoder or _bytes, value_encoder or _bytes)
            except (ValueError, TypeError, RecursionError) as error:
                raise CommandError(f"line {number}: {error}") from None


def _record(fields: Any, key_encoder: Encoder, value_encoder: Encoder) -> NewRecord:
    if not isinstance(fields, dict) or not fields.keys() <= {*_FIELDS}:
        raise ValueError(f"expected an object with some of {', '.join(_FIELDS)}")
    for name in ("partition", "timestamp"):
        if type(fields.get(name)) not in (int, type(None)):
            raise ValueError(f"{name}: expected a whole number")
    headers = tuple((str(name), _bytes(value)) for name, value in fields.get("headers", ()))
    key, value = key_encoder(fields.get("key")), value_encoder(fields.get("value"))
    return NewRecord(value, key, headers, fields.get("partition"), fields.get("timestamp"))


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    if isinstance(value, dict) and [*value] == ["hex"]:
        return bytes.fromhex(value["hex"])
    return json.dumps(value, ensure_ascii=False).encode()
