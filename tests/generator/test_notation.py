"""The notation of Kafka's documentation and KIPs: both spellings, and the output of Kafka's own class."""

from __future__ import annotations

import html
import re
import subprocess
from typing import Any, TypeAlias

import pytest
from click.testing import CliRunner

import kafka_msgs
from kafka_msgs import SchemaError, compile_schema
from kafka_msgs.drafts import kip_88
from kafka_msgs.schema import Struct, fields
from kafka_msgs_generator.canonical import Definition, canonical_text
from kafka_msgs_generator.cli import command
from kafka_msgs_generator.naming import snake_case
from kafka_msgs_generator.notation import read_notation
from tests.recorders.broker import Jars, classpath

Layout: TypeAlias = tuple[Any, ...]

# The rejected version 1 of KIP-88, and the version 0 it is based on.
DESCRIBE_GROUPS = """
DescribeGroups Request (Version: 0) => [group_ids]
  group_ids => STRING
DescribeGroups Response (Version: 0) => [groups]
  groups => error_code group_id state protocol_type protocol [members]
    error_code => INT16
    group_id => STRING
    state => STRING
    protocol_type => STRING
    protocol => STRING
    members => member_id client_id client_host member_metadata member_assignment
      member_id => STRING
      client_id => STRING
      client_host => STRING
      member_metadata => BYTES
      member_assignment => BYTES
DescribeGroups Request (Version: 1) => [group_ids]
  group_ids => STRING
DescribeGroups Response (Version: 1) => [groups]
  groups => error_code group_id state protocol_type protocol [members] [offsets]
    error_code => INT16
    group_id => STRING
    state => STRING
    protocol_type => STRING
    protocol => STRING
    members => member_id client_id client_host member_metadata member_assignment
      member_id => STRING
      client_id => STRING
      client_host => STRING
      member_metadata => BYTES
      member_assignment => BYTES
    offsets => topic partition offset metadata
      topic => STRING
      partition => INT32
      offset => INT64
      metadata => STRING
"""


def described(definition: Definition) -> Layout:
    """Return the layout of a definition: name, type, array, nullability, tag and children of each field."""
    return tuple(
        (
            snake_case(each["name"]),
            "struct" if "fields" in each else each["type"].removeprefix("[]"),
            each["type"].startswith("[]"),
            "nullableVersions" in each,
            each.get("tag"),
            described(each),
        )
        for each in definition.get("fields", ())
    )


def of_class(cls: type[Struct], version: int) -> Layout:
    """Return the same layout for a class at a version; tagged fields come last, as Kafka prints them."""
    layout = (
        (
            snake_case(each.name),
            "struct" if each.struct else each.element_type,
            each.is_array,
            version in each.nullable,
            each.tag if version in each.tagged else None,
            of_class(each.struct, version) if each.struct else (),
        )
        for each in fields(cls)
        if version in each.versions
    )
    return tuple(sorted(layout, key=lambda each: -1 if each[4] is None else each[4]))


def as_on_a_page(text: str) -> str:
    """Return a text as on a web page: with prose, non-breaking spaces, trailing spaces, and no indentation."""
    lines = (f"{line.strip()} \n\N{NO-BREAK SPACE}" for line in text.splitlines())
    return "This is the schema => of today.\n\n" + "\n".join(lines) + "\nAs shown above, groups => are described.\n"


def test_c12_two_texts_of_the_drafts_of_kip_88_are_the_same_definitions() -> None:
    one, other = read_notation(DESCRIBE_GROUPS), read_notation(as_on_a_page(DESCRIBE_GROUPS))
    assert one == other
    assert [(each["name"], each["validVersions"]) for each in one] == [
        ("DescribeGroupsRequest", "0"),
        ("DescribeGroupsResponse", "0"),
        ("DescribeGroupsRequest", "1"),
        ("DescribeGroupsResponse", "1"),
    ]
    for definition in one:
        assert described(definition) == of_class(getattr(kip_88, definition["name"]), int(definition["validVersions"]))


def test_a_definition_with_its_api_key_compiles_and_encodes_as_the_draft() -> None:
    response = compile_schema(canonical_text(read_notation(DESCRIBE_GROUPS)[3] | {"apiKey": 15}))
    group = {"errorCode": 0, "groupId": "g", "state": "Empty", "protocolType": "", "protocol": "", "members": []}
    content = {"groups": [group | {"offsets": [{"topic": "t", "partition": 1, "offset": 42, "metadata": ""}]}]}
    assert response.from_json(content, 1).encode(1) == kip_88.DescribeGroupsResponse.from_json(content, 1).encode(1)


def test_the_notation_does_not_say_that_null_topics_are_allowed() -> None:
    (request,) = read_notation(
        "OffsetFetch Request (Version: 2) => group_id [topics]\ngroup_id => STRING\n"
        "topics => topic [partitions]\ntopic => STRING\npartitions => partition\npartition => INT32\n"
    )
    topics = of_class(kip_88.OffsetFetchRequest, 2)[1]
    assert described(request)[1][:4] == (*topics[:3], False)
    assert topics[3], "the text of the proposal says so"


def printed_by_kafka() -> list[str]:
    """Return the output of Kafka's class for its documentation: the notation of each message at each version."""
    name = "org.apache.kafka.common.protocol.Protocol"
    done = subprocess.run(
        ["java", "-Xmx256m", "-cp", classpath(Jars.NODE), name], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.findall(r"<pre>(.*?)</pre>", done.stdout, re.DOTALL)
    return [html.unescape(each) for each in found if "(Version: " in each]


@pytest.mark.oracle
def test_everything_that_kafka_prints_has_the_layout_of_the_release() -> None:
    """Only tagged fields with children are rejected: Kafka prints arrays and structs the same way there."""
    wrong, refused = [], []
    texts = printed_by_kafka()
    for text in texts:
        try:
            (definition,) = read_notation(text)
        except SchemaError as error:
            refused.append((text.split()[0], error.reason.partition(" may be ")[2]))
            continue
        version = int(definition["validVersions"])
        if described(definition) != of_class(getattr(kafka_msgs, definition["name"]), version):
            wrong.append((definition["name"], version))
    assert wrong == []
    assert len(texts) > 500
    open_question = "an array or a struct: the notation does not say"
    assert set(refused) == {(name, open_question) for name in ("ApiVersions", "Fetch", "Produce")}


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ("group_id [topics]\n  group_id => STRING", 3, "a line for 'topics' has to be here"),
        ("group_id\n  topics => STRING", 3, "a line for 'group_id' has to be here"),
        ("offset\n  offset => INT65", 3, "INT65 is not a type of Kafka"),
        ("offsets\n  offsets => [TopicAndPartition -> OffsetAndError]", 3, "'[TopicAndPartition' is not the name"),
        ("a\n" + "a => a\n" * 40, 33, "nested deeper than 30 levels"),
        ("a<tag: 0>\na<tag: 0> => { b }\nb => INT8", 4, "the tagged field a may be an array or a struct"),
    ],
)
def test_what_the_notation_leaves_open_is_an_error_with_its_line(lines: str, line: int, reason: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(reason)) as caught:
        read_notation(f"\nCommit Request (Version: 0) => {lines}", "page.txt")
    assert (caught.value.source, caught.value.line) == ("page.txt", line)


def test_the_command_prints_the_definitions_of_a_page(tmp_path: Any) -> None:
    page = tmp_path / "page.txt"
    page.write_text(as_on_a_page(DESCRIBE_GROUPS), encoding="utf-8")

    def run(*options: str) -> str:
        result = CliRunner().invoke(command, ["notation", str(page), *options])
        assert result.exit_code == 0, result.output
        return result.output

    everything = "".join(map(canonical_text, read_notation(DESCRIBE_GROUPS)))
    assert run() == everything
    assert run("--message", "DescribeGroupsRequest", "--version", "1") == canonical_text(
        read_notation(DESCRIBE_GROUPS)[2]
    )
    missing = CliRunner().invoke(command, ["notation", str(page), "--version", "2"])
    assert (missing.exit_code, missing.output) == (1, "Error: the page shows no such message\n")
