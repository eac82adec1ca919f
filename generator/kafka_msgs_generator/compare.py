"""The changes between two imports of definitions: messages, versions, fields and error codes.

Writes the comparison and its page. It compares compiled messages, so purely textual changes do not count.
`kafka_msgs_generator.compiler` reads the imports, and `compare_imports` changes nothing on disk.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from attrs import Factory, define, frozen

from kafka_msgs.errors import SchemaError
from kafka_msgs.schema import ZERO_UUID
from kafka_msgs.versions import VersionRange
from kafka_msgs_generator.compiler import CompileOptions, compile_file
from kafka_msgs_generator.importer import import_release
from kafka_msgs_generator.ir import Default, Field, Message, NewStruct, Struct

__all__ = ["ImportedDefinitions", "compare_imports", "fields_by_path", "imported_release", "read_import"]

_ABSENT: Final = "not there"
_BROKEN: Final = "**Not compatible**"
_INTRODUCTION: Final = """\
What changed in the messages; `kafka-msgs-generator compare` wrote this page from two imports of definitions. A field is
shown with its type, its versions, and what else holds: *null* are the versions in which it may be null. Defaults that
are zero or empty are left out.
"""


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


def imported_release(release: str) -> ImportedDefinitions:
    """Import a release of Kafka through Maven and return it. Raises the errors of ``import_release``."""
    with TemporaryDirectory() as folder:
        import_release(release, Path(folder))
        return read_import(Path(folder))


def compare_imports(old: ImportedDefinitions, new: ImportedDefinitions, since: Mapping[str, str] | None = None) -> str:
    """Return a Markdown page of the differences in ``new``; ``since`` maps messages to their first release."""
    added = [new.messages[name] for name in sorted(new.messages.keys() - old.messages.keys())]
    removed = [old.messages[name] for name in sorted(old.messages.keys() - new.messages.keys())]
    common = sorted(new.messages.keys() & old.messages.keys())
    changed = [_changed_message(old.messages[name], new.messages[name]) for name in common]
    parts = [
        f"# From Kafka {old.release} to {new.release}\n",
        _INTRODUCTION,
        _messages("New messages", added),
        _messages("Messages that are gone", removed, since),
        _section("Changed messages", [lines for lines in changed if lines]),
        _section("Error codes", [_error_codes(old.errors, new.errors)] if old.errors != new.errors else []),
    ]
    return "\n".join(part for part in parts if part)


def _section(title: str, blocks: Sequence[str]) -> str:
    return "\n".join([f"## {title}\n", *blocks]) if blocks else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _messages(title: str, messages: Sequence[Message], since: Mapping[str, str] | None = None) -> str:
    head = ("message", "kind", "key", "versions", *(["since Kafka"] if since else []))
    rows = [
        (each.name, each.kind, "" if each.api_key is None else each.api_key, each.versions)
        + ((since.get(each.name, ""),) if since else ())
        for each in messages
    ]
    return _section(title, [_table(head, rows)] if messages else [])


def _error_codes(old: Mapping[str, int], new: Mapping[str, int]) -> str:
    names = sorted(old.keys() | new.keys(), key=lambda name: new.get(name, old.get(name, 0)))
    rows = [(name, old.get(name, _ABSENT), new.get(name, _ABSENT)) for name in names if old.get(name) != new.get(name)]
    return _table(("error", "before", "now"), rows)


def _changed_message(old: Message, new: Message) -> str:
    """Return the section about one message, empty if its meaning is unchanged."""
    facts = [row for row in _pairs(_facts(old), _facts(new)) if row[1] != row[2]]
    rows = [*facts, *_changed_errors(old.errors, new.errors), *_changed_fields(old, new)]
    wire = _wire(old, new)
    if not rows and not wire.startswith(_BROKEN):
        return ""
    table = _table(("what", "before", "now"), rows) if rows else "The fields are in another order.\n"
    return f"### {new.name}\n\n{table}\n{wire}\n"


def _pairs(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for key in dict.fromkeys([*old, *new]):
        yield key, old.get(key, _ABSENT), new.get(key, _ABSENT)


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
        yield "errors", ", ".join(left) or _ABSENT, ", ".join(right) or _ABSENT


# Fields


def _changed_fields(old: Message, new: Message) -> Iterator[tuple[str, str, str]]:
    before, now = fields_by_path(old), fields_by_path(new)
    renamed = _renamed(before, now)
    for path, (_, field) in before.items():
        if path in renamed:
            yield f"`{path}`", _describe(field), f"called `{renamed[path]}`"
        elif path not in now:
            yield f"`{path}`", _describe(field), _ABSENT
        elif _describe(field) != _describe(now[path][1]):
            yield f"`{path}`", _describe(field), _describe(now[path][1])
    for path, (_, field) in now.items():
        if path not in before and path not in renamed.values():
            yield f"`{path}`", _ABSENT, _describe(field)


_Fields = Mapping[str, tuple[tuple[str, int], Field]]


def fields_by_path(message: Message) -> _Fields:
    """Return every field by its path, with its location: its struct and its index there."""
    groups = [("", message.fields), *((_struct_path(struct), struct.fields) for struct in reversed(message.structs))]
    return {
        f"{path}.{field.attribute}".lstrip("."): ((path, number), field)
        for path, fields in groups
        for number, field in enumerate(fields)
    }


def _struct_path(struct: Struct) -> str:
    return struct.name if struct.origin is None else struct.origin.partition(".")[2]


def _renamed(before: _Fields, now: _Fields) -> dict[str, str]:
    """Map the old path to the new path of fields that differ only in their name."""
    gone = {(place, _describe(field)): path for path, (place, field) in before.items() if path not in now}
    new = {(place, _describe(field)): path for path, (place, field) in now.items() if path not in before}
    return {path: new[key] for key, path in gone.items() if key in new}


def _describe(each: Field) -> str:
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


def _wire(old: Message, new: Message) -> str:
    """Return a sentence on whether the layout of the shared versions is unchanged."""
    shared = old.versions.intersect(new.versions)
    if shared.empty:
        return "No version is in both."
    pairs = {version: _Layouts(old, new, version) for version in shared}
    differing = [str(version) for version, pair in pairs.items() if not pair.alike()]
    if differing:
        return f"{_BROKEN}: the bytes are laid out in another way at {', '.join(differing)}."
    besides = ", but for tagged fields that came or went" if any(pair.tags_differ for pair in pairs.values()) else ""
    word = "version" if shared.lowest == shared.highest else "versions"
    return f"At {word} {shared} the bytes are laid out as before{besides}."


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
