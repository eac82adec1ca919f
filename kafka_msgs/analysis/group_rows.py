"""Groups as rows: a full description per group, and the rows of groups, members, assignments and topologies.

Defines the columns. ``kafka_msgs.internal_topics`` computes the state of the group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID

import pyarrow as pa

from kafka_msgs.analysis.arrow_tables import columns
from kafka_msgs.internal_topics.group_descriptions import GroupDescription

__all__ = [
    "ASSIGNMENTS",
    "CURRENT",
    "DESCRIPTIONS",
    "GROUPS",
    "MEMBERS",
    "PROBLEMS",
    "TOPOLOGY",
    "assignment_rows",
    "description_rows",
    "group_rows",
    "member_rows",
    "problem_rows",
    "topology_rows",
]

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[Row]

CURRENT: Final = "current"
"""The status of a current assignment."""


def _struct(**types: pa.DataType) -> pa.StructType:
    return pa.struct(list(types.items()))


_TEXT, _INT, _SHORT = pa.string(), pa.int32(), pa.int16()
_TEXTS: Final = pa.list_(_TEXT)

_ASSIGNED: Final = _struct(status=_TEXT, role=_TEXT, topic=_TEXT, topicId=_TEXT, subtopologyId=_TEXT, partition=_INT)
_MEMBER: Final = _struct(
    memberId=_TEXT,
    instanceId=_TEXT,
    rackId=_TEXT,
    clientId=_TEXT,
    clientHost=_TEXT,
    epoch=_INT,
    previousEpoch=_INT,
    state=_TEXT,
    subscribedTopics=_TEXTS,
    subscribedRegex=_TEXT,
    processId=_TEXT,
    topologyEpoch=_INT,
    problem=_TEXT,
    assigned=pa.list_(_ASSIGNED),
)
_TOPIC_INFO: Final = _struct(name=_TEXT, partitions=_INT, replicationFactor=_SHORT)
_SUBTOPOLOGY: Final = _struct(
    subtopologyId=_TEXT,
    sourceTopics=_TEXTS,
    sourceTopicRegex=_TEXTS,
    repartitionSinkTopics=_TEXTS,
    repartitionSourceTopics=pa.list_(_TOPIC_INFO),
    stateChangelogTopics=pa.list_(_TOPIC_INFO),
)
_GROUP: Final = pa.struct(
    [
        *columns("group kind state epoch assignmentEpoch protocolType protocol leader"),
        ("topology", _struct(epoch=_INT, subtopologies=pa.list_(_SUBTOPOLOGY))),
        ("members", pa.list_(_MEMBER)),
    ]
)
_OF_GROUP: Final = columns("group kind")

DESCRIPTIONS: Final = pa.schema([*_GROUP, *columns("logPartition")])
_PLAIN: Final = [field for field in DESCRIPTIONS if not pa.types.is_nested(field.type)]
GROUPS: Final = pa.schema([*_PLAIN, *columns("members topologyEpoch")])
MEMBERS: Final = pa.schema([*_OF_GROUP, *(each for each in _MEMBER if each.name != "assigned"), ("assigned", _INT)])
ASSIGNMENTS: Final = pa.schema([*_OF_GROUP, ("memberId", _TEXT), *_ASSIGNED])
TOPOLOGY: Final = pa.schema([*columns("group topologyEpoch"), *_SUBTOPOLOGY])
PROBLEMS: Final = columns("group logPartition logOffset problem file")


def description_rows(number: int, groups: Iterable[GroupDescription]) -> Rows:
    """Return a row for each group in a partition, with all that its coordinator would describe."""
    return [_row(_GROUP, each) | {"logPartition": number} for each in groups]


def group_rows(descriptions: Sequence[Row]) -> Rows:
    """Return a row for each described group."""
    plain = [field.name for field in _PLAIN]
    return [
        {name: each[name] for name in plain}
        | {"members": len(each["members"]), "topologyEpoch": (each["topology"] or {}).get("epoch")}
        for each in descriptions
    ]


def member_rows(descriptions: Sequence[Row]) -> Rows:
    """Return a row for each member, with the number of its assignments."""
    return [
        {**_of_group(each), **member, "assigned": len(member["assigned"])}
        for each in descriptions
        for member in each["members"]
    ]


def assignment_rows(descriptions: Sequence[Row], names: Mapping[str, str]) -> Rows:
    """Return a row for each assignment. A topic given only by id also gets its name if ``names`` contains it."""
    return [
        {
            **_of_group(each),
            "memberId": member["memberId"],
            **assigned,
            "topic": assigned["topic"] if assigned["topic"] is not None else names.get(assigned["topicId"]),
        }
        for each in descriptions
        for member in each["members"]
        for assigned in member["assigned"]
    ]


def topology_rows(descriptions: Sequence[Row]) -> Rows:
    """Return a row for each subtopology of a streams group."""
    return [
        {"group": each["group"], "topologyEpoch": each["topology"]["epoch"], **subtopology}
        for each in descriptions
        if each["topology"] is not None
        for subtopology in each["topology"]["subtopologies"]
    ]


def problem_rows(descriptions: Sequence[Row]) -> Iterator[Row]:
    """Yield the unreadable bytes inside of classic members."""
    for each in descriptions:
        place = {"group": each["group"], "logPartition": each["logPartition"]}
        for member in each["members"]:
            if member["problem"] is not None:
                yield {**place, "problem": f"member: {member['memberId']}: {member['problem']}"}


def _of_group(description: Row) -> Row:
    return {name: description[name] for name in _OF_GROUP.names}


def _row(kind: pa.StructType, item: Any) -> Row:
    """Return an object as a row: each field holds the value of the attribute with the same name."""
    return {field.name: _value(field.type, getattr(item, _attribute(field.name))) for field in kind}


@cache
def _attribute(name: str) -> str:
    return "group_id" if name == "group" else re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _value(kind: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_value(kind.value_type, each) for each in value]
    if pa.types.is_struct(kind):
        return _row(kind, value)
    return str(value) if isinstance(value, UUID) else value
