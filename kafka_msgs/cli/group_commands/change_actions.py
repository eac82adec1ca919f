"""Changes to groups of a running cluster: new offsets, deleted offsets, deleted groups.

This module refuses invalid changes before it changes anything, prints each failure, and continues with the remaining
changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import click

from kafka_msgs.admin.groups import AnyGroupDescription
from kafka_msgs.admin.offset_resets import OffsetChange, OffsetTarget
from kafka_msgs.admin.results import Results
from kafka_msgs.admin.streams_groups import StreamsGroupDescription
from kafka_msgs.cli.group_commands.broker_groups import BrokerGroups
from kafka_msgs.cli.group_commands.describe_rows import state_of, type_of
from kafka_msgs.cli.group_commands.option_rules import GroupCommandOptions
from kafka_msgs.cli.group_commands.reset_targets import target_of
from kafka_msgs.cli.group_commands.specs import DELETED, DELETED_OFFSETS, PLANNED, Columns, GroupCommandSpec
from kafka_msgs.cli.group_commands.topic_scope import TopicSelection
from kafka_msgs.cli.render.kafka_columns import print_columns
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.output import echo
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.enums import GroupState
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError

__all__ = ["delete", "delete_offsets", "reset_offsets"]

_INACTIVE: Final = (GroupState.EMPTY, GroupState.DEAD)
_SUCCESSFUL: Final = "Successful"
_PLANNED: Final = "Planned"


def reset_offsets(kind: GroupCommandSpec, asked: GroupCommandOptions, source: BrokerGroups, output_format: str) -> None:
    """Print the plan of new offsets, and with ``--execute`` commit them."""
    group, target = asked.group[0], target_of(asked)
    described = _described(kind, source, group)
    _refuse_active(described, asked)
    places = sorted(target if isinstance(target, Mapping) else _scope(kind, asked, source, described))
    if not places:
        raise click.ClickException(f"the group {group!r} has no offsets")
    if kind.share and isinstance(target, OffsetTarget):
        planned = source.planned_starts(target, places)
    else:
        planned = source.planned(group, target, places)
    if planned.errors:
        _report(planned)
    rows = [_planned_row(group, partition, change) for partition, change in planned.items()]
    _print(output_format, PLANNED, rows, in_json=("group", "topic", "partition", "newOffset", "committedOffset"))
    if asked.execute:
        new = {partition: change.after for partition, change in planned.items()}
        admin = source.admin
        _report(admin.alter_share_group_offsets(group, new) if kind.share else admin.alter_group_offsets(group, new))


def _described(kind: GroupCommandSpec, source: BrokerGroups, group: str) -> AnyGroupDescription | None:
    """Return the description of a group, or None for a missing group that its offsets may create."""
    try:
        description = source.describe_groups([group])[group]
    except BrokerError as error:
        if error.error == ErrorCode.GROUP_ID_NOT_FOUND and kind.may_be_new:
            return None
        raise
    if type_of(description) not in kind.types:
        raise click.ClickException(f"{group!r} is a {str(type_of(description)).lower()} group, not a {kind.noun}")
    return description


def _refuse_active(described: AnyGroupDescription | None, asked: GroupCommandOptions) -> None:
    if described is None or state_of(described) in _INACTIVE:
        return
    reason = f"the group {described.group_id!r} is active: its state is {state_of(described)}"
    if asked.execute:
        raise click.ClickException(f"{reason}; stop its members first")
    echo(f"Warning: {reason}, so --execute would be refused.", err=True)


def _scope(
    kind: GroupCommandSpec, asked: GroupCommandOptions, source: BrokerGroups, described: AnyGroupDescription | None
) -> set[TopicPartition]:
    """Return the partitions whose offsets are to be reset."""
    requested = asked.wanted_topics
    if isinstance(described, StreamsGroupDescription):
        requested = _input_topics(described, requested)
    if requested is None:
        return set(source.group_offsets(asked.group, share=kind.share)[asked.group[0]])
    return _partitions(source, requested)


def _input_topics(group: StreamsGroupDescription, requested: TopicSelection | None) -> TopicSelection:
    """Return the selected input topics of a topology; raises ``click.ClickException`` for any other topic."""
    inputs = {topic for part in group.subtopologies for topic in part.source_topics}
    if requested is None:
        return TopicSelection(partitions=dict.fromkeys(sorted(inputs)))
    _refuse_others(requested.partitions, inputs, f"input topic of the group {group.group_id!r}")
    return requested


def _refuse_others(requested: Iterable[str], allowed: Collection[str], what: str) -> None:
    others = sorted(set(requested) - set(allowed))
    if others:
        raise click.ClickException(
            f"{', '.join(others)}: not an {what}, which has {', '.join(sorted(allowed)) or 'none'}"
        )


def _partitions(source: BrokerGroups, requested: TopicSelection) -> set[TopicPartition]:
    existing = source.partitions(requested.partitions)
    for topic, numbers in requested.partitions.items():
        missing = [partition for partition in numbers or () if TopicPartition(topic, partition) not in existing]
        if missing:
            raise click.ClickException(f"the topic {topic!r} has no partition {missing[0]}")
    return {partition for partition in existing if requested.has(partition)}


def _planned_row(group: str, partition: TopicPartition, change: OffsetChange) -> dict[str, Any]:
    return {
        "group": group,
        "topic": partition.topic,
        "partition": partition.partition,
        "newOffset": change.after,
        "committedOffset": change.before if change.before >= 0 else None,
    }


def delete_offsets(
    kind: GroupCommandSpec, asked: GroupCommandOptions, source: BrokerGroups, output_format: str
) -> None:
    """Delete the offsets of a group for some topics; print the result for each partition."""
    group = asked.group[0]
    described = _described(kind, source, group)
    requested = asked.wanted_topics
    if isinstance(described, StreamsGroupDescription):
        requested = _input_topics(described, requested)
    stored = source.group_offsets([group], share=kind.share)[group]
    places = sorted(partition for partition in stored if requested is None or requested.has(partition))
    if not places:
        raise click.ClickException(f"the group {group!r} has no offsets for these topics")
    results = _deleted_offsets(kind, source, group, places)
    rows = [{"topic": p.topic, "partition": p.partition, "status": _status(results, p)} for p in places]
    _print(output_format, DELETED_OFFSETS, rows)
    _report(results)


def _deleted_offsets(
    kind: GroupCommandSpec, source: BrokerGroups, group: str, places: Collection[TopicPartition]
) -> Results[TopicPartition, None]:
    """Delete offsets; in share groups all offsets of a topic are deleted together."""
    if not kind.share:
        return source.admin.delete_group_offsets(group, places)
    topics = source.admin.delete_share_group_offsets(group, {partition.topic for partition in places}).outcomes
    return Results({partition: topics[partition.topic] for partition in places})


def delete(kind: GroupCommandSpec, asked: GroupCommandOptions, source: BrokerGroups, output_format: str) -> None:
    """Delete groups, and the internal topics of streams groups; or print the planned deletions."""
    names = asked.group or [group.group_id for group in source.list_groups() if group.type in kind.types]
    described = Results[str, AnyGroupDescription]({name: _existing(kind, source, name) for name in names})
    topics = {name: _internal_topics(group) for name, group in described.ok.items()}
    requested = None
    if asked.internal_topics:
        requested = {topic for scope in asked.internal_topics for topic in scope.partitions}
        existing = {topic for internal in topics.values() for topic in internal}
        _refuse_others(requested, existing, f"internal topic of {', '.join(map(repr, names))}")
    kept = {
        name: [topic for topic in internal if requested is None or topic in requested]
        for name, internal in topics.items()
    }
    groups: Mapping[str, Any] = described.outcomes
    gone: Mapping[Any, Any] = {topic: None for internal in kept.values() for topic in internal}
    if not asked.dry_run:
        groups = {**groups, **source.admin.delete_groups(list(kept)).outcomes}
        internal = [topic for name, error in groups.items() if error is None for topic in kept[name]]
        gone = source.admin.delete_topics(internal).outcomes if internal else {}
    good = _PLANNED if asked.dry_run else _SUCCESSFUL
    _print(output_format, DELETED, _deleted_rows(Results(groups), Results(gone), kept, good))
    _report(Results(groups), Results(gone))


def _existing(kind: GroupCommandSpec, source: BrokerGroups, name: str) -> AnyGroupDescription | BrokerError:
    """Return the description of a group, or its error; a group of another kind is refused."""
    try:
        description = source.describe_groups([name])[name]
    except BrokerError as error:
        return error
    if type_of(description) not in kind.types:
        raise click.ClickException(f"{name!r} is a {str(type_of(description)).lower()} group, not a {kind.noun}")
    return description


def _internal_topics(group: AnyGroupDescription) -> list[str]:
    if not isinstance(group, StreamsGroupDescription):
        return []
    return sorted(
        {
            topic
            for part in group.subtopologies
            for topic in (*part.state_changelog_topics, *part.repartition_source_topics)
        }
    )


def _deleted_rows(
    groups: Results[str, Any], gone: Results[str, Any], topics: Mapping[str, Collection[str]], good: str
) -> list[dict[str, Any]]:
    """Return a row for each group, and for each of its topics; ``good`` is the status without an error."""
    rows = []
    for name in groups:
        rows.append({"kind": "group", "name": name, "status": _status(groups, name, good)})
        rows += [
            {"kind": "topic", "name": topic, "status": _status(gone, topic, good)}
            for topic in topics.get(name, ())
            if topic in gone
        ]
    return rows


def _status(results: Results[Any, Any], key: object, good: str = _SUCCESSFUL) -> str:
    error = results.errors.get(key)
    return good if error is None else error.error.name if isinstance(error, BrokerError) else str(error)


def _report(*results: Results[Any, Any]) -> None:
    """Print each failure on standard error, and exit with status 1 after any failure."""
    errors = [error for outcomes in results for error in outcomes.errors.values()]
    for error in errors:
        echo(f"Error: {error}", err=True)
    if errors:
        click.get_current_context().exit(1)


def _print(
    output_format: str, columns: Columns, rows: list[dict[str, Any]], *, in_json: Collection[str] | None = None
) -> None:
    if output_format == "table":
        print_columns(columns, rows)
    else:
        print_listing(output_format, [*(in_json or columns)], rows)
