"""The text of a definition: comments, places, and the lenient mode for pages that people wrote by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.errors import SchemaError
from kafka_msgs_generator.load import Member, Node, Number, parse_definition

NBSP = "\N{NO-BREAK SPACE}"


def plain(node: Node) -> Any:
    """A tree without its places, numbers as they were written."""
    if isinstance(node.value, dict):
        return {key: plain(member.value) for key, member in node.value.items()}
    if isinstance(node.value, tuple):
        return [plain(item) for item in node.value]
    return node.value.text if isinstance(node.value, Number) else node.value


def test_comments_stand_wherever_white_space_may() -> None:
    text = """// licence
    /* block
       // inside */ { /**/ "name" // key
      : "S", "fields": [ // none
      /* at all */ ] } // end"""
    assert plain(parse_definition(text)) == {"name": "S", "fields": []}


def test_comment_markers_inside_text_are_text() -> None:
    about = r'{"about": "see https://kafka.apache.org/ /* and */ \"more\" \u00e9"}'
    assert plain(parse_definition(about)) == {"about": 'see https://kafka.apache.org/ /* and */ "more" é'}


def test_a_byte_order_mark_is_skipped() -> None:
    assert plain(parse_definition('\N{ZERO WIDTH NO-BREAK SPACE}{"name": "S"}')) == {"name": "S"}


def test_a_key_may_be_repeated_with_the_same_value_only() -> None:
    # Kafka's own definitions of 3.8 and 3.9 say "versions" twice in two fields.
    text = '{"versions": "0+", "tag": 1, "versions": "0+", "tag": 1}'
    assert plain(parse_definition(text)) == {"versions": "0+", "tag": "1"}
    for text in ('{"a": 1, "a": "1"}', '{"a": true, "a": 1}', '{"a": [1], "a": [1]}', '{"a": 1, "a": 1, "a": 2}'):
        with pytest.raises(SchemaError, match="the key 'a' is repeated with another value"):
            parse_definition(text)


def test_numbers_stay_as_written() -> None:
    text = '{"a": -1, "b": 0.10, "c": 1E+3, "d": 99999999999999999999}'
    assert plain(parse_definition(text)) == {"a": "-1", "b": "0.10", "c": "1E+3", "d": "99999999999999999999"}


def test_keys_and_values_know_their_places() -> None:
    tree = parse_definition('{\n  "name": /* é */ "S",\n\t"fields": [\n    7 ]\n}')
    assert isinstance(tree.value, dict)
    name, fields = tree.value["name"], tree.value["fields"]
    assert isinstance(name, Member)
    assert [(node.line, node.column) for node in (tree, name.key, name.value, fields.key, fields.value)] == [
        (1, 1),
        (2, 3),
        (2, 19),
        (3, 2),
        (3, 12),
    ]
    assert isinstance(fields.value.value, tuple)
    assert (fields.value.value[0].line, fields.value.value[0].column) == (4, 5)


SCALARS = st.none() | st.booleans() | st.integers() | st.text()
DOCUMENTS = st.dictionaries(
    st.text(),
    st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20),
)


@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 2]))
def test_what_json_writes_is_read(document: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    assert plain(parse_definition(text)) == json.loads(text, parse_int=str)


def refused_place(text: str, lenient: bool) -> tuple[int, int] | None:
    """Where reading fails, or None when it does not."""
    try:
        parse_definition(text, lenient=lenient)
    except SchemaError as error:
        return error.line or 0, error.column or 0
    return None


@given(st.text(alphabet='{}[]:,"\\/*\n \t0123456789.eE+-truefalsn#' + NBSP, max_size=40), st.booleans())
def test_any_text_is_read_or_refused_with_a_place(text: str, lenient: bool) -> None:
    line, column = refused_place(text, lenient) or (1, 1)
    lines = text.split("\n")
    assert 1 <= line <= len(lines)
    assert 1 <= column <= len(lines[line - 1]) + 1


def test_a_non_breaking_space_is_white_space_only_where_lenient() -> None:
    text = f'{{\n{NBSP} "name":{NBSP}"S{NBSP}"}}'
    with pytest.raises(SchemaError, match=r"^2:1: .*non-breaking space \(U\+00A0\) outside a string; --lenient"):
        parse_definition(text)
    assert plain(parse_definition(text, lenient=True)) == {"name": f"S{NBSP}"}


@pytest.mark.parametrize(
    ("value", "meaning"),
    [("88", "88"), ("-1", "-1"), ("0+", "0+"), ("true", True), ("null", None), ("", ""), ("TBD", "TBD")],
)
def test_a_bound_placeholder_stands_for_its_value(value: str, meaning: object) -> None:
    tree = parse_definition('{"apiKey": TBD, "tags": [TBD]}', lenient=True, bindings={"TBD": value})
    assert plain(tree) == {"apiKey": meaning, "tags": [meaning]}


def test_a_bound_number_is_a_number() -> None:
    tree = parse_definition('{"apiKey": TBD}', lenient=True, bindings={"TBD": "88"})
    assert isinstance(tree.value, dict)
    assert tree.value["apiKey"].value.value == Number("88")


@pytest.mark.parametrize(
    ("lenient", "bindings", "words"),
    [
        (False, {}, "TBD is not JSON; bind it with --lenient --bind TBD=VALUE"),
        (False, {"TBD": "88"}, "TBD is not JSON"),
        (True, {}, "TBD is not bound to a value; bind it with --bind TBD=VALUE"),
        (True, {"tbd": "88", "TB": "1"}, "TBD is not bound"),
    ],
)
def test_a_placeholder_without_a_value_is_refused(lenient: bool, bindings: dict[str, str], words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_definition('{\n  "apiKey": TBD }', "page.json", lenient=lenient, bindings=bindings)
    assert words in caught.value.reason
    assert (caught.value.source, caught.value.line, caught.value.column) == ("page.json", 2, 13)


def test_a_placeholder_is_no_key_and_no_part_of_text() -> None:
    with pytest.raises(SchemaError, match="expected a key in double quotes"):
        parse_definition("{TBD: 1}", lenient=True, bindings={"TBD": "88"})
    assert plain(parse_definition('{"a": "TBD"}', lenient=True, bindings={"TBD": "88"})) == {"a": "TBD"}
