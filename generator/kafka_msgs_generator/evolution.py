"""Compatibility of two revisions of a definition: every change, its rule, and the verdict.

Two revisions are compatible if programs compiled from either one read the versions that both have. `evolution_rules`
lists the rules, `field_evolution` compares fields, and `definition_sets` reads the revisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from attrs import evolve

from kafka_msgs.versions import NONE, VersionRange
from kafka_msgs_generator.definition_sets import Definition, DefinitionSet
from kafka_msgs_generator.field_evolution import SchemaChange, compare_fields, describe_field, join_ranges
from kafka_msgs_generator.ir import Field, Message
from kafka_msgs_generator.release_diff import fields_by_path

__all__ = ["check_definition", "check_evolution"]

_CLIENT_KINDS: Final = ("request", "response")
_RETIRED: Final = "no version remains"


def check_evolution(old: DefinitionSet, new: DefinitionSet) -> Iterator[SchemaChange]:
    """Yield the changes from one set of definitions to another, by message name.

    Messages with the same name belong together, or else the same type and API key. Sets with one message each are
    compared in any case.
    """
    pairs = _pairs(old.definitions, new.definitions)
    for name in sorted({*pairs, *new.definitions}):
        before = old.definitions.get(pairs.get(name, ""))
        now = new.definitions.get(name)
        if before is None and now is not None:
            yield _locate(_whole(now.message, "E26", f"new message with versions {now.message.versions}"), now)
        elif before is not None and now is None:
            yield _whole(before.message, "E5", _RETIRED, compatible=False)
        elif before is not None and now is not None:
            for change in check_definition(before, now, _unstable(before.message, old)):
                yield _locate(change, now)


def _locate(change: SchemaChange, new: Definition) -> SchemaChange:
    """Add the file and the line: of the field in the new revision, or of the message if the field is gone."""
    return evolve(change, file=new.file, line=new.lines.get(change.path, new.lines[""]))


def _pairs(old: Mapping[str, Definition], new: Mapping[str, Definition]) -> dict[str, str]:
    """Map the new name, or the old name of a message that is gone, to the old name."""
    if len(old) == len(new) == 1:
        return {next(iter(new)): next(iter(old))}
    numbers = {
        _number(each): name for name, each in new.items() if name not in old and each.message.api_key is not None
    }
    return {
        name if name in new else numbers.get(_number(each), name): name
        for name, each in sorted(old.items(), reverse=True)
    }


def _number(definition: Definition) -> tuple[str, str, int | None]:
    """Return the API key, which is unique for requests and responses, and within an origin for other messages."""
    message = definition.message
    return "" if message.kind in _CLIENT_KINDS else definition.origin, message.kind, message.api_key


def _unstable(message: Message, old: DefinitionSet) -> VersionRange:
    """Return the unstable latest version. Only requests declare it, for their responses as well."""
    requests = (each.message for each in old.definitions.values() if each.message.kind == "request")
    unstable = message.unstable or (
        message.kind == "response" and any(each.unstable and each.api_key == message.api_key for each in requests)
    )
    return VersionRange(message.versions.highest, message.versions.highest) if unstable else NONE


def _whole(message: Message, rule: str, reason: str, *, compatible: bool = True) -> SchemaChange:
    return SchemaChange(message=message.name, rule=rule, compatible=compatible, reason=reason)


def check_definition(old: Definition, new: Definition, unstable: VersionRange = NONE) -> Iterator[SchemaChange]:
    """Yield the changes between two revisions of one message; versions in ``unstable`` may change freely."""
    before, now = old.message, new.message
    if now.retired or before.retired:
        yield from _retirement(before, now)
        return
    yield from _message_changes(before, now, unstable)
    shared = before.versions.subtract(unstable) or NONE
    shared = shared.intersect(now.versions)
    yield from compare_fields(before, now, shared)
    yield from _misplaced_fields(before, now)


def _retirement(old: Message, new: Message) -> Iterator[SchemaChange]:
    if not old.retired:
        yield _whole(new, "E5", _RETIRED, compatible=False)
    elif not new.retired:
        yield _whole(new, "E6", f"versions {new.versions} return", compatible=False)


def _message_changes(old: Message, new: Message, unstable: VersionRange) -> Iterator[SchemaChange]:
    for rule, what, fact in _FACTS:
        before, now = fact(old), fact(new)
        if before != now:
            yield _message_change(new, rule, what, before, now, compatible=rule == "E22")
    yield from _flexibility(old, new, unstable)
    yield from _version_bounds(old, new, unstable)


_FACTS: Final[tuple[tuple[str, str, Callable[[Message], str]], ...]] = (
    ("E1", "api key", lambda message: str(message.api_key)),
    ("E2", "type", lambda message: message.kind),
    ("E3", "name", lambda message: message.name),
    ("E22", "deprecated versions", lambda message: str(message.deprecated)),
    ("E22", "listeners", lambda message: ", ".join(message.listeners) or "none"),
    ("E22", "latest version unstable", lambda message: str(message.unstable).lower()),
    ("E22", "errors", lambda message: ", ".join(f"{name} {each}" for name, each in message.errors.items()) or "none"),
)


def _message_change(
    new: Message, rule: str, what: str, before: str, now: str, *, compatible: bool, versions: str = "", more: str = ""
) -> SchemaChange:
    return SchemaChange(
        message=new.name,
        rule=rule,
        compatible=compatible,
        reason=f"{what} changed" + (f": {more}" if more else ""),
        versions=versions,
        before=before,
        now=now,
    )


def _flexibility(old: Message, new: Message, unstable: VersionRange) -> Iterator[SchemaChange]:
    shared = (old.versions.subtract(unstable) or NONE).intersect(new.versions)
    differing = [
        VersionRange(version, version) for version in shared if (version in old.flexible) != (version in new.flexible)
    ]
    if differing or old.flexible != new.flexible:
        before, now, versions = str(old.flexible), str(new.flexible), join_ranges(differing)
        yield _message_change(
            new, "E4", "flexible versions", before, now, compatible=not differing, versions=versions
        )  # fmt: skip
    headers = [VersionRange(version, version) for version in shared if _header(old, version) != _header(new, version)]
    if headers:
        yield _message_change(
            new, "E4", "header versions", "", "", compatible=False, versions=join_ranges(headers)
        )  # fmt: skip


def _header(message: Message, version: int) -> int | None:
    """Return the stated header version. Definitions before Kafka 4.4 state none."""
    return next((header for versions, header in message.header_versions if version in versions), None)


def _version_bounds(old: Message, new: Message, unstable: VersionRange) -> Iterator[SchemaChange]:
    before, now = str(old.versions), str(new.versions)
    stable = old.versions.highest - (not unstable.empty)
    bounds = (
        ("E5", new.versions.highest < stable, "the highest version is lower"),
        ("E6", new.versions.lowest < old.versions.lowest, "removed versions return"),
    )
    broken = [(rule, reason) for rule, holds, reason in bounds if holds]
    for rule, reason in broken:
        yield _message_change(new, rule, "versions", before, now, compatible=False, more=reason)
    if not broken and before != now:
        rule = "E25" if new.versions.highest < old.versions.highest else "E7"
        yield _message_change(new, rule, "versions", before, now, compatible=True)
    if not unstable.empty and not new.versions.intersect(unstable).empty:
        yield SchemaChange(
            message=new.name,
            rule="E25",
            compatible=True,
            reason="the version was unstable and is not compared",
            versions=str(unstable),
        )


def _misplaced_fields(old: Message, new: Message) -> Iterator[SchemaChange]:
    """Yield the fields with a range outside the versions of the message (E8), unless they had it before."""
    earlier = {path: {*_misplaced(field, old)} for path, (_, field) in fields_by_path(old).items()}
    for path, (_, field) in fields_by_path(new).items():
        for what in _misplaced(field, new):
            if what not in earlier.get(path, ()):
                yield SchemaChange(
                    message=new.name,
                    path=path,
                    rule="E8",
                    compatible=False,
                    reason=f"{what} do not overlap the versions {new.versions} of the message",
                    now=describe_field(field),
                )


def _misplaced(field: Field, message: Message) -> Iterator[str]:
    ranges = {
        "versions": field.versions,
        "nullableVersions": None if field.nullable.empty else field.nullable,
        "taggedVersions": None if field.tag is None else field.tagged,
        "flexibleVersions": field.flexible,
    }
    return (what for what, range_ in ranges.items() if range_ is not None and _disjoint(range_, message.versions))


def _disjoint(one: VersionRange, other: VersionRange) -> bool:
    return one.intersect(other).empty
