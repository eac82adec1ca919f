"""Features that Kafka's definitions rely on and stricter readers reject, and how a definition is resolved."""

from __future__ import annotations

import json
import math
from pathlib import Path
from uuid import UUID

import pytest

from kafka_msgs.versions import NONE, VersionRange
from kafka_msgs_generator.compiler import CompileOptions, compile_file, compile_paths
from kafka_msgs_generator.ir import Field, NewStruct
from tests.support.small_definitions import compiled, data, head

DEFINITIONS = Path("message_defs")
PAGE = sorted(Path("message_defs/drafts/kip_1071").glob("*.json"))
X = '"fields": [{"name": "X", "type": "int8", "versions": "0+"}]'


def only(keys: str, kind: str = "int32", common: str = "") -> Field:
    """Return the only field of a message, with further keys."""
    (field,) = compiled(data(f'{{"name": "A", "type": "{kind}", {keys}}}', common)).fields
    return field


@pytest.mark.parametrize(
    ("keys", "attribute", "value"),
    [
        ('"versions": "0+", "default": -1', "default", -1),
        ('"versions": 3', "versions", VersionRange(3, 3)),
        ('"versions": " 0+ "', "versions", VersionRange.parse("0+")),
        ('"versions": "00-02"', "versions", VersionRange(0, 2)),
        ('"versions": "0-32767"', "versions", VersionRange.parse("0+")),
        ('"tag": "0", "taggedVersions": "1+"', "tag", 0),
        ('"tag": 0, "taggedVersions": "1+"', "versions", VersionRange.parse("1+")),
        ('"tag": 0, "versions": "0+", "taggedVersions": "1+"', "versions", VersionRange.parse("0+")),
        ('"versions": "0+", "ignorable": "false"', "ignorable", False),
        ('"versions": "0+", "ignorable": "True"', "ignorable", True),
        ('"versions": "0+", "ignorable": 1', "ignorable", True),
        ('"versions": "0+", "default": null', "default", 0),
        ('"versions": "0+", "about": 1', "versions", VersionRange.parse("0+")),
        ('"versions": "0+", "fields": []', "default", 0),
        ('"versions": "0+", "entityType": "unknown"', "entity", None),
        ('"versions": "0+", "nullableVersions": ""', "nullable", NONE),
        ('"versions": "none"', "versions", NONE),
    ],
)
def test_a_field_is_read_as_kafka_reads_it(keys: str, attribute: str, value: object) -> None:
    assert getattr(only(keys), attribute) == value


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("bool", "true", True),
        ("bool", '"TRUE"', True),
        ("bool", '""', False),
        ("int8", '"0x7f"', 127),
        ("int8", '"-128"', -128),
        ("int16", '"+5"', 5),
        ("int64", '"0x7fffffffffffffff"', 2**63 - 1),
        ("int64", "-9223372036854775808", -(2**63)),
        ("uint16", "65535", 65535),
        ("uint32", '"4294967295"', 2**32 - 1),
        ("uint32", '"0xFFFFFFFF"', 2**32 - 1),
        ("float64", "1.5", 1.5),
        ("float64", '" 1e3d "', 1000.0),
        ("float64", '"0x1p3"', 8.0),
        ("float64", '"-Infinity"', -math.inf),
        ("float64", '"1e999"', math.inf),
        ("uuid", '"AAAAAAAAAAAAAAAAAAAAAQ"', UUID(int=1)),
        ("uuid", '"__________8AAAAAAAAAAA=="', UUID("ffffffff-ffff-ffff-0000-000000000000")),
        ("uuid", '""', UUID(int=0)),
        ("string", '"it\'s"', "it's"),
        ("string", "false", "false"),
        ("string", '""', ""),
        ("bytes", '""', b""),
        ("records", '"null"', None),
        ("records", '""', None),
        ("[]int32", '""', ()),
    ],
)
def test_a_default_is_a_value_of_its_type(kind: str, text: str, value: object) -> None:
    found = only(f'"versions": "0+", "default": {text}', kind).default
    assert (found, type(found)) == (value, type(value))


def test_nan_is_a_default() -> None:
    found = only('"versions": "0+", "default": "NaN"', "float64").default
    assert isinstance(found, float)
    assert math.isnan(found)


@pytest.mark.parametrize("kind", ["string", "bytes", "[]int32", "[]S", "S"])
def test_null_is_a_default_only_as_a_string_and_where_it_is_possible(kind: str) -> None:
    keys = f'"versions": "0+", "nullableVersions": "0+"{f", {X}" if "S" in kind else ""}'
    assert only(f'{keys}, "default": "null"', kind).default is None
    assert only(f'{keys}, "default": null', kind).default is not None
    assert only(keys, kind).default is not None


def test_a_struct_starts_as_a_new_struct() -> None:
    assert only(f'"versions": "0+", {X}', "S").default == NewStruct("S")


def test_a_single_item_counts_as_a_list_of_one() -> None:
    message = compiled(
        '{"name": "PingRequest", "type": "request", "apiKey": "3", "validVersions": "0", "flexibleVersions": "",'
        ' "listeners": "broker", "fields": {"name": "a", "type": " [] int32 ", "versions": "0+"}}'
    )
    assert (message.listeners, message.api_key, message.flexible) == (("broker",), 3, NONE)
    assert [(field.name, str(field.type)) for field in message.fields] == [("a", "[]int32")]


@pytest.mark.parametrize("keys", ['"fields": null, ', '"fields": [], ', ""])
def test_a_message_may_have_no_fields(keys: str) -> None:
    assert compiled(head(f'{keys}"validVersions": "0", "flexibleVersions": "none"')).fields == ()


def test_a_retired_message_keeps_its_key_and_has_no_code() -> None:
    message = compiled('{"name": "StopReplicaRequest", "type": "request", "apiKey": 5, "validVersions": "none"}')
    assert (message.retired, message.api_key, message.structs, message.fields) == (True, 5, (), ())


def test_flexible_versions_may_start_after_the_last_version() -> None:
    assert compiled(head('"validVersions": "0-1", "flexibleVersions": "4+"')).flexible == VersionRange.parse("4+")


def test_headers_and_errors_are_kept() -> None:
    message = compiled(
        '{"name": "PingRequest", "type": "request", "apiKey": 3, "validVersions": "0-3", "flexibleVersions": "2+",'
        ' "headerVersions": {"2+": "2", "0-1": 1}, "supportedErrors": {"NONE": "0+", "NOT_COORDINATOR": "1-2"}}'
    )
    assert dict(message.header_versions) == {VersionRange.parse("2+"): 2, VersionRange(0, 1): 1}
    assert message.errors == {"NONE": VersionRange.parse("0+"), "NOT_COORDINATOR": VersionRange(1, 2)}


def test_structs_stand_before_what_uses_them_and_each_once() -> None:
    common = ", ".join(
        f'{{"name": "{name}", "versions": "0+", "fields": [{{"name": "X", "type": "{kind}", "versions": "0+"}}]}}'
        for name, kind in (("Unused", "Leaf"), ("Outer", "[]Leaf"), ("Leaf", "int8"))
    )
    fields = ", ".join(
        f'{{"name": "{name}", "type": "{kind}", "versions": "1-3"{more}}}'
        for name, kind, more in (("A", "[]Outer", ""), ("B", "Inline", f", {X}"), ("C", "Leaf", ""))
    )
    structs = compiled(data(fields, common)).structs
    assert [(struct.name, struct.origin, struct.element, str(struct.versions)) for struct in structs] == [
        ("Leaf", None, False, "0-9"),
        ("Outer", None, False, "0-9"),
        ("Inline", "Sample.b", False, "1-3"),
        ("Unused", None, False, "0-9"),
    ]


def test_a_nested_struct_exists_where_all_around_it_do() -> None:
    inner = f'{{"name": "B", "type": "[]T", "versions": "0-6", {X}}}'
    text = data(f'{{"name": "A", "type": "S", "versions": "2+", "fields": [{inner}]}}', valid="1-8")
    assert [(struct.origin, str(struct.versions)) for struct in compiled(text).structs] == [
        ("Sample.a.b", "2-6"),
        ("Sample.a", "2-8"),
    ]


def test_a_map_key_may_stand_in_a_lone_struct() -> None:
    text = data(
        f'{{"name": "A", "type": "S", "versions": "0+", {X.replace("int8", "[]int8")[:-2]}, "mapKey": true}}]}}'
    )
    assert compiled(text).structs[0].fields[0].map_key


def test_a_field_may_leave_the_flexible_encoding() -> None:
    assert only('"versions": "0+", "flexibleVersions": "none"', "string").flexible == NONE
    assert only('"versions": "0+", "flexibleVersions": "1-1"', "string").flexible == VersionRange(1, 1)
    assert only('"versions": "0+", "flexibleVersions": ""', "string").flexible is None


def test_every_definition_of_the_release_compiles() -> None:
    origins = sorted((DEFINITIONS / "kafka").iterdir())
    found = compile_paths(origins, CompileOptions(), partial=False)
    files = [json.loads(path.read_text(encoding="utf-8")) for origin in origins for path in origin.glob("*.json")]
    assert {item.message.name: item.message.retired for item in found} == {
        each["name"]: each["validVersions"] == "none" for each in files
    }


@pytest.mark.parametrize("path", PAGE, ids=lambda path: path.stem)
def test_every_definition_of_the_streams_proposal_compiles(path: Path) -> None:
    message = compile_file(path, CompileOptions(), "kip_1071").message
    assert message.name == path.stem
    assert message.fields
