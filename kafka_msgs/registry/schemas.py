"""Registered schemas and their sources: a registry's REST API, a list in a file, or the registry's topic.

Defines the representation of a registered schema. A registry's REST API, its list of all schemas (``GET /schemas``) and
the values of its topic ``_schemas`` describe a schema with the same JSON object, so one function reads all three.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, Protocol, get_args

from attrs import field, frozen

from kafka_msgs.errors import RegisteredSchemaError, RegistryError, UnknownSchemaError
from kafka_msgs.log import Partition
from kafka_msgs.records import RecordBatch

__all__ = [
    "Reference",
    "RegisteredSchema",
    "SchemaKind",
    "SchemaResolver",
    "StaticSchemas",
    "resolve_references",
    "schema_of_json",
]

SchemaKind = Literal["AVRO", "PROTOBUF", "JSON"]
_KINDS: Final = get_args(SchemaKind)
_MOST_REFERENCES: Final = 10_000
_MAX_ID: Final = 2**32 - 1
_VERSION: Final = "SCHEMA"
_SUBJECT_DELETED: Final = "DELETE_SUBJECT"
_Key = tuple[str | None, str, int]
"""The kind, subject and version in a record of the topic. Other kinds of records contain configuration."""


@frozen
class Reference:
    """A reference from one schema to another: its ``name`` there, and the ``subject`` and ``version`` of the target.

    The name is a type name in Avro, a file name in Protobuf, and an address in JSON Schema.
    """

    name: str
    subject: str
    version: int


@frozen
class RegisteredSchema:
    """A schema in a registry.

    ``id`` is the number in the payload header. ``text`` is the schema in its own notation. ``subject`` and ``version``
    are None if the schema was requested by id.
    """

    id: int
    kind: SchemaKind
    text: str = field(repr=False)
    references: tuple[Reference, ...] = ()
    subject: str | None = None
    version: int | None = None


class SchemaResolver(Protocol):
    """A source of schemas. It must be picklable, because Spark tasks also use it.

    All methods raise ``UnknownSchemaError`` for an unknown schema, and ``RegistryError`` if the lookup fails.
    """

    def __hash__(self) -> int: ...

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Return the schema with the id, even if its version is deleted."""
        ...

    def version(self, subject: str, version: int) -> RegisteredSchema:
        """Return one version of a subject, even if it is deleted, because other schemas may reference it."""
        ...

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the latest version of a subject that is not deleted."""
        ...


def schema_of_json(found: object, source: str, schema_id: int | None = None) -> RegisteredSchema:
    """Return the schema in a JSON object; ``schema_id`` is used if the object lacks the id.

    Raises ``RegistryError`` for an object that is not a schema.
    """
    try:
        if not isinstance(found, Mapping):
            raise TypeError("it is not an object")
        return _of_object(found, schema_id)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise RegistryError(source=source, reason=f"not a registered schema: {error!r}") from error


def _of_object(found: Mapping[str, Any], schema_id: int | None) -> RegisteredSchema:
    """Return the schema of an object; raises ``TypeError``, ``ValueError``, ``KeyError`` or ``OverflowError``."""
    kind: SchemaKind = found.get("schemaType") or "AVRO"
    if kind not in _KINDS:
        raise ValueError(f"schemaType is {kind!r}, expected one of {', '.join(_KINDS)}")
    uses = found.get("references") or ()
    references = tuple(Reference(str(each["name"]), str(each["subject"]), int(each["version"])) for each in uses)
    number, text = found["id"] if schema_id is None else schema_id, found["schema"]
    subject, version = found.get("subject"), found.get("version")
    for value, types in ((number, int), (text, str), (subject, str | None), (version, int | None)):
        if not isinstance(value, types):
            raise TypeError("its id or version is not a number, or its schema or subject is no text")
    if not 0 <= number <= _MAX_ID:
        raise ValueError(f"its id is {number}")
    return RegisteredSchema(number, kind, text, references, subject, version)


class StaticSchemas:
    """A fixed list of schemas: from a file, from the log of the topic ``_schemas``, or passed directly."""

    def __init__(
        self, schemas: Iterable[RegisteredSchema], *, deleted: Iterable[tuple[str | None, int | None]] = (), source: str
    ):
        """Store the schemas. ``latest`` skips the (subject, version) pairs in ``deleted``; ``source`` is for errors."""
        self.source = source
        self._ids: dict[int, RegisteredSchema] = {}
        self._versions: dict[tuple[str, int], RegisteredSchema] = {}
        self._latest: dict[str, int] = {}
        gone = frozenset(deleted)
        for schema in schemas:
            self._ids[schema.id] = schema
            if schema.subject is not None and schema.version is not None:
                name = schema.subject, schema.version
                self._versions[name] = schema
                if name not in gone:
                    self._latest[schema.subject] = max(schema.version, self._latest.get(schema.subject, 0))

    def __repr__(self) -> str:
        return f"StaticSchemas({len(self._ids)} of {self.source})"

    def __iter__(self) -> Iterator[RegisteredSchema]:
        """Yield the versions of all subjects, in input order."""
        return iter(self._versions.values())

    @classmethod
    def from_file(cls, path: str | Path) -> StaticSchemas:
        """Read a JSON list of schemas, such as a registry's response to ``GET /schemas``.

        Raises ``OSError``, and ``RegistryError`` for any other content.
        """
        source = str(path)
        try:
            found = json.loads(Path(path).read_bytes())
        except (ValueError, RecursionError) as error:
            raise RegistryError(source=source, reason=f"it is not JSON: {error}") from error
        if not isinstance(found, list):
            raise RegistryError(source=source, reason="it is not a list of schemas")
        schemas = [schema_of_json(each, source) for each in found]
        gone = [(schema.subject, schema.version) for schema, each in zip(schemas, found, strict=True) if _deleted(each)]
        return cls(schemas, deleted=gone, source=source)

    @classmethod
    def from_log(cls, path: str | Path) -> StaticSchemas:
        """Read the topic of a registry: ``path`` is the directory of its single partition, ``.../_schemas-0``.

        As in a registry, the last record of a key wins, and a null removes its version. Raises ``OSError``,
        ``LogFileError``, and ``RegistryError`` for a record that a registry did not write.
        """
        last: dict[_Key, tuple[int, Any]] = {}
        for batch in Partition(Path(path)).batches():
            if not (isinstance(batch, RecordBatch) and batch.is_control):
                for record in batch.records():
                    key, body = _entry(record.key, record.value, f"{path} at offset {record.offset}")
                    last[key] = record.offset, body
        versions, deleted = [], []
        for (kind, subject, version), (offset, body) in last.items():
            if kind == _VERSION and body is not None:
                versions.append(schema_of_json(body, str(path)))
                gone_at, gone = last.get((_SUBJECT_DELETED, subject, 0), (-1, None))
                if _deleted(body) or (gone is not None and gone_at > offset and version <= gone["version"]):
                    deleted.append((subject, version))
        return cls(versions, deleted=deleted, source=str(path))

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Return the schema with the id; raises ``UnknownSchemaError``."""
        return self._found(self._ids.get(schema_id), f"schema {schema_id}")

    def version(self, subject: str, version: int) -> RegisteredSchema:
        """Return one version of a subject; raises ``UnknownSchemaError``."""
        return self._found(self._versions.get((subject, version)), f"version {version} of subject {subject!r}")

    def latest(self, subject: str) -> RegisteredSchema:
        """Return the latest version of a subject that is not deleted; raises ``UnknownSchemaError``."""
        return self._found(self._versions.get((subject, self._latest.get(subject, 0))), f"subject {subject!r}")

    def _found(self, schema: RegisteredSchema | None, what: str) -> RegisteredSchema:
        if schema is None:
            raise UnknownSchemaError(source=self.source, schema=what)
        return schema


def _deleted(found: Mapping[str, Any]) -> bool:
    return bool(found.get("deleted"))


def _entry(key: Any, value: Any, place: str) -> tuple[_Key, Any]:
    """Return the parsed key of a record of the topic, and its value. Raises ``RegistryError``."""
    try:
        name = {} if key is None else json.loads(bytes(key))
        kind, body = name.get("keytype"), None if value is None else json.loads(bytes(value))
        if kind == _SUBJECT_DELETED and body is not None:
            body = {"version": int(body["version"])}
        return (kind, str(name.get("subject")), int(name["version"]) if kind == _VERSION else 0), body
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise RegistryError(source=place, reason=f"not a record of a schema registry: {error!r}") from error


def resolve_references(schema: RegisteredSchema, source: SchemaResolver) -> list[tuple[str, RegisteredSchema]]:
    """Return all direct and indirect references of a schema with their names, each after its own references.

    Raises the errors of ``source``, and ``RegisteredSchemaError`` for more than 10,000 references.
    """
    entered: dict[tuple[str, int], tuple[str, RegisteredSchema]] = {}
    done: dict[tuple[str, int], tuple[str, RegisteredSchema]] = {}
    waiting = list(reversed(schema.references))
    while waiting:
        reference = waiting[-1]
        place = reference.subject, reference.version
        if place in entered:
            waiting.pop()
            done.setdefault(place, entered[place])
        else:
            if len(entered) == _MOST_REFERENCES:
                reason = f"it has more than {_MOST_REFERENCES:,} references"
                raise RegisteredSchemaError(schema_id=schema.id, reason=reason)
            entered[place] = reference.name, source.version(*place)
            waiting += (each for each in entered[place][1].references if (each.subject, each.version) not in entered)
    return list(done.values())
