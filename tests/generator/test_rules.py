"""The rules of the format: breaking a rule raises an error with the rule, the position and the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_msgs.errors import SchemaError
from kafka_msgs_generator import defaults
from kafka_msgs_generator.compiler import CompileOptions, InvalidDefinitionsError, compile_paths
from kafka_msgs_generator.rules import DEVIATIONS, RULES
from tests.generator.broken_definitions import BROKEN, F, f
from tests.support.small_definitions import data, head, refusal, unmarked


@pytest.mark.parametrize(("rule", "definition", "words"), BROKEN)
def test_a_definition_that_breaks_a_rule_is_refused_where_it_does(rule: str, definition: str, words: str) -> None:
    text, place = unmarked(definition)
    error = refusal(text)
    assert (error.rule, error.source) == (rule, "sample.json")
    assert words in error.reason
    assert error.line is not None
    if place is not None:
        assert (error.line, error.column) == place
    assert str(error).startswith(f"sample.json:{error.line}:{error.column}: ")
    assert str(error).endswith(f"[{rule}]")


@pytest.mark.parametrize(
    ("definition", "path"),
    [
        (data(f('"tag": 0', "Inner")), "Sample.Inner"),
        (data(f(f'"fields": [{f("#tag#: 0".replace("#", chr(34)), "Deep")}]', "Outer", "[]S")), "Sample.Outer.Deep"),
        (data("", '{"name": "S", "versions": "0+", "fields": [{"name": "x", "type": "int"}]}'), "Sample.S.x"),
        (head(f'"validVersions": "0+", {F}'), "Sample"),
    ],
)
def test_an_error_names_message_and_field(definition: str, path: str) -> None:
    assert refusal(definition).path == path


def keyed(name: str, kind: str, key: int) -> str:
    """Return a message with an API key."""
    return head(f'"apiKey": {key}, "validVersions": "0", "flexibleVersions": "none"', name=name, kind=kind)


PING, PONG = keyed("PingRequest", "request", 1), keyed("PingResponse", "response", 1)
SETS = [
    ("V69", [PING, PONG, keyed("PangRequest", "request", 1)], "the request PingRequest has the same key, 1"),
    ("V69", [PING, PONG, keyed("PangResponse", "response", 1)], "the response PingResponse has the same key, 1"),
    ("V69", [keyed("A", "metadata", 1), keyed("B", "metadata", 1)], "the metadata A has the same key, 1"),
    ("V70", [PING], "no response has the key 1 of this request"),
    ("V70", [PONG], "no request has the key 1 of this response"),
    ("V70", [keyed("AKey", "coordinator-key", 1)], "no coordinator-value has the key 1 of this"),
    ("V70", [keyed("AValue", "coordinator-value", 1)], "no coordinator-key has the key 1"),
    ("V70", [keyed("Ping", "request", 1), PONG], "a request's name ends in 'Request'"),
    ("V70", [PING, keyed("PangResponse", "response", 1)], "PangResponse has its key 1 but not its name"),
    ("N1", [PING, PONG, keyed("Ping_Request", "data", 1)], "the same module"),
]


@pytest.mark.parametrize(("rule", "definitions", "words"), SETS)
def test_a_set_that_breaks_a_rule_is_refused(tmp_path: Path, rule: str, definitions: list[str], words: str) -> None:
    for number, text in enumerate(definitions):
        (tmp_path / f"{number}.json").write_text(text)
    with pytest.raises(InvalidDefinitionsError) as caught:
        compile_paths([tmp_path], CompileOptions(), partial=False)
    (error,) = caught.value.errors
    assert error.rule == rule
    assert words in error.reason
    assert error.source is not None
    assert error.line is not None


@pytest.mark.parametrize("definitions", [[PING], [PONG], [keyed("AKey", "coordinator-key", 1)]])
def test_a_partial_set_needs_no_pairs(tmp_path: Path, definitions: list[str]) -> None:
    (tmp_path / "only.json").write_text(definitions[0])
    assert len(compile_paths([tmp_path], CompileOptions(), partial=True)) == 1


def test_the_same_key_may_serve_two_origins(tmp_path: Path) -> None:
    for origin, name in (("one", "A"), ("two", "B")):
        (tmp_path / origin).mkdir()
        (tmp_path / origin / "m.json").write_text(keyed(name, "metadata", 1))
    compiled = compile_paths([tmp_path / "one", tmp_path / "two"], CompileOptions(), partial=False)
    assert [(item.origin, item.message.api_key) for item in compiled] == [("one", 1), ("two", 1)]


def test_directories_with_the_same_name_are_distinguished(tmp_path: Path) -> None:
    for module, name in (("one", "A"), ("two", "B")):
        (tmp_path / module / "message").mkdir(parents=True)
        (tmp_path / module / "message" / "m.json").write_text(keyed(name, "metadata", 1))
    directories = [tmp_path / "one" / "message", tmp_path / "two" / "message"]
    compiled = compile_paths(directories, CompileOptions(), partial=False)
    assert [(item.origin, item.source) for item in compiled] == [
        ("one/message", "one/message/m.json"),
        ("two/message", "two/message/m.json"),
    ]


def test_a_definition_given_twice_is_compiled_once(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(keyed("A", "metadata", 1))
    assert len(compile_paths([tmp_path, tmp_path / "m.json", tmp_path], CompileOptions(), partial=False)) == 1


def test_every_bad_file_of_a_set_is_reported(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.json").write_text("{")
    with pytest.raises(InvalidDefinitionsError) as caught:
        compile_paths([tmp_path], CompileOptions(), partial=False)
    assert [error.source for error in caught.value.errors] == [f"{tmp_path.name}/{n}.json" for n in range(3)]
    assert all(isinstance(error, SchemaError) for error in caught.value.errors)


def test_every_rule_is_broken_here_or_known_not_to_reject() -> None:
    broken = {rule for rule, _, _ in [*BROKEN, *SETS]}
    assert RULES.keys() - broken == {"V8", "V41", "V63"}
    assert broken <= RULES.keys()
    assert DEVIATIONS.keys() <= RULES.keys()
    assert [f"V{number}" for number in range(1, 71)] == [rule for rule in RULES if rule.startswith("V")]


@pytest.mark.parametrize("text", ["1" * 200_000 + "x", "0x" + "f" * 200_000 + "x", "." + "1" * 200_000 + "e"])
def test_a_long_default_that_is_not_a_number_is_refused_in_linear_time(text: str) -> None:
    """Backtracking needs a minute for a tenth of this length."""
    assert defaults._FLOAT.fullmatch(text) is None
    assert defaults._HEX_FLOAT.fullmatch(text) is None
