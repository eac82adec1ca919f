"""The changes between two imports of definitions: messages, versions, fields and error codes.

Compares compiled messages, so purely textual changes do not count. `diff_output` writes the differences, and
`evolution` decides whether two revisions are compatible by Kafka's rules.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from attrs import Factory, define, frozen

from kafka_msgs.errors import SchemaError
from kafka_msgs.schema import ZERO_UUID
from kafka_msgs.versions import VersionRange
from kafka_msgs_generator.compiler import CompileOptions, compile_file
from kafka_msgs_generator.importer import import_path, import_release
from kafka_msgs_generator.ir import Default, Field, Message, NewStruct, Struct

__all__ = [
    "ABSENT",
    "ImportedDefinitions",
    "MessageDiff",
    "ReleaseDiff",
    "describe_field",
    "diff_imports",
    "fields_by_path",
    "imported_release",
    "read_import",
    "read_source",
    "struct_path",
]

ABSENT: Final = "not there"
"""The text for a thing that one import lacks."""


@frozen
class ImportedDefinitions:
    """The output of an import: ``release``, messages by name (without retired ones), and error codes by name."""

    release: str
    messages: Mapping[str, Message]
    errors: Mapping[str, int]


def read_import(directory: Path) -> ImportedDefinitions:
    """Read a directory written by the import. Raises ``SchemaError`` for another directory or a broken definition."""
    source = directory / "SOURCE.toml"
    if not source.is_file():
        raise SchemaError("not a directory that the import wrote: it has no SOURCE.toml", source=str(directory))
    files = sorted((directory / "kafka").glob("*/*.json"))
    compiled = [compile_file(path, CompileOptions(), path.parent.name).message for path in files]
    table = directory / "errors.json"
    errors = json.loads(table.read_text(encoding="utf-8")) if table.is_file() else []
    return ImportedDefinitions(
        release=tomllib.loads(source.read_text(encoding="utf-8"))["release"],
        messages={message.name: message for message in compiled if not message.retired},
        errors={error["name"]: error["code"] for error in errors},
    )


def read_source(source: str) -> ImportedDefinitions:
    """Read a directory written by the import, a jar, a directory of jars, or a release, fetched through Maven.

    Raises ``SchemaError``, and the errors of ``import_release``.
    """
    path = Path(source)
    if (path / "SOURCE.toml").is_file() or (path.is_dir() and next(path.glob("*.jar"), None) is None):
        return read_import(path)
    if not path.exists():
        return imported_release(source)
    with TemporaryDirectory() as folder:
        import_path(path, Path(folder))
        return read_import(Path(folder))


def imported_release(release: str) -> ImportedDefinitions:
    """Import a release of Kafka through Maven and return it. Raises the errors of ``import_release``."""
    with TemporaryDirectory() as folder:
        import_release(release, Path(folder))
        return read_import(Path(folder))


@frozen
class MessageDiff:
    """The changes of a message: of its facts and of its fields, each with the old and the new text.

    ``changed_layouts`` are the shared versions with other bytes, without tagged fields that came or went; ``wire`` is a
    sentence about the shared versions.
    """

    name: str
    facts: tuple[tuple[str, str, str], ...]
    fields: tuple[tuple[str, str, str], ...]
    changed_layouts: tuple[int, ...]
    wire: str


@frozen
class ReleaseDiff:
    """The differences between two imports: messages, and rows of error names with their old and new codes."""

    old: str
    new: str
    added: tuple[Message, ...]
    removed: tuple[Message, ...]
    changed: tuple[MessageDiff, ...]
    errors: tuple[tuple[str, int | None, int | None], ...]


def diff_imports(old: ImportedDefinitions, new: ImportedDefinitions) -> ReleaseDiff:
    """Return the differences in ``new``."""
    common = sorted(new.messages.keys() & old.messages.keys())
    changed = [_changed_message(old.messages[name], new.messages[name]) for name in common]
    return ReleaseDiff(
        old=old.release,
        new=new.release,
        added=tuple(new.messages[name] for name in sorted(new.messages.keys() - old.messages.keys())),
        removed=tuple(old.messages[name] for name in sorted(old.messages.keys() - new.messages.keys())),
        changed=tuple(each for each in changed if each.facts or each.fields or each.changed_layouts),
        errors=tuple(_error_codes(old.errors, new.errors)),
    )


def _error_codes(old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[tuple[str, int | None, int | None]]:
    names = sorted(old.keys() | new.keys(), key=lambda name: (new.get(name, old.get(name, 0)), name))
    return ((name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name))


def _changed_message(old: Message, new: Message) -> MessageDiff:
    facts = [row for row in _pairs(_facts(old), _facts(new)) if row[1] != row[2]]
    facts += _changed_errors(old.errors, new.errors)
    layouts, wire = _wire(old, new)
    return MessageDiff(new.name, tuple(facts), tuple(_changed_fields(old, new)), tuple(layouts), wire)


def _pairs(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for key in dict.fromkeys([*old, *new]):
        yield key, old.get(key, ABSENT), new.get(key, ABSENT)


def _facts(message: Message) -> dict[str, str]:
    """Return the message-level facts."""
    return {
        "kind": message.kind,
        "key": str(message.api_key),
        "versions": str(message.versions),
        "flexible versions": str(message.flexible),
        "deprecated versions": str(message.deprecated),
        "listeners": ", ".join(message.listeners) or "none",
        "latest version unstable": str(message.unstable).lower(),
    }


def _changed_errors(old: Mapping[str, VersionRange], new: Mapping[str, VersionRange]) -> Iterator[tuple[str, str, str]]:
    """Yield one row with the errors that only one definition lists, or that have different versions."""
    before, now = ({f"{name} {versions}": None for name, versions in errors.items()} for errors in (old, new))
    if before.keys() != now.keys():
        left, right = ([each for each in mine if each not in other] for mine, other in ((before, now), (now, before)))
        yield "errors", ", ".join(left) or ABSENT, ", ".join(right) or ABSENT


# Fields


def _changed_fields(old: Message, new: Message) -> Iterator[tuple[str, str, str]]:
    before, now = fields_by_path(old), fields_by_path(new)
    renamed = _renamed(before, now)
    for path, (_, field) in before.items():
        if path in renamed:
            yield path, describe_field(field), f"called {renamed[path]}"
        elif path not in now:
            yield path, describe_field(field), ABSENT
        elif describe_field(field) != describe_field(now[path][1]):
            yield path, describe_field(field), describe_field(now[path][1])
    for path, (_, field) in now.items():
        if path not in before and path not in renamed.values():
            yield path, ABSENT, describe_field(field)


_Fields = Mapping[str, tuple[tuple[str, int], Field]]


def fields_by_path(message: Message) -> _Fields:
    """Return every field by its path, with its location: its struct and its index there."""
    groups = [("", message.fields), *((struct_path(struct), struct.fields) for struct in reversed(message.structs))]
    return {
        f"{path}.{field.attribute}".lstrip("."): ((path, number), field)
        for path, fields in groups
        for number, field in enumerate(fields)
    }


def struct_path(struct: Struct) -> str:
    """Return the path of a struct's fields: the path of the field that defines it, or a common struct's name."""
    return struct.name if struct.origin is None else struct.origin.partition(".")[2]


def _renamed(before: _Fields, now: _Fields) -> dict[str, str]:
    """Map the old path to the new path of fields that differ only in their name."""
    gone = {(place, describe_field(field)): path for path, (place, field) in before.items() if path not in now}
    new = {(place, describe_field(field)): path for path, (place, field) in now.items() if path not in before}
    return {path: new[key] for key, path in gone.items() if key in new}


def describe_field(each: Field) -> str:
    """Return the type and the other facts of a field in a line."""
    facts = [str(each.type), str(each.versions)]
    facts += [] if each.nullable.empty else [f"null {each.nullable}"]
    facts += [] if each.tag is None else [f"tag {each.tag} in {each.tagged}"]
    facts += [] if each.flexible is None else [f"flexible {each.flexible}"]
    facts += [] if _is_zero(each.default) else [f"default {'null' if each.default is None else str(each.default)}"]
    facts += [word for word, holds in (("ignorable", each.ignorable), ("map key", each.map_key)) if holds]
    return ", ".join(facts)


def _is_zero(default: Default) -> bool:
    return isinstance(default, NewStruct) or default in (0, "", (), b"", ZERO_UUID)


# The wire


def _wire(old: Message, new: Message) -> tuple[list[int], str]:
    """Return the shared versions with another layout, and a sentence on the shared versions."""
    shared = old.versions.intersect(new.versions)
    if shared.empty:
        return [], "No version is in both."
    pairs = {version: _Layouts(old, new, version) for version in shared}
    differing = [version for version, pair in pairs.items() if not pair.alike()]
    if differing:
        versions = ", ".join(map(str, differing))
        return differing, f"Not compatible: the bytes are laid out in another way at {versions}."
    besides = ", but for tagged fields that came or went" if any(pair.tags_differ for pair in pairs.values()) else ""
    word = "version" if shared.lowest == shared.highest else "versions"
    return [], f"At {word} {shared} the bytes are laid out as before{besides}."


@define
class _Layouts:
    """The wire layouts of one version in two imports. Each pair of structs is compared once."""

    old: Message
    new: Message
    version: int
    tags_differ: bool = False
    _compared: set[tuple[str, str]] = Factory(set)

    def alike(self) -> bool:
        """Return whether the layouts are equal, ignoring tagged fields that only one of them has."""
        flexible = [self.version in message.flexible for message in (self.old, self.new)]
        return flexible[0] == flexible[1] and self._structs(self.old.name, self.new.name)

    def _structs(self, old: str, new: str) -> bool:
        if (old, new) in self._compared:
            return True
        self._compared.add((old, new))
        before, now = self._fields(self.old, old), self._fields(self.new, new)
        common = before.keys() & now.keys()
        if any(isinstance(key, int) for key in before.keys() ^ now.keys()):
            return False
        self.tags_differ |= before.keys() != now.keys()
        return all(self._same(before[key], now[key]) for key in common)

    def _fields(self, message: Message, name: str) -> dict[int | str, Field]:
        """Return the fields of a struct at the version, by index or by tag."""
        fields = message.fields if name == message.name else {each.name: each.fields for each in message.structs}[name]
        present = [each for each in fields if self.version in each.versions]
        tagged = {f"tag {each.tag}": each for each in present if self.version in each.tagged}
        return tagged | dict(enumerate(each for each in present if self.version not in each.tagged))

    def _same(self, old: Field, new: Field) -> bool:
        if self._facts(old) != self._facts(new):
            return False
        return not old.type.is_struct or self._structs(old.type.element, new.type.element)

    def _facts(self, each: Field) -> tuple[object, ...]:
        element = "struct" if each.type.is_struct else each.type.element
        flexible = each.flexible is None or self.version in each.flexible
        return each.type.array, element, self.version in each.nullable, flexible
