"""Output of data: exact in pipes, harmless on terminals and in spreadsheets, and strict JSON."""

from __future__ import annotations

import json
from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_msgs.cli.group_commands.reset_targets import offsets_in
from kafka_msgs.cli.render.console import console, table
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.output import csv_cell, echo, json_text, one_line, text_of_csv_cell, visible, write_bytes
from kafka_msgs.client import TopicPartition
from tests.support.command_line import Run

CONTROLS = [
    *map(chr, range(0x09)), *map(chr, range(0x0B, 0x20)), *map(chr, range(0x7F, 0xA0)),
    *"\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\U000e0001",
]  # fmt: skip


@pytest.mark.parametrize("letter", CONTROLS, ids=ascii)
def test_control_characters_become_visible_as_in_json(letter: str) -> None:
    assert visible(f"a{letter}b") != f"a{letter}b"
    assert visible(f"a{letter}b").isprintable()
    assert json.loads(f'"{visible(letter)}"') == letter
    assert letter not in json_text({letter: [letter]})
    assert json.loads(json_text({letter: [letter]})) == {letter: [letter]}


def test_printable_text_stays() -> None:
    text = "tab\tline\nGrüße 日本 👩‍💻"
    assert visible(text) == text
    assert one_line(text) == "tab\\tline\\nGrüße 日本 👩‍💻"


@pytest.mark.parametrize("text", ["\x1b[31mred", "\x9b2J", "bytes \udcff", "surrogate \ud800"])
def test_pipes_receive_the_data(capfdbinary: pytest.CaptureFixture[bytes], text: str) -> None:
    echo(text)
    expected = text.replace("\ud800", "\\ud800").encode("utf-8", "surrogateescape")
    assert capfdbinary.readouterr().out == expected + b"\n"


def test_bytes_reach_pipes_unchanged(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    data = bytes(range(256))
    write_bytes(data)
    assert capfdbinary.readouterr().out == data


def test_tables_contain_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    shown = table("name\x1b[2J")
    shown.add_row("\x9b31m")
    console().print(shown)
    assert capsys.readouterr().out.replace("\n", "").isprintable()
    print_listing("table", ("group",), [{"group": "a\x07\x08\r\nb"}])
    assert "a\\u0007\\b\\r\\nb" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "text"),
    [(nan, '"NaN"'), (inf, '"Infinity"'), (-inf, '"-Infinity"'), ({"a": [1.5, (nan,)]}, '{"a": [1.5, ["NaN"]]}')],
)
def test_json_is_strict_and_names_numbers_as_java_does(value: object, text: str) -> None:
    assert json_text(value) == text


@pytest.mark.parametrize("text", ["=1+1", "+A1", "-2+cmd|x", "@SUM(A1)", "\t=1", "\r=1"])
def test_csv_has_no_formulas(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert csv_cell(text) == f"'{text}"
    assert text_of_csv_cell(f"'{text}") == text
    print_listing("csv", ("a", "b"), [{"a": text, "b": [text]}])
    assert capsys.readouterr().out.count("'") == 2


@pytest.mark.parametrize("text", ["orders", "-5", "+1.5e3", "'quoted", ""])
def test_other_csv_cells_stay(text: str) -> None:
    assert text_of_csv_cell(csv_cell(text)) == csv_cell(text) == text


@given(st.text("'=+-@\t1.ea", max_size=6))
def test_every_text_is_read_back_from_its_csv_cell(text: str) -> None:
    """A text that looks like the cell of a formula is preserved as well."""
    cell = csv_cell(text)
    assert text_of_csv_cell(cell) == text
    assert cell[:1] not in {*"=@\t"}


def test_offsets_of_a_topic_that_looks_like_a_formula_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text("group,topic,partition,newOffset\n'=g,'-orders,0,7\n")
    assert offsets_in(path, "=g") == {TopicPartition("-orders", 0): 7}


def test_errors_keep_data_of_brokers_exact_in_pipes(run: Run, tmp_path: Path) -> None:
    name = str(tmp_path / "\x1b[31mred")
    result = run("encode", "HeartbeatRequest", "0", f"@{name}")
    assert (result.exit_code, result.stderr) == (1, f"Error: {name}: No such file or directory\n")


def test_mistyped_commands_are_corrected(run: Run) -> None:
    result = run("consum", "t")
    assert result.exit_code == 2
    assert "Did you mean consume" in result.stderr
    assert "Did you mean" not in run("xyzzy").stderr
