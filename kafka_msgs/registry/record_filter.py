"""Selection of records by an expression over their decoded keys, values and headers.

``records.where`` defines the expressions. A key or a value is decoded with the schemas of a registry if there are any,
by its message in an internal topic, and else as JSON. Its text is compared if the expression names no field of it, and
no schema decodes it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.internal_topics.records import TOPICS, TopicRecord, decode_record
from kafka_msgs.records import ConsumerRecord, Payload
from kafka_msgs.records.where import UNDECODABLE, Where, parse_where, resolve_fields
from kafka_msgs.registry.json_values import json_form, parse_json
from kafka_msgs.registry.schemas import SchemaResolver
from kafka_msgs.registry.serializers import PayloadDeserializer

__all__ = ["RecordFilter"]

_LOG: Final = logging.getLogger("kafka_msgs.records")
_TIME: Final = "timestampMs"


class RecordFilter:
    """Selects records for which an expression is true. It can be pickled.

    A condition on fields of a key or a value that cannot be decoded is unknown; ``undecoded`` counts these. A key,
    value or header without a text is not null, and any comparison with it is unknown. Raises ``ExpressionError``. The
    methods raise ``RegistryError`` if the registry does not respond.
    """

    def __init__(self, expression: str, schemas: SchemaResolver | None = None) -> None:
        self.where: Where = parse_where(expression)
        named = self.where.columns | {"topic"}
        self.columns: Sequence[str] = sorted(_TIME if name == "timestamp" else name for name in named)
        """The columns of ``kafka-log`` that the expression needs."""
        self.undecoded = 0
        self._schemas = schemas

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.where.text, self._schemas)

    def matches(self, record: ConsumerRecord) -> bool:
        """Return whether the expression is true for a record."""
        return self.where.matches(
            _Fields(self, {name: getattr(record, name) for name in self.where.columns | {"topic"}})
        )

    def select(self, rows: Any) -> Any:
        """Return the rows of a ``pyarrow.RecordBatch`` for which the expression is true. It contains ``columns``."""
        import pyarrow as pa

        columns = [rows[name].to_pylist() for name in self.columns]
        found = (dict(zip(self.columns, values, strict=True)) for values in zip(*columns, strict=True))
        mask = [self.where.matches(_Fields(self, each | {"timestamp": each.get(_TIME)})) for each in found]
        return rows.filter(pa.array(mask, pa.bool_()))

    def report(self, source: str) -> None:
        """Log the number of undecodable keys and values in a source, and reset it."""
        if self.undecoded:
            _LOG.warning("%s: %d keys or values could not be decoded for %s", source, self.undecoded, self.where.text)
        self.undecoded = 0

    @cached_property
    def _deserialize(self) -> Any:
        return None if self._schemas is None else PayloadDeserializer(self._schemas)

    def decode(self, data: Payload) -> Any:
        """Return a key or a value as a JSON value. Raises ``ValueError`` if it cannot be decoded."""
        return parse_json(bytes(data)) if self._deserialize is None else json_form(self._deserialize(data))


class _Fields:
    """Resolves paths in one record. Keys and values are decoded at the first use of a field."""

    def __init__(self, reader: RecordFilter, facts: Mapping[str, Any]) -> None:
        self._reader = reader
        self._facts = facts
        self._decoded: dict[str, Any] = {}

    def __call__(self, path: tuple[str, ...]) -> Any:
        root, *names = path
        if root == "headers":
            return _header(self._facts["headers"], ".".join(names))
        value = self._facts[root]
        if root == "timestamp":
            return None if value == -1 else value
        if root not in ("key", "value") or value is None:
            return value
        if not names and self._reader._schemas is None:
            return _text(value)
        if root not in self._decoded:
            self._decoded[root] = self._decode(root, value)
        decoded = self._decoded[root]
        return _text(value) if decoded is UNDECODABLE and not names else resolve_fields(decoded, names)

    def _decode(self, root: str, data: Payload) -> Any:
        try:
            if self._facts["topic"] in TOPICS:
                return self._message(root)
            return self._reader.decode(data)
        except (KafkaMsgsError, ValueError, RecursionError):
            self._reader.undecoded += 1
            return UNDECODABLE

    def _message(self, root: str) -> Any:
        """Return a key or a value of an internal topic by its message."""
        record = decode_record(self._facts["topic"], self._facts.get("key"), self._facts.get("value"))
        message = getattr(record, root)
        if not isinstance(record, TopicRecord) or message is None:
            raise ValueError("an unknown record type")
        is_value = root == "value" and record.version is not None
        return message.to_json(record.version if is_value else message.INFO.versions.lowest)


def _header(headers: Iterable[Any], name: str) -> str | Payload | None:
    """Return the text of the last header with a name, from pairs or from the rows of a log."""
    found = None
    for each in headers or ():
        key, value = each.values() if isinstance(each, dict) else each
        found = value if key == name else found
    return None if found is None else _text(found)


def _text(data: Payload) -> str | Payload:
    """Return bytes as text, or unchanged if they are not UTF-8: they are not null, but not comparable."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return data
