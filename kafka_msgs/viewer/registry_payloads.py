"""The keys and values of record batches that a schema registry's schemas decode, as trees of JSON for the page.

The page decodes bytes itself, but not these formats. It finds the trees by the bytes of the payloads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from attrs import define, field

from kafka_msgs.errors import KafkaMsgsError, PayloadError, RegisteredSchemaError, UnknownSchemaError
from kafka_msgs.records.batch import RecordBatch, walk_batches
from kafka_msgs.records.options import ReadOptions
from kafka_msgs.registry.json_values import json_form
from kafka_msgs.registry.serializers import PayloadDeserializer

__all__ = ["RegistryPayloads"]

_MAX_ID: Final = 10_000_000
_SMALLEST: Final = 6
_MAX_DEPTH: Final = 64
_MAX_TEXT: Final = 4096
_MAX_PREVIEW: Final = 200
_RECORD_BYTES: Final = 7
_OPTIONS: Final = ReadOptions(check_crc=False, max_decompressed_bytes=32 * 2**20)


@define
class RegistryPayloads:
    """Decoded payloads by their bytes. Each distinct payload is decoded once, and unusable schemas are tried once.

    ``max_payloads`` and ``max_bytes`` limit the payloads together with their trees, and ``max_content_bytes`` the
    decompressed records that are searched. ``is_limited`` is set when a limit is exceeded.
    """

    deserialize: PayloadDeserializer
    max_payloads: int = 10_000
    max_bytes: int = 16 * 2**20
    max_content_bytes: int = 128 * 2**20
    is_limited: bool = field(default=False, init=False)
    trees: dict[str, str] = field(factory=dict, init=False)
    _seen: set[bytes] = field(factory=set, init=False)
    _unusable: dict[int, str] = field(factory=dict, init=False)

    def add(self, parts: Iterable[Any]) -> None:
        """Decode the registry payloads in records fields. Raises ``RegistryError`` and ``MissingExtraError``."""
        for part in parts:
            for payload in self._payloads(bytes(part)):
                if payload not in self._seen and not self.is_limited:
                    self._seen.add(payload)
                    self._add(payload)

    def facts(self) -> dict[str, Any]:
        """Return the facts of the page: the trees in JSON, by hexadecimal payload, and the reason of missing ones."""
        reason = "not decoded: above the limits of decoded payloads" if self.is_limited else "not decoded"
        return {"decoded": self.trees, "undecoded": reason}

    def _payloads(self, data: bytes) -> Iterator[bytes]:
        for batch in walk_batches(data, _OPTIONS):
            if self.is_limited:
                return
            if isinstance(batch, RecordBatch) and not batch.is_control:
                yield from self._framed(batch)

    def _framed(self, batch: RecordBatch) -> Iterator[bytes]:
        """Yield the keys and values with a registry's header. The page itself shows damaged batches."""
        try:
            records: Sequence[Any] = list(batch.records())
        except KafkaMsgsError:
            return
        for record in records:
            self.max_content_bytes -= _RECORD_BYTES
            for payload in (record.key, record.value):
                self.max_content_bytes -= len(payload or b"")
                if payload is not None and _is_framed(payload):
                    yield payload
        self.is_limited |= self.max_content_bytes < 0

    def _add(self, payload: bytes) -> None:
        tree = "" if len(self.trees) == self.max_payloads else self._tree(payload)
        size = 2 * len(payload) + len(tree)
        if not tree or size > self.max_bytes:
            self.is_limited = True
            return
        self.max_bytes -= size
        self.trees[payload.hex()] = tree

    def _tree(self, payload: bytes) -> str:
        """Return the tree of a payload in JSON, or the reason why it cannot be decoded."""
        schema_id = int.from_bytes(payload[1:5])
        if schema_id in self._unusable:
            return self._unusable[schema_id]
        try:
            value = json_form(self.deserialize(payload))
            text = json.dumps(value, ensure_ascii=False)
            return json.dumps(_node("decoded", value, text))
        except RecursionError:
            return json.dumps("nested too deeply")
        except PayloadError as error:
            return json.dumps(str(error)[:_MAX_TEXT])
        except (RegisteredSchemaError, UnknownSchemaError) as error:
            return self._unusable.setdefault(schema_id, json.dumps(str(error)[:_MAX_TEXT]))


def _is_framed(payload: bytes) -> bool:
    """Whether the page shows a payload with a registry's header; records.js has the same condition."""
    return len(payload) >= _SMALLEST and payload[0] == 0 and 0 < int.from_bytes(payload[1:5]) <= _MAX_ID


def _node(name: str, value: Any, text: str = "", depth: int = 0) -> list[Any]:
    """Return a name, a text, and for objects and arrays their members."""
    if isinstance(value, dict | list) and value and depth < _MAX_DEPTH:
        members = value.items() if isinstance(value, dict) else enumerate(value)
        kids = [_node(str(key), each, depth=depth + 1) for key, each in members]
        return [name, _shortened(text, _MAX_PREVIEW), kids]
    return [name, _shortened(text or json.dumps(value, ensure_ascii=False), _MAX_TEXT)]


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
