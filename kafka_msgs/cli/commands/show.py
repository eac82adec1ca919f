"""``kafka-msgs show``: the fields of a message, what they mean, and the errors that a response may bring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kafka_msgs.cli.message_names import message_argument
from kafka_msgs.cli.render.console import console, table
from kafka_msgs.cli.render.documentation import class_documentation, field_documentation
from kafka_msgs.cli.render.tree import plain
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import UnsupportedVersionError
from kafka_msgs.message import Message
from kafka_msgs.schema import FieldInfo, MessageInfo, fields
from kafka_msgs.versions import VersionRange

__all__ = ["show_command"]


@click.command("show")
@message_argument
@click.argument("version", type=int, required=False)
def show_command(message: type[Message], version: int | None) -> None:
    """Show the fields of MESSAGE: in all its versions, or in VERSION alone."""
    info = message.INFO
    if version is not None and version not in info.versions:
        raise UnsupportedVersionError(message=info.name, version=version, supported=info.versions)
    versions = info.versions if version is None else VersionRange(version, version)
    tree = Tree(_heading(message, versions))
    _add_fields(tree, message, versions)
    out = console()
    out.print(tree)
    if info.errors:
        out.print(_errors(info, versions))


def _heading(cls: type[Message], versions: VersionRange) -> Text:
    info = cls.INFO
    facts = [info.kind]
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
    """Yield what a definition says of a field; ``shown`` are the versions that are being looked at."""
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
    """Name the versions of ``part``, or nothing when they are all that there are."""
    return "" if part == whole else f" in version{_range(part)}"


def _errors(info: MessageInfo, versions: VersionRange) -> Table:
    shown = table("code", "error", "retriable", "versions", title="Errors that it may bring")
    for name, text in info.errors.items():
        some = VersionRange.parse(text).intersect(versions)
        if not some.empty:
            code = ErrorCode[name]
            shown.add_row(str(code.value), name, "yes" if code.retriable else "no", str(some))
    return shown
