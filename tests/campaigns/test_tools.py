"""The campaign of command line tools: its table of invocations, normalization and verdicts."""

from __future__ import annotations

import shlex
from pathlib import Path

from tests.campaigns.tools.comparison import Output, compared, is_repeatable
from tests.campaigns.tools.files import written_files
from tests.campaigns.tools.invocations import read_invocations
from tests.campaigns.tools.known_differences import KNOWN
from tests.campaigns.tools.normalization import normalized
from tests.support.kafka_tools import TOOLS


def test_the_table_has_every_tool_that_uses_brokers() -> None:
    tools = {shlex.split(each.line)[0] for each in read_invocations() if not each.is_action}
    assert tools == set(TOOLS)


def test_the_table_names_only_files_that_exist(tmp_path: Path) -> None:
    files = written_files(tmp_path)
    named = {word for each in read_invocations() for word in each.line.split() if word.startswith("FILE-")}
    assert named == {each for each in files if each.startswith("FILE-")}


def test_generated_values_become_symbols() -> None:
    printed = "b  at 2026-11-27 14:30:00,123\na topic 9mDqjRxHQ0CqWmYSbL3xKQ  kafka-console-consumer\n\n"
    assert normalized("kafka-topics", printed) == ["a topic <id> kafka-console-consumer", "b at <time>"]
    assert normalized("kafka-log-dirs", '{"b": [2, 1], "a": "x"}') == ['{"a": "x", "b": [1, 2]}']


def test_a_known_difference_removes_its_lines_only() -> None:
    output = Output("kafka-anything", ["one", "two"], ["one", "three"])
    assert compared(output).verdict == "DIFFERENT"
    assert compared(Output("kafka-anything", ["one"], ["one"])).verdict == "equal"
    assert all(known.reason for known in KNOWN)


def test_only_invocations_that_change_nothing_are_repeated() -> None:
    assert is_repeatable("kafka-topics --list")
    assert not is_repeatable("kafka-topics --delete --topic t")
