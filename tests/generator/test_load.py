"""The text of a definition: comments, positions, and the lenient mode for hand-written pages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.errors import SchemaError
from kafka_msgs_generator.json_tree import Node, Number, ObjectEntry, parse_definition, parse_definitions

NBSP = "\N{NO-BREAK SPACE}"


def plain(node: Node) -> Any:
    """Return a tree without its positions, with numbers as written."""
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
    # In Kafka 3.8 and 3.9, two fields contain "versions" twice.
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
    assert isinstance(name, ObjectEntry)
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
    """Return the position of a reading error, or None without one."""
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
def test_a_bound_placeholder_has_its_value(value: str, meaning: object) -> None:
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


PAGE = """
# The request, as the page has it
{ “name”: “Ping”,\u200b // quotes of a word processor
  "ty\u200bpe": „data", "note": "a 'word', \\"so to say\\"",
  "fields": [ { "name": "A\\u0042", }, ], }
{ "name": “Pong \\u00e9” }  # and the response
"""


def test_what_pages_have_that_json_has_not_is_read_where_lenient() -> None:
    ping, pong = parse_definitions(PAGE, lenient=True)
    fields = [{"name": "AB"}]
    assert plain(ping) == {"name": "Ping", "type": "data", "note": "a 'word', \"so to say\"", "fields": fields}
    assert plain(pong) == {"name": "Pong é"}
    assert (pong.line, pong.column) == (6, 1)


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ('{"a": 1,}', 1, 9, "a comma before '}' is not JSON; --lenient accepts it"),
        ("{“a”: 1}", 1, 2, r"found a typographic quote (U+201C); --lenient accepts it"),
        ('{"a": \u200b1}', 1, 7, "found a character of no width (U+200B); --lenient accepts it"),
        ("# page\n{}", 1, 1, "found '#'; --lenient reads it as the start of a comment"),
        ("{} {}", 1, 4, "--lenient reads several definitions"),
        (
            '{"a": "wrapped\n text"}',
            1,
            15,
            "a line break or a tab in a string: close the quote before it, or let --lenient",
        ),
        ('{"a": "a\ttab"}', 1, 9, "a line break or a tab in a string"),
        ('{"a":\u202f1}', 1, 6, "found a space that is not JSON (U+202F); --lenient accepts it"),
        ('{"a":\u20281}', 1, 6, "found a space that is not JSON (U+2028); --lenient accepts it"),
    ],
)
def test_a_strict_reading_reports_what_a_lenient_one_accepts(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_definition(text)
    assert words in caught.value.reason
    assert (caught.value.line, caught.value.column) == (line, column)
    assert parse_definitions(text, lenient=True)


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("text", ['{"fields": [...]}', '{"a": 1, ...}', '{"a": …}', '{"a": [1, … ]}'])
def test_an_ellipsis_is_refused_with_a_hint(text: str, lenient: bool) -> None:
    with pytest.raises(SchemaError, match="an ellipsis: the page leaves something out here; write it in"):
        parse_definition(text, lenient=lenient)


@pytest.mark.parametrize("text", ["", " \n", "// only a comment"])
def test_an_empty_text_is_called_empty(text: str) -> None:
    with pytest.raises(SchemaError, match="the text is empty: a definition is one JSON object"):
        parse_definition(text)


def test_one_definition_is_asked_for_and_several_are_there() -> None:
    with pytest.raises(SchemaError, match=r"^1:4: the text holds 3 definitions, and this takes one"):
        parse_definition("{} {} {}", lenient=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"The name of\n      the topic."', "The name of the topic."),
        ('"One,  \r\n\r\n\ttwo."', "One, two."),
        ("“Quoted\nas pages do.”", "Quoted as pages do."),
        ('"soft\u00adhyphen"', "softhyphen"),
        ('"a\ttab"', "a\ttab"),
    ],
)
def test_a_text_that_a_page_wraps_is_joined(text: str, value: str) -> None:
    assert plain(parse_definition(f'{{"about": {text}}}', lenient=True)) == {"about": value}


def test_an_error_after_a_wrapped_text_has_its_own_place() -> None:
    with pytest.raises(SchemaError, match=r"^page\.json:3:4: expected a value"):
        parse_definition('{"about": "one\ntwo", "a":\n   }', "page.json", lenient=True)


def test_a_typographic_quote_that_nothing_closes_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"^1:2: bad string: it has no closing quote"):
        parse_definition("{“name: 1}", lenient=True)


def test_a_placeholder_is_not_a_key_and_not_a_part_of_text() -> None:
    with pytest.raises(SchemaError, match="expected a key in double quotes"):
        parse_definition("{TBD: 1}", lenient=True, bindings={"TBD": "88"})
    assert plain(parse_definition('{"a": "TBD"}', lenient=True, bindings={"TBD": "88"})) == {"a": "TBD"}
