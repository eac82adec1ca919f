"""Help texts of commands, and shell completion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from kafka_msgs import __version__
from kafka_msgs.cli.command_group import command
from kafka_msgs_generator.cli import command as generator_command
from tests.support.command_line import Run


def commands(group: click.Group, *above: str) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        yield (*above, name)
        if isinstance(found, click.Group):
            yield from commands(found, *above, name)


ALL = list(commands(command))
DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("words", [(), *ALL], ids=" ".join)
def test_every_command_has_short_and_long_help_in_which_nothing_is_cut(
    run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    short, long = run(*words, "-h"), run(*words, "--help")
    assert short.exit_code == long.exit_code == 0
    assert short.stdout == long.stdout
    assert max(map(len, long.stdout.splitlines())) <= 80
    assert not re.search(r"[a-z,]\.\.\.", long.stdout), long.stdout


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_is_one_sentence_in_the_list_of_its_group(run: Run, words: tuple[str, ...]) -> None:
    listed = " ".join(run(*words[:-1], "-h").stdout.split())
    own = " ".join(run(*words, "-h").stdout.partition("\n\n")[2].split())
    first = re.split(r"(?<=\.) ", own)[0]
    assert f"{words[-1]} {first.removesuffix('.')}" in listed


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_has_an_example_with_options_that_exist(run: Run, words: tuple[str, ...]) -> None:
    example = " ".join(run(*words, "-h").stdout.partition("Example: ")[2].partition("\n\n")[0].split())
    assert f"kafka-msgs {' '.join(words)}" in example
    found: click.Command | None = command
    for word in words:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None
    if not isinstance(found, click.Group):
        known = {option for parameter in found.params for option in parameter.opts}
        assert {*re.findall(r"(?<!\S)(?:-[A-Za-z]|--[a-z-]+)(?!\S)", example)} <= known


def test_the_compilers_command_has_the_same_habits() -> None:
    run = CliRunner()
    short = run.invoke(generator_command, ["-h"], terminal_width=80)
    assert short.exit_code == 0
    assert short.stdout == run.invoke(generator_command, ["--help"], terminal_width=80).stdout
    assert not re.search(r"[a-z,]\.\.\.", short.stdout)
    assert __version__ in run.invoke(generator_command, ["--version"]).stdout


def completions(arguments: list[str], incomplete: str) -> list[str]:
    shell = ShellComplete(command, {}, "kafka-msgs", "_KAFKA_MSGS_COMPLETE")
    return [item.value for item in shell.get_completions(arguments, incomplete)]


def test_shells_complete_commands_and_names_of_messages() -> None:
    assert completions([], "de") == ["decode", "delete-records"]
    assert completions(["show"], "offsetfetch") == ["OffsetFetchRequest", "OffsetFetchResponse"]
    assert completions(["plan"], "kip_88.offset") == ["kip_88.OffsetFetchRequest", "kip_88.OffsetFetchResponse"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(run: Run, shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert f"_KAFKA_MSGS_COMPLETE={shell}_complete" in result.stdout
    assert "kafka-msgs" in result.stdout


def test_i21_there_is_no_tool_that_resets_classic_applications_and_the_documents_say_so() -> None:
    assert [words for words in ALL if "reset" in "-".join(words)] == []
    text = (DOCS / "reference" / "cli-cluster.md").read_text(encoding="utf-8")
    assert (
        "`kafka-streams-application-reset` is for groups of the classic protocol; there is no such command here" in text
    )


def test_i22_the_two_lines_that_kip_88_shows_are_in_the_documents_letter_by_letter() -> None:
    """The tests of B7 and B8 compare the output of the commands."""
    text = (DOCS / "reference" / "cli-cluster.md").read_text(encoding="utf-8")
    assert "Error: Consumer group 'audit' has no active members." in text
    assert (
        "Note: This will only show information about consumers that use the Java consumer API "
        "(non-ZooKeeper-based consumers)."
    ) in text
