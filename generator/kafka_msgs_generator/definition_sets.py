"""Revisions of definitions to compare: a file, a directory, a jar, or a release of Kafka.

Finds the definitions and the lines of their fields. `compiler` compiles them, and `importer` reads jars and releases.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from attrs import evolve, frozen

from kafka_msgs.errors import SchemaError
from kafka_msgs_generator.compiler import (
    Compiled,
    CompileOptions,
    InvalidDefinitionsError,
    compile_definitions,
    definition_files,
)
from kafka_msgs_generator.importer import import_path, import_release
from kafka_msgs_generator.ir import Message
from kafka_msgs_generator.maven import SourceUnavailableError
from kafka_msgs_generator.naming import attribute_name
from kafka_msgs_generator.spec import FieldSpec

__all__ = ["Definition", "DefinitionSet", "read_definition_set"]

_RELEASE: Final = re.compile(r"\d+(\.\d+)+")


@frozen
class Definition:
    """A compiled message, the origin and the file of its definition, and the lines of its fields by path.

    ``file`` is empty for a definition in a jar or a release.
    """

    message: Message
    origin: str
    file: str
    lines: Mapping[str, int]


@frozen
class DefinitionSet:
    """The definitions of one revision by message name; ``label`` is their path or release."""

    label: str
    definitions: Mapping[str, Definition]


def read_definition_set(source: str) -> DefinitionSet:
    """Read the definitions of a file, a directory, a jar, or a release such as ``4.3.1``, fetched through Maven.

    A directory contains definitions or jars of Kafka, and may be the output of the command ``import``. Raises
    ``InvalidDefinitionsError`` with an error for each bad file, ``SourceUnavailableError`` and ``OSError``.
    """
    path = Path(source)
    if not path.exists() and not _RELEASE.fullmatch(source):
        raise SourceUnavailableError(reason=f"{source} is neither a path nor a release such as 4.3.1")
    if path.exists() and not _holds_jars(path):
        return DefinitionSet(source, _read(definition_files([path]), source))
    with TemporaryDirectory() as folder:
        import_path(path, Path(folder)) if path.exists() else import_release(source, Path(folder))
        found = _read(definition_files([Path(folder)]), source)
    return DefinitionSet(source, {name: evolve(each, file="") for name, each in found.items()})


def _holds_jars(path: Path) -> bool:
    return path.suffix == ".jar" if path.is_file() else next(path.glob("*.jar"), None) is not None


def _read(files: Sequence[tuple[str, Path]], source: str) -> dict[str, Definition]:
    if not files:
        raise InvalidDefinitionsError([SchemaError("no definitions (*.json) here", source=source)])
    found: dict[str, Definition] = {}
    errors: list[SchemaError] = []
    for origin, file in files:
        try:
            for compiled in compile_definitions(file, CompileOptions(), origin):
                _add(found, compiled, file)
        except SchemaError as error:
            errors.append(error)
    if errors:
        raise InvalidDefinitionsError(errors)
    return found


def _add(found: dict[str, Definition], compiled: Compiled, file: Path) -> None:
    name = compiled.message.name
    if name in found:
        raise compiled.site.error("N1", f"{name} is also defined in {found[name].file}", "name")
    found[name] = Definition(compiled.message, compiled.origin, os.path.relpath(file), dict(_lines(compiled)))


def _lines(compiled: Compiled) -> Iterator[tuple[str, int]]:
    """Yield each field's path, as in ``fields_by_path``, and its line; the empty path is the message."""
    yield "", compiled.site.node.line
    yield from _field_lines(compiled.spec.fields, "")
    for struct in compiled.spec.common:
        yield from _field_lines(struct.fields, struct.name)


def _field_lines(fields: Sequence[FieldSpec], parent: str) -> Iterator[tuple[str, int]]:
    for field in fields:
        path = f"{parent}.{attribute_name(field.name)}".lstrip(".")
        yield path, field.site.node.line
        yield from _field_lines(field.fields, path)
