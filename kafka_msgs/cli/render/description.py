"""The description of a message from its definition: its fields, their meaning, and the errors of a response.

This module defines its two forms, a tree to read and a JSON value. The caller selects the versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kafka_msgs.cli.render.console import table
from kafka_msgs.cli.render.documentation import class_documentation, field_documentation
from kafka_msgs.cli.render.tree import plain
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Message
from kafka_msgs.message_history import message_history
from kafka_msgs.schema import FieldInfo, MessageInfo, fields
from kafka_msgs.versions import VersionRange

__all__ = ["described", "errors_table", "fields_tree", "history_table"]


def fields_tree(cls: type[Message], versions: VersionRange) -> Tree:
    """Return the fields that a message has in some of ``versions``, with their documentation."""
    tree = Tree(_heading(cls, versions))
    _add_fields(tree, cls, versions)
    return tree


def errors_table(cls: type[Message], versions: VersionRange) -> Table | None:
    """Return the errors that the definition of a response names, or None if it names none."""
    rows = list(_errors(cls.INFO, versions))
    if not rows:
        return None
    shown = table("code", "error", "retriable", "versions", title="Errors that it may bring")
    for code, some in rows:
        shown.add_row(str(code.value), code.name, "yes" if code.retriable else "no", str(some))
    return shown


def history_table(cls: type[Message], versions: VersionRange) -> Table | None:
    """Return the releases of Kafka that have the versions of a message, or None if it has no history."""
    history = message_history(cls)
    if history is None:
        return None
    shown = table("versions", "since Kafka", "removed in", title="Releases")
    for span in history.versions:
        if not span.versions.intersect(versions).empty or versions == cls.INFO.versions:
            shown.add_row(str(span.versions), span.since, span.removed or "")
    return shown


def described(cls: type[Message], versions: VersionRange) -> dict[str, Any]:
    """Return the complete description as a JSON value; versions are written as in definitions, or null."""
    info = cls.INFO
    return {
        "name": info.name,
        "kind": info.kind,
        "apiKey": info.api_key,
        "versions": _text(versions),
        "flexible": _text(info.flexible.intersect(versions)),
        "deprecated": _text(info.deprecated.intersect(versions)),
        "listeners": list(info.listeners),
        "draft": info.draft,
        "about": class_documentation(cls),
        "releases": _releases(cls),
        "fields": list(_described_fields(cls, versions)),
        "errors": [
            {"code": code.value, "name": code.name, "retriable": code.retriable, "versions": _text(some)}
            for code, some in _errors(info, versions)
        ],
    }


def _releases(cls: type[Message]) -> dict[str, Any] | None:
    history = message_history(cls)
    if history is None:
        return None
    versions = [
        {"versions": str(span.versions), "since": span.since, "removed": span.removed} for span in history.versions
    ]
    return {"since": history.since, "versions": versions, "laterFields": dict(history.fields)}


def _described_fields(cls: type[Any], versions: VersionRange) -> Iterator[dict[str, Any]]:
    documentation = field_documentation(cls)
    for info in fields(cls):
        present = info.versions.intersect(versions)
        if present.empty:
            continue
        tagged = info.tagged.intersect(present)
        yield {
            "name": info.name,
            "attribute": info.attribute,
            "type": info.type,
            "versions": _text(present),
            "nullable": _text(info.nullable.intersect(present)),
            "tag": None if tagged.empty else info.tag,
            "tagged": _text(tagged),
            "default": plain(info.default),
            "ignorable": info.ignorable,
            "mapKey": info.map_key,
            "entityType": info.entity_type,
            "about": documentation.get(info.attribute, ""),
            "fields": [] if info.struct is None else list(_described_fields(info.struct, present)),
        }


def _errors(info: MessageInfo, versions: VersionRange) -> Iterator[tuple[ErrorCode, VersionRange]]:
    for name, text in info.errors.items():
        some = VersionRange.parse(text).intersect(versions)
        if not some.empty:
            yield ErrorCode[name], some


def _text(versions: VersionRange) -> str | None:
    return None if versions.empty else str(versions)


def _heading(cls: type[Message], versions: VersionRange) -> Text:
    info = cls.INFO
    facts: list[str] = [info.kind]
    if info.api_key is not None:
        facts.append(f"api key {info.api_key}")
    facts.append(f"version{_range(versions)}")
    flexible, deprecated = info.flexible.intersect(versions), info.deprecated.intersect(versions)
    facts.append("not flexible" if flexible.empty else f"flexible{_within(flexible, versions)}")
    if not deprecated.empty:
        facts.append(f"deprecated{_within(deprecated, versions)}")
    if info.listeners:
        facts.append(f"sent to {', '.join(info.listeners)}")
    if info.draft is not None:
        facts.append(f"a draft: {info.draft}")
    return _entry(info.name, facts, class_documentation(cls))


def _add_fields(tree: Tree, cls: type[Any], versions: VersionRange) -> None:
    documentation = field_documentation(cls)
    for info in fields(cls):
        present = info.versions.intersect(versions)
        if present.empty:
            continue
        entry = _entry(info.attribute, _facts(info, present, versions), documentation.get(info.attribute, ""))
        branch = tree.add(entry)
        if info.struct is not None:
            _add_fields(branch, info.struct, present)


def _facts(info: FieldInfo, present: VersionRange, shown: VersionRange) -> Iterator[str]:
    """Yield the facts of a field from its definition; ``shown`` are the versions to describe."""
    yield info.type
    if present != shown:
        yield f"version{_range(present)}"
    nullable, tagged = info.nullable.intersect(present), info.tagged.intersect(present)
    if not nullable.empty:
        yield f"nullable{_within(nullable, present)}"
    if not tagged.empty:
        yield f"tag {info.tag}{_within(tagged, present)}"
    yield f"default {plain(info.default)}"
    if info.ignorable:
        yield "ignorable"
    if info.map_key:
        yield "map key"
    if info.entity_type is not None:
        yield f"entity {info.entity_type}"


def _entry(name: str, facts: list[str] | Iterator[str], documentation: str) -> Text:
    text = Text.assemble((name, "bold cyan"), f": {', '.join(facts)}")
    return text.append(f"\n{documentation}", style="italic") if documentation else text


def _range(versions: VersionRange) -> str:
    return f" {versions}" if versions.lowest == versions.highest else f"s {versions}"


def _within(part: VersionRange, whole: VersionRange) -> str:
    """Name the versions of ``part``; the result is empty if these are all versions of ``whole``."""
    return "" if part == whole else f" in version{_range(part)}"
