"""A schema registry in memory, with the REST API of Confluent Schema Registry, for serializers in tests.

Schemas get ids from 1. Identical schemas have the same id, and subjects have versions from 1. Compatibility is checked
for Avro. ``registry_paths`` contains the HTTP paths.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from attrs import Factory, define, frozen

from kafka_msgs.broker.endpoints.avro_compatibility import AvroSchema, incompatibilities, parse_avro
from kafka_msgs.broker.endpoints.routes import HttpError

__all__ = ["SCHEMA_TYPES", "RegisteredVersion", "SchemaReference", "SchemaRegistry", "SchemaText", "refuse"]

SCHEMA_TYPES: Final = ("AVRO", "JSON", "PROTOBUF")
LEVELS: Final = ("NONE", "BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE")
"""The compatibility levels."""

_SUBJECT_NOT_FOUND: Final = 40401
_VERSION_NOT_FOUND: Final = 40402
_SCHEMA_NOT_FOUND: Final = 40403
_SUBJECT_NOT_DELETED: Final = 40405
_VERSION_NOT_DELETED: Final = 40407
_INVALID_SCHEMA: Final = 42201
_INVALID_VERSION: Final = 42202
_INVALID_LEVEL: Final = 42203
_LATEST: Final = ("latest", "-1")


@frozen
class SchemaReference:
    """A schema that another one uses under a name."""

    name: str
    subject: str
    version: int


@frozen
class SchemaText:
    """A schema. Two schemas are the same if all attributes are equal."""

    kind: str
    text: str
    references: tuple[SchemaReference, ...] = ()


@define
class RegisteredVersion:
    """A version of a subject. A deleted version keeps its number."""

    number: int
    schema_id: int
    deleted: bool = False


@define(eq=False)
class _Subject:
    versions: list[RegisteredVersion] = Factory(list)

    @property
    def existing(self) -> list[RegisteredVersion]:
        return [each for each in self.versions if not each.deleted]


class SchemaRegistry:
    """The schemas, subjects and compatibility levels. Methods raise ``HttpError`` with Confluent's error codes."""

    def __init__(self) -> None:
        self.level = "BACKWARD"
        self.levels: dict[str, str] = {}
        """The levels of single subjects."""
        self._schemas: dict[int, SchemaText] = {}
        self._ids: dict[SchemaText, int] = {}
        self._subjects: dict[str, _Subject] = {}

    # Reading

    def subjects(self, *, deleted: bool = False) -> list[str]:
        """Return the names of the subjects."""
        return sorted(name for name, each in self._subjects.items() if (each.versions if deleted else each.existing))

    def schema(self, schema_id: int) -> SchemaText:
        """Return the schema with an id."""
        if schema_id not in self._schemas:
            raise refuse(HTTPStatus.NOT_FOUND, _SCHEMA_NOT_FOUND, f"Schema {schema_id} not found")
        return self._schemas[schema_id]

    def uses(self, schema_id: int) -> Iterator[tuple[str, int]]:
        """Yield the subjects and versions with a schema id."""
        self.schema(schema_id)
        for name, subject in self._subjects.items():
            yield from ((name, each.number) for each in subject.existing if each.schema_id == schema_id)

    def versions(self, subject: str, *, deleted: bool = False) -> list[RegisteredVersion]:
        """Return the versions of a subject."""
        found = self._subjects.get(subject, _Subject())
        versions = found.versions if deleted else found.existing
        if not versions:
            raise refuse(HTTPStatus.NOT_FOUND, _SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")
        return versions

    def version(self, subject: str, text: str, *, deleted: bool = False) -> RegisteredVersion:
        """Return a version of a subject. ``text`` is its number, or ``latest``."""
        versions = self.versions(subject, deleted=deleted)
        if text in _LATEST:
            return versions[-1]
        if not (text.isascii() and text.isdecimal() and int(text)):
            message = f"The specified version '{text}' is not a valid version id."
            raise refuse(HTTPStatus.UNPROCESSABLE_ENTITY, _INVALID_VERSION, message)
        found = next((each for each in versions if each.number == int(text)), None)
        if found is None:
            raise refuse(HTTPStatus.NOT_FOUND, _VERSION_NOT_FOUND, f"Version {text} not found.")
        return found

    def lookup(self, subject: str, schema: SchemaText, *, deleted: bool = False) -> RegisteredVersion:
        """Return the version of a subject that has a schema."""
        versions = self.versions(subject, deleted=deleted)
        schema_id = self._ids.get(self._checked(schema))
        found = next((each for each in reversed(versions) if each.schema_id == schema_id), None)
        if found is None:
            raise refuse(HTTPStatus.NOT_FOUND, _SCHEMA_NOT_FOUND, "Schema not found")
        return found

    def referenced_by(self, subject: str, number: int) -> list[int]:
        """Return the ids of the schemas that use a version of a subject."""
        return [
            schema_id
            for schema_id, schema in self._schemas.items()
            if any((each.subject, each.version) == (subject, number) for each in schema.references)
        ]

    # Changes

    def register(self, subject: str, schema: SchemaText) -> int:
        """Add a schema to a subject, unless the subject has it, and return its id."""
        schema = self._checked(schema)
        found = self._subjects.get(subject, _Subject())
        schema_id = self._ids.get(schema)
        if schema_id is not None and any(each.schema_id == schema_id for each in found.existing):
            return schema_id
        reasons = self.incompatibilities(subject, schema)
        if reasons:
            message = f"Schema being registered is incompatible with an earlier schema: {'; '.join(reasons)}"
            raise refuse(HTTPStatus.CONFLICT, HTTPStatus.CONFLICT, message)
        if schema_id is None:
            schema_id = self._ids[schema] = len(self._schemas) + 1
            self._schemas[schema_id] = schema
        self._subjects[subject] = found
        number = found.versions[-1].number + 1 if found.versions else 1
        found.versions.append(RegisteredVersion(number, schema_id))
        return schema_id

    def delete(self, subject: str, number: str | None = None, *, permanent: bool = False) -> list[int]:
        """Delete a version of a subject, or all versions, and return their numbers.

        A permanent deletion requires an earlier deletion.
        """
        every = self.versions(subject, deleted=permanent)
        doomed = every if number is None else [self.version(subject, number, deleted=permanent)]
        if permanent and not all(each.deleted for each in doomed):
            code = _SUBJECT_NOT_DELETED if number is None else _VERSION_NOT_DELETED
            message = f"Subject '{subject}' was not deleted first before being permanently deleted"
            raise refuse(HTTPStatus.NOT_FOUND, code, message)
        numbers = [each.number for each in doomed]
        for each in list(doomed):
            each.deleted = True
            if permanent:
                self._subjects[subject].versions.remove(each)
        return numbers

    def set_level(self, subject: str | None, level: str) -> None:
        """Set the compatibility level of a subject, or of all other subjects."""
        if level not in LEVELS:
            message = f"Invalid compatibility level. Valid values are {', '.join(LEVELS)}"
            raise refuse(HTTPStatus.UNPROCESSABLE_ENTITY, _INVALID_LEVEL, message)
        if subject is None:
            self.level = level
        else:
            self.levels[subject] = level

    # Compatibility

    def incompatibilities(self, subject: str, schema: SchemaText, number: str | None = None) -> list[str]:
        """Return the reasons why a subject cannot get a schema.

        ``number`` selects a version to compare with. By default the level decides which versions are compared.
        """
        schema = self._checked(schema)
        level = self.levels.get(subject, self.level)
        if number is not None:
            compared = [self.version(subject, number)]
        else:
            compared = self._subjects.get(subject, _Subject()).existing
            compared = compared if level.endswith("_TRANSITIVE") else compared[-1:]
        earlier = [self._schemas[each.schema_id] for each in compared]
        if level == "NONE" or all(each == schema for each in earlier):
            return []
        if any(each.kind != schema.kind for each in earlier):
            return [f"the schema type changes to {schema.kind}"]
        if schema.kind != "AVRO":
            message = f"the compatibility of {schema.kind} schemas is not checked here: set the level NONE"
            raise refuse(HTTPStatus.UNPROCESSABLE_ENTITY, _INVALID_LEVEL, message)
        return [reason for each in earlier for reason in self._compared(level.partition("_")[0], schema, each)]

    def _compared(self, level: str, new: SchemaText, old: SchemaText) -> list[str]:
        reader, writer = self._avro(new), self._avro(old)
        try:
            backward = [] if level == "FORWARD" else incompatibilities(reader, writer)
            forward = [] if level == "BACKWARD" else incompatibilities(writer, reader)
        except ValueError as error:
            raise _invalid(str(error)) from None
        return backward + forward

    def _checked(self, schema: SchemaText) -> SchemaText:
        """Return a schema in the form in which it is stored."""
        if schema.kind not in SCHEMA_TYPES:
            raise _invalid(f"Invalid schema type {schema.kind}")
        if schema.kind == "PROTOBUF":
            return schema
        try:
            parsed = json.loads(schema.text) if schema.text.strip() else None
        except (ValueError, RecursionError) as error:
            raise _invalid(f"Invalid schema: {error}") from None
        if schema.kind == "JSON":
            return schema
        self._avro(schema)
        return SchemaText("AVRO", json.dumps(parsed, separators=(",", ":"), ensure_ascii=False), schema.references)

    def _avro(self, schema: SchemaText, named: dict[str, AvroSchema] | None = None) -> AvroSchema:
        """Return a parsed Avro schema, including the types that it references."""
        named = {} if named is None else named
        try:
            for each in schema.references:
                used = self._schemas[self.version(each.subject, str(each.version)).schema_id]
                if each.name not in named:
                    self._avro(used, named)
            return parse_avro(json.loads(schema.text), named)
        except (ValueError, RecursionError) as error:
            raise _invalid(f"Invalid schema: {error}") from None


def refuse(status: int, code: int, message: str) -> HttpError:
    """Return an error with Confluent's error code."""
    return HttpError(status, {"error_code": int(code), "message": message})


def _invalid(message: str) -> HttpError:
    return refuse(HTTPStatus.UNPROCESSABLE_ENTITY, _INVALID_SCHEMA, message)
