"""The layouts of KIP-88's drafts and of the 0.9 consumer design; each test has the number of its requirement.

Their bytes are among the vectors of ``tests/codec``. Here is what their classes say about themselves.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_msgs import OffsetFetchRequest, OffsetFetchResponse, SchemaError, compile_schema
from kafka_msgs.catalog import message_class
from kafka_msgs.drafts import kafka_0_9, kip_88
from kafka_msgs.drafts.kip_88.describe_groups_response import Group, Member, Offset
from kafka_msgs.messages.offset_fetch_response import OffsetFetchResponsePartition
from kafka_msgs.schema import Struct, fields

DOCS = Path(__file__).parents[2] / "docs"


def layout(cls: type[Struct]) -> list[tuple[str, str]]:
    """Return the name and the type of each field."""
    return [(each.attribute, each.type) for each in fields(cls)]


def test_a19_the_text_and_not_the_notation_makes_topics_nullable_from_version_2() -> None:
    for cls, attribute in ((OffsetFetchRequest, "topics"), (kip_88.OffsetFetchRequest, "topics")):
        (topics,) = (each for each in fields(cls) if each.attribute == attribute)
        assert topics.nullable.lowest == 2


def test_a20_both_error_codes_are_there() -> None:
    assert OffsetFetchResponse(error_code=16).error_code == 16
    assert OffsetFetchResponsePartition(error_code=3).error_code == 3


def test_c1_c4_the_request_is_group_ids_in_both_versions() -> None:
    request = kip_88.DescribeGroupsRequest(group_ids=("g1",))
    assert request.encode(0) == request.encode(1) == bytes.fromhex("0000000100026731")


def test_c2_c3_a_group_and_its_members() -> None:
    assert layout(Group)[:5] == [
        ("error_code", "int16"),
        ("group_id", "string"),
        ("state", "string"),
        ("protocol_type", "string"),
        ("protocol", "string"),
    ]
    assert [name for name, _ in layout(Group)[5:]] == ["members", "offsets"]
    assert [kind for _, kind in layout(Member)] == ["string", "string", "string", "bytes", "bytes"]


def test_c5_version_1_appends_offsets_to_each_group() -> None:
    group = Group(group_id="g", members=(Member(member_id="m"),), offsets=(Offset(topic="t", offset=42),))
    older, newer = (kip_88.DescribeGroupsResponse(groups=(group,)).encode(version) for version in (0, 1))
    assert newer.startswith(older)
    assert [each.attribute for each in fields(Group) if 0 not in each.versions] == ["offsets"]


def test_c10_no_lookup_finds_the_draft() -> None:
    request, response = message_class(15, "request"), message_class(15, "response")
    assert (request, response) != (kip_88.DescribeGroupsRequest, kip_88.DescribeGroupsResponse)
    assert 1 in request.INFO.versions
    assert "ThrottleTimeMs" in {each.name for each in fields(response)}


def test_c11_the_draft_says_that_it_is_one_and_the_documents_say_why() -> None:
    assert kip_88.DescribeGroupsResponse.INFO.draft
    assert "Draft:" in (kip_88.DescribeGroupsResponse.__doc__ or "")
    text = (DOCS / "reference" / "drafts.md").read_text(encoding="utf-8")
    assert "**Rejected**" in text
    assert "**Chosen**" in text


def test_d18_the_correlation_id_of_the_design_has_64_bits() -> None:
    request = kafka_0_9.FindCoordinatorRequest(version=0, correlation_id=1, client_id="c", group_id="g")
    assert request.encode(0) == bytes.fromhex("0000 0000000000000001 000163 000167")
    assert request.INFO.api_key is None, "it is no request of today"


def test_d21_a_map_is_refused_and_not_dropped() -> None:
    definition = """{
        "name": "Committed", "type": "data", "validVersions": "0", "flexibleVersions": "none",
        "fields": [{"name": "Offsets", "type": "map[string]int64", "versions": "0+"}]
    }"""
    with pytest.raises(SchemaError, match="Offsets"):
        compile_schema(definition)


def test_d22_what_the_design_leaves_out_is_said_to_be_out_of_scope() -> None:
    text = (DOCS / "reference" / "drafts.md").read_text(encoding="utf-8")
    assert "**Out of scope**" in text
