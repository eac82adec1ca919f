"""The actions of the group commands: query a source of groups, print rows, change offsets, delete.

This module defines the order of requests and the refused cases. ``reset_targets`` has the rules of new offsets,
``describe_rows`` the rows; ``kafka_msgs.admin`` sends the requests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import click

from kafka_msgs.admin.groups import AnyGroupDescription, GroupListing
from kafka_msgs.cli.broker_options import ClusterOptions
from kafka_msgs.cli.group_commands.broker_groups import BrokerGroups
from kafka_msgs.cli.group_commands.change_actions import delete, delete_offsets, reset_offsets
from kafka_msgs.cli.group_commands.describe_rows import (
    assigned_places,
    member_rows,
    offset_rows,
    state_of,
    state_row,
    type_of,
)
from kafka_msgs.cli.group_commands.file_groups import FileGroups
from kafka_msgs.cli.group_commands.group_source import GroupSource
from kafka_msgs.cli.group_commands.option_rules import Action, GroupCommandOptions
from kafka_msgs.cli.group_commands.specs import Columns, GroupCommandSpec
from kafka_msgs.cli.render.kafka_columns import print_columns
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.output import echo, is_terminal, one_line
from kafka_msgs.enums import GroupState, GroupType

__all__ = ["run_action"]

_OPTIONAL: Final = ("instanceId", "upgraded")
"""Columns that a table has only if some row has a value, as in Kafka's tool."""

_NOTE: Final = (
    "Note: This will only show information about consumers that use the Java consumer API "
    "(non-ZooKeeper-based consumers)."
)
_REBALANCING: Final = (
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.ASSIGNING,
    GroupState.RECONCILING,
)


def run_action(kind: GroupCommandSpec, asked: GroupCommandOptions, cluster: ClusterOptions, output_format: str) -> None:
    """Perform the requested action, and print the result in one of ``FORMS``."""
    if asked.log_dirs:
        source = FileGroups(asked.log_dirs)
        _READ[asked.action](kind, asked, source, output_format)
        source.report_problems()
        return
    with cluster.admin() as admin:
        groups = BrokerGroups(admin)
        if asked.action in _READ:
            _READ[asked.action](kind, asked, groups, output_format)
        else:
            _CHANGE[asked.action](kind, asked, groups, output_format)


def _list(kind: GroupCommandSpec, asked: GroupCommandOptions, source: GroupSource, output_format: str) -> None:
    states = _parsed(asked.state, GroupState, kind.states, "state")
    types = _parsed(asked.type, GroupType, kind.types, "type")
    listed = [group for group in _of_kind(kind, source) if group.state in states and group.type in types]
    rows = [{"group": group.group_id, "type": str(group.type), "state": str(group.state)} for group in listed]
    headings = {"group": "GROUP"}
    headings |= {"type": "TYPE"} if asked.type is not None else {}
    headings |= {"state": "STATE"} if asked.state is not None else {}
    if output_format != "table":
        print_listing(output_format, ("group", "type", "state"), rows)
    elif len(headings) > 1:
        print_columns(headings, rows)
    else:
        for row in rows:
            echo(one_line(row["group"]) if is_terminal() else row["group"])


def _parsed(text: str | None, words: type[Any], allowed: Sequence[Any], what: str) -> Collection[Any]:
    """Return the states or types in a text, or all of them without a text. Raises ``click.UsageError``."""
    if not text:
        return allowed if text is None or what == "type" else (*allowed, GroupState.UNKNOWN)
    parsed = [words.parse(word) for word in text.split(",")]
    if not set(parsed) <= set(allowed):
        raise click.UsageError(f"--{what} {text}: expected some of {', '.join(map(str, allowed))}")
    return parsed


def _of_kind(kind: GroupCommandSpec, source: GroupSource) -> Iterator[GroupListing]:
    """Yield the groups of a kind; a classic group counts as a consumer group unless it belongs to, say, Connect."""
    for group in source.list_groups():
        if group.type in kind.types and (group.type != GroupType.CLASSIC or group.protocol_type in ("consumer", "")):
            yield group


def _describe(kind: GroupCommandSpec, asked: GroupCommandOptions, source: GroupSource, output_format: str) -> None:
    names = asked.group or [group.group_id for group in _of_kind(kind, source)]
    described = list(source.describe_groups(names, listed=not asked.group).values())
    for group in described:
        if type_of(group) not in kind.types:
            raise click.ClickException(
                f"{group.group_id!r} is a {str(type_of(group)).lower()} group, not a {kind.noun}"
            )
    if asked.old_output:
        echo(_NOTE)
    _warn(kind, described)
    shown = [group for group in described if group.members] if asked.old_output else described
    _print(output_format, kind, asked, list(_rows(kind, asked, source, shown)))


def _rows(
    kind: GroupCommandSpec, asked: GroupCommandOptions, source: GroupSource, described: Sequence[AnyGroupDescription]
) -> Iterator[Mapping[str, Any]]:
    if asked.view == "state":
        yield from map(state_row, described)
    elif asked.view == "members":
        for group in described:
            yield from member_rows(group)
    else:
        offsets = source.group_offsets([group.group_id for group in described], share=kind.share)
        places = {place for group in described for place in (*assigned_places(group), *offsets[group.group_id])}
        bounds = source.bounds(places)
        for group in described:
            yield from offset_rows(group, offsets[group.group_id], bounds)


def _warn(kind: GroupCommandSpec, described: Sequence[AnyGroupDescription]) -> None:
    for group in described:
        name = f"{kind.noun.capitalize()} '{group.group_id}'"
        if state_of(group) == GroupState.EMPTY:
            echo(f"Error: {name} has no active members.", err=True)
        elif state_of(group) in _REBALANCING:
            echo(f"Warning: {name} is rebalancing.", err=True)


def _print(
    output_format: str, kind: GroupCommandSpec, asked: GroupCommandOptions, rows: Sequence[Mapping[str, Any]]
) -> None:
    if output_format != "table":
        print_listing(output_format, [*kind.verbose[asked.view]], rows)
        return
    print_columns(_used(kind.shown(asked.view, verbose=asked.verbose), rows), rows)


def _used(columns: Columns, rows: Sequence[Mapping[str, Any]]) -> Columns:
    empty = {name for name in _OPTIONAL if all(row.get(name) is None for row in rows)}
    return {name: heading for name, heading in columns.items() if name not in empty}


_READ: Final[Mapping[Action, Callable[[GroupCommandSpec, GroupCommandOptions, GroupSource, str], None]]] = {
    "list": _list,
    "describe": _describe,
}
_CHANGE: Final[Mapping[Action, Callable[[GroupCommandSpec, GroupCommandOptions, BrokerGroups, str], None]]] = {
    "reset_offsets": reset_offsets,
    "delete_offsets": delete_offsets,
    "delete": delete,
}
