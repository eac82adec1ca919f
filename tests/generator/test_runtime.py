"""Compilation at run time: a working class from a text or a file, without writing files."""

from __future__ import annotations

import linecache
import traceback
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from kafka_msgs.errors import SchemaError
from kafka_msgs.message import Message
from kafka_msgs.schema import fields
from kafka_msgs_generator.runtime_compiler import compile_schema

PING = """{
  "name": "Ping", "type": "data", "validVersions": "0-1", "flexibleVersions": "1+",
  // where it went
  "fields": [{"name": "Hops", "type": "[]Hop", "versions": "0+", "fields": [
    {"name": "Host", "type": "string", "versions": "0+", "nullableVersions": "1+"}
  ]}]
}"""


def sample(cls: Any) -> Message:
    """A ping with two hops."""
    hop: Any = fields(cls)[0].struct
    value = cls(hops=(hop(host="a"), hop(host="bc")))
    assert isinstance(value, Message)
    return value


def test_a_text_becomes_a_class_that_encodes_and_decodes() -> None:
    value = sample(compile_schema(PING))
    assert value.encode(version=0).hex() == "00000002" + "000161" + "00026263"
    assert value.encode(version=1).hex() == "03" + "026100" + "03626300" + "00"
    assert [type(value).decode(value.encode(version=v), version=v) == value for v in (0, 1)] == [True, True]


@pytest.mark.parametrize("kind", [Path, str])
def test_a_file_is_read_by_its_path(tmp_path: Path, kind: type) -> None:
    path = tmp_path / "Ping.json"
    path.write_text(PING, encoding="utf-8-sig")
    assert sample(compile_schema(kind(path))).encode(version=0) == sample(compile_schema(PING)).encode(version=0)
    with pytest.raises(FileNotFoundError):
        compile_schema(kind(tmp_path / "Pong.json"))


@pytest.mark.parametrize("text", ["", "  ", "[]", "null", "true", '"x"', "OffsetFetch", "[" * 10_000, "x" * 5000, "\0"])
def test_a_text_that_does_not_name_a_file_is_read_as_a_definition(text: str) -> None:
    with pytest.raises(SchemaError):
        compile_schema(text)


def test_a_path_is_one_line_that_ends_in_a_suffix() -> None:
    with pytest.raises(FileNotFoundError):
        compile_schema("no such directory/Ping.json")


def test_two_classes_of_one_definition_are_independent() -> None:
    first, second = compile_schema(PING), compile_schema(PING)
    assert first is not second
    assert sample(first) != sample(second)


def test_released_definitions_give_the_generated_class_again() -> None:
    from kafka_msgs.messages import OffsetFetchRequest

    cls: Any = compile_schema(Path("message_defs/kafka/clients/OffsetFetchRequest.json"))
    assert evolve(OffsetFetchRequest.INFO, partner=None) == cls.INFO
    made = cls(group_id="billing", topics=None)
    assert isinstance(made, Message)
    assert made.encode(version=2) == OffsetFetchRequest(group_id="billing", topics=None).encode(version=2)


def test_a_page_is_read_leniently_with_bindings() -> None:
    page = PING.replace('"0-1"', "TBD").replace("{", "{\N{NO-BREAK SPACE}", 1)
    with pytest.raises(SchemaError, match="1:2: "):
        compile_schema(page)
    with pytest.raises(SchemaError, match="TBD is not bound"):
        compile_schema(page, lenient=True)
    assert str(compile_schema(page, lenient=True, bindings={"TBD": "0-7"}).INFO.versions) == "0-7"


def test_a_retired_message_has_no_class() -> None:
    with pytest.raises(SchemaError, match="a retired message has no version to compile") as caught:
        compile_schema(PING.replace('"0-1"', '"none"'))
    assert (caught.value.rule, caught.value.line) == ("V8", 2)


def test_the_generated_source_shows_in_a_debugger() -> None:
    compile_schema(PING)
    file = [name for name in linecache.cache if name.startswith("<kafka-msgs Ping")][-1]
    linecache.checkcache(file)
    assert "class Hop(Struct):\n" in linecache.getlines(file)
    frame = traceback.FrameSummary(file, linecache.getlines(file).index("class Hop(Struct):\n") + 1, "Hop")
    assert frame.line == "class Hop(Struct):"
