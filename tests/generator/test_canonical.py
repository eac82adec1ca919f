"""The layout of definition files: which parts the import keeps, normalizes, or omits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from kafka_msgs.errors import SchemaError
from kafka_msgs_generator.canonical import canonical_text, read_definition, supported_errors
from kafka_msgs_generator.json_tree import parse_definition
from kafka_msgs_generator.source_object import SourceObject
from kafka_msgs_generator.spec import MessageSpec, read_message

DEFINITIONS = sorted(Path("message_defs").glob("*/*/*.json"))

# Every key of the format once, and every coercion that Kafka's own files rely on.
SOURCE = """// Somebody's licence.
{
  /* A block
     comment. */
  "apiKey": "7",
  "type": "request",
  "name": "PlanetRequest",
  // Version 1 adds moons.
  "validVersions": "0-3",
  "deprecatedVersions": "0-0",
  "flexibleVersions": "2-32767",
  "listeners": "broker",
  "latestVersionUnstable": false,
  "fields": [
    { "name": "Mass", "type": "int32", "versions": "0+", "default": -1, "ignorable": "true",
      "about": "Not // a comment. \\"Quoted\\"." },
    { "name": "Ringed", "type": "bool", "versions": "0+", "default": false },
    { "name": "Tag", "type": "string", "taggedVersions": "2+", "tag": "0", "default": "" },
    { "name": "Core", "type": "Core", "versions": "2+", "nullableVersions": "2+", "default": null },
    { "name": "Owner", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null",
      "entityType": "groupId", "flexibleVersions": "none" },
    { "name": "Moons", "type": "[]Moon", "versions": "1+", "fields": [
      { "name": "Id", "type": "int32", "versions": "1+", "mapKey": true, "entityType": "brokerId" },
      { "name": "Blob", "type": "bytes", "versions": "1+", "zeroCopy": true, "mapKey": false }
    ]}
  ],
  "commonStructs": [ { "name": "Core", "versions": "2+", "fields": [] } ]
}
"""

CANONICAL = """{
  "name": "PlanetRequest",
  "type": "request",
  "apiKey": 7,
  "listeners": ["broker"],
  "validVersions": "0-3",
  "deprecatedVersions": "0",
  "flexibleVersions": "2+",
  "fields": [
    {"name": "Mass", "type": "int32", "versions": "0+", "default": "-1", "ignorable": true},
    {"name": "Ringed", "type": "bool", "versions": "0+", "default": "false"},
    {"name": "Tag", "type": "string", "taggedVersions": "2+", "tag": 0},
    {"name": "Core", "type": "Core", "versions": "2+", "nullableVersions": "2+"},
    {"name": "Owner", "type": "string", "versions": "0+", "nullableVersions": "0+",
     "flexibleVersions": "none", "default": "null", "entityType": "groupId"},
    {"name": "Moons", "type": "[]Moon", "versions": "1+", "fields": [
      {"name": "Id", "type": "int32", "versions": "1+", "mapKey": true, "entityType": "brokerId"},
      {"name": "Blob", "type": "bytes", "versions": "1+", "zeroCopy": true}
    ]}
  ],
  "commonStructs": [
    {"name": "Core", "versions": "2+", "fields": []}
  ]
}
"""


def spec_facts(text: str) -> dict[str, Any]:
    """Return the compiler's reading of a definition, without source positions and prose."""
    spec: MessageSpec = read_message(parse_definition(text))
    return attrs.asdict(spec, filter=lambda field, value: field.name != "about" and not isinstance(value, SourceObject))


def test_a_definition_of_every_key_is_laid_out_like_this() -> None:
    assert canonical_text(read_definition(SOURCE)) == CANONICAL


def test_the_compiler_reads_the_same_from_source_and_canonical_text() -> None:
    assert spec_facts(CANONICAL) == spec_facts(SOURCE)


def test_canonical_text_of_canonical_text_is_itself() -> None:
    assert canonical_text(read_definition(CANONICAL)) == CANONICAL


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_committed_definition_is_canonical(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert canonical_text(read_definition(text, path.name)) == text
    assert max(map(len, text.splitlines())) <= 110


def test_no_committed_definition_carries_prose() -> None:
    def keys(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            yield from value
            for item in value.values():
                yield from keys(item)
        if isinstance(value, list):
            for item in value:
                yield from keys(item)

    found = {path.name for path in DEFINITIONS if "about" in keys(json.loads(path.read_text(encoding="utf-8")))}
    assert len(DEFINITIONS) > 281
    assert found == set()


def test_the_flexible_versions_of_a_message_are_kept_when_blank() -> None:
    text = '{"name": "A", "type": "data", "validVersions": "0", "flexibleVersions": "", "fields": []}'
    assert read_definition(text)["flexibleVersions"] == "none"


def test_a_retired_message_keeps_its_key() -> None:
    text = '{"apiKey": 4, "type": "request", "name": "OldRequest", "validVersions": "none"}'
    assert read_definition(text) == {"name": "OldRequest", "type": "request", "apiKey": 4, "validVersions": "none"}


def test_header_versions_of_newer_definitions_are_kept() -> None:
    text = '{"name": "A", "type": "data", "validVersions": "0", "headerVersions": {"0-1": 1, "2+": "2"}}'
    definition = read_definition(text)
    assert definition["headerVersions"] == {"0-1": "1", "2+": "2"}
    assert read_definition(canonical_text(definition)) == definition


def test_a_page_with_non_breaking_spaces_and_placeholders_is_read_leniently() -> None:
    text = '{"name": "A",\u00a0"type": "data", "apiKey": TBD, "validVersions": TBD, "flexibleVersions": "none"}'
    definition = read_definition(text, lenient=True, bindings={"TBD": "22"})
    assert (definition["apiKey"], definition["validVersions"]) == (22, "22")
    with pytest.raises(SchemaError, match="U\\+00A0"):
        read_definition(text)


LISTED = """{
  "name": "AResponse", "type": "response", "apiKey": 1, "validVersions": "2-5", "flexibleVersions": "none",
  // Version 3 may return TOO_LATE.
  // Supported errors for the codes below:
  // - NOT_COORDINATOR (version 0+)
  // - UNKNOWN_MEMBER_ID (versions 3-4) - only sometimes
  // - INVALID_REQUEST
  "fields": []
  // - NOT_LISTED (version 0+)
}
"""


def test_listed_errors_become_data() -> None:
    assert supported_errors(LISTED) == {
        "NOT_COORDINATOR": "0+",
        "UNKNOWN_MEMBER_ID": "3-4",
        "INVALID_REQUEST": None,
    }


def test_an_error_without_versions_counts_from_the_lowest_of_the_message() -> None:
    definition = read_definition(LISTED)
    assert definition["supportedErrors"]["INVALID_REQUEST"] == "2+"
    assert read_definition(canonical_text(definition)) == definition


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "A",\n "Type": "data"}', r"x\.json:2:2: A: unknown key 'Type'"),
        ('{"name": "A", "name": "B"}', r"x\.json:1:15: the key 'name' is repeated"),
        ('{"name": "A", "apiKey": 1.5}', r"A: apiKey must be a whole number, not '1\.5'"),
        ('{"name": "A", "validVersions": "3-1"}', r"A: validVersions: .* 3 is above 1"),
        ('{"name": "A", "fields": [3]}', r"A: expected an object, found '3'"),
        ('{"name": "A", "headerVersions": 3}', r"expected an object"),
        ("[]", r"a definition is one JSON object"),
    ],
)
def test_text_that_is_not_a_definition_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        read_definition(text, "x.json")
