"""Snapshots of printed plans, and the sizes and depth that plans compute.

A snapshot is a file in ``plans/``. After an intended change, write them again and review the difference:

    KAFKA_MSGS_UPDATE_PLANS=1 python -m pytest tests/codec/test_plan.py
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import kafka_msgs
from kafka_msgs.codec.ops import Op
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.drafts import kip_88, kip_1071
from kafka_msgs.errors import UnsupportedVersionError
from kafka_msgs.schema import field
from tests.support.codecs import message_class, struct_class

PLANS = Path(__file__).parent / "plans"
SNAPSHOTS: list[tuple[str, int]] = [
    ("ApiVersionsResponse", 3),  # tagged arrays and numbers, each with a default
    ("ConsumerGroupMemberMetadataValue", 0),  # a tagged nullable struct whose default is not null
    ("ConsumerProtocolSubscription", 0),  # absent fields that may be dropped, bytes without copy
    ("DescribeTopicPartitionsRequest", 0),  # a nullable struct
    ("FetchRequest", 4),  # not flexible, absent fields that must keep their default
    ("FetchResponse", 12),  # tagged structs of nested structs, records
    ("MetadataRequest", 9),  # nullable arrays, uuids still absent
    ("MetadataResponse", 12),  # uuids, nullable strings
    ("OffsetFetchRequest", 2),  # classic, a nullable array, no tagged fields
    ("OffsetFetchRequest", 8),  # flexible, arrays of structs three levels deep
    ("PartitionChangeRecord", 0),  # tagged nullable arrays, tags that are not active yet
    ("ProduceRequest", 3),  # nullable records
    ("RequestHeader", 2),  # the client id stays classic in a flexible version
    ("StreamsGroupHeartbeatRequest", 0),  # structs shared by several fields
]


def snapshot(name: str) -> Path:
    return PLANS / f"{name}.txt"


def check_against(file: Path, printed: str) -> None:
    if os.environ.get("KAFKA_MSGS_UPDATE_PLANS") == "1":
        file.write_text(printed + "\n")
    assert file.read_text() == printed + "\n", f"{file.name} no longer matches; see this module's docstring"


@pytest.mark.parametrize(("name", "version"), SNAPSHOTS)
def test_the_plan_of_a_message_prints_as_reviewed(name: str, version: int) -> None:
    check_against(snapshot(f"{name}-v{version}"), str(compile_plan(getattr(kafka_msgs, name), version)))


@pytest.mark.parametrize(
    ("cls", "version", "name"),
    [
        (kip_88.DescribeGroupsResponse, 1, "draft-kip_88-DescribeGroupsResponse-v1"),
        (kip_1071.StreamsGroupHeartbeatRequest, 0, "draft-kip_1071-StreamsGroupHeartbeatRequest-v0"),
    ],
)
def test_the_plan_of_a_draft_prints_as_reviewed(cls: Any, version: int, name: str) -> None:
    check_against(snapshot(name), str(compile_plan(cls, version)))


def test_every_snapshot_has_a_test() -> None:
    expected = {f"{name}-v{version}" for name, version in SNAPSHOTS}
    drafts = {file.stem for file in PLANS.glob("draft-*.txt")}
    assert {file.stem for file in PLANS.glob("*.txt")} == expected | drafts
    assert len(drafts) == 2


@pytest.mark.parametrize(
    ("name", "version"), [("OffsetFetchRequest", 0), ("OffsetFetchRequest", 11), ("NoOpRecord", -1)]
)
def test_a_version_that_the_message_lacks_has_no_plan(name: str, version: int) -> None:
    cls = getattr(kafka_msgs, name)
    with pytest.raises(UnsupportedVersionError) as caught:
        compile_plan(cls, version)
    assert (caught.value.message, caught.value.version) == (name, version)
    assert caught.value.supported == cls.INFO.versions


# Sizes limit the count that an array may claim; depth is compared with the budget

Leaf = struct_class("Leaf", number=field("Number", "int32", default=0), flag=field("Flag", "bool", default=False))
Nothing = struct_class("Nothing")
Sizes = message_class(
    "Sizes",
    "0-1",
    "1+",
    number=field("Number", "int64", default=0),
    id=field("Id", "uuid", default=0),
    text=field("Text", "string", default=""),
    data=field("Data", "bytes", default=b""),
    items=field("Items", "[]Leaf", default=(), struct=Leaf),
    one=field("One", "Leaf", default=None, struct=Leaf),
    maybe=field("Maybe", "Leaf", nullable="0+", default=None, struct=Leaf),
    nothing=field("Nothing", "[]Nothing", default=(), struct=Nothing),
)


@pytest.mark.parametrize(
    ("version", "sizes"),
    [
        (0, {"number": 8, "id": 16, "text": 2, "data": 4, "items": 4, "one": 5, "maybe": 1, "nothing": 4}),
        (1, {"number": 8, "id": 16, "text": 1, "data": 1, "items": 1, "one": 6, "maybe": 1, "nothing": 1}),
    ],
)
def test_the_fewest_bytes_of_every_kind_of_value(version: int, sizes: dict[str, int]) -> None:
    root = compile_plan(Sizes, version).root
    assert {step.attribute: step.value.min_size for step in root.steps} == sizes
    assert root.min_size == sum(sizes.values()) + version


def test_elements_without_bytes_are_known_to_have_none() -> None:
    classic, flexible = compile_plan(Sizes, 0).root, compile_plan(Sizes, 1).root
    assert classic.weightless_elements
    assert not flexible.weightless_elements
    nothing = next(step.value for step in classic.steps if step.attribute == "nothing")
    assert nothing.item.min_size == 1


def test_depth_counts_structs_and_arrays() -> None:
    depths = {
        message_class("Flat", a=field("A", "int32", default=0)): 1,
        message_class("Numbers", a=field("A", "[]int32", default=())): 2,
        message_class("One", a=field("A", "Leaf", default=None, struct=Leaf)): 2,
        message_class("Many", a=field("A", "[]Leaf", default=(), struct=Leaf)): 2,
    }
    assert {cls: compile_plan(cls, 0).root.depth for cls in depths} == depths


def test_a_struct_that_two_fields_share_has_one_plan() -> None:
    shared = message_class(
        "Shared",
        a=field("A", "Leaf", default=None, struct=Leaf),
        b=field("B", "[]Leaf", default=(), struct=Leaf),
    )
    first, second = compile_plan(shared, 0).root.steps
    assert first.value.inner is second.value.item.inner


def test_tags_of_other_versions_are_inactive() -> None:
    tagged = message_class(
        "Tagged",
        "0-2",
        "1+",
        moved=field("Moved", "int32", tag=1, tagged="2+", default=0),
        early=field("Early", "int32", "1+", tag=0, tagged="1+", default=0),
    )
    for version, active, inactive in [(0, [], {0, 1}), (1, [0], {1}), (2, [0, 1], set())]:
        root = compile_plan(tagged, version).root
        assert [step.tag for step in root.tagged] == active
        assert root.inactive_tags == inactive
        assert root.declared_tags == {0, 1}


def test_a_field_may_leave_the_flexible_form() -> None:
    cls = message_class(
        "Override",
        "0-2",
        "1+",
        classic=field("Classic", "string", flexible="none", default=""),
        later=field("Later", "bytes", flexible="2+", default=b""),
        plain=field("Plain", "string", default=""),
    )
    compact = {version: [step.value.compact for step in compile_plan(cls, version).root.steps] for version in range(3)}
    assert compact == {0: [False, False, False], 1: [False, False, True], 2: [False, True, True]}
    assert [step.value.op for step in compile_plan(cls, 0).root.steps] == [Op.STRING, Op.BYTES, Op.STRING]
