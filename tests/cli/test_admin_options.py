"""Options of the admin commands that belong to other actions: refused before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click
import pytest

from kafka_msgs.broker import EmbeddedBroker
from tests.support.command_line import Run

COMMANDS = ("acls", "cluster", "configs", "features", "quotas", "reassign", "topics", "transactions", "users")
VALUES = {
    "moves": "orders:0=1",
    "places": "orders:0",
    "added": "a=1",
    "configs": "a=1",
    "mechanism": "SCRAM-SHA-256",
    "iterations": "5000",
}
"""Values of parameters for which "1" is not valid."""


def cases() -> Iterator[Any]:
    """Yield each combination of a command, an action, and an option of other actions."""
    for name in COMMANDS:
        module = import_module(f"kafka_msgs.cli.admin_commands.{name}")
        command: click.Command = getattr(module, f"{name}_command")
        actions = [each for each in command.params if each.name == "action"]
        parameters = {str(each.name): each for each in command.params}
        assert module._ONLY_WITH.keys() <= parameters.keys()
        for parameter, allowed in module._ONLY_WITH.items():
            assert {*allowed} <= {str(each.flag_value) for each in actions if isinstance(each, click.Option)}
            for flag in actions:
                if isinstance(flag, click.Option) and flag.flag_value not in allowed:
                    words = (flag.opts[0], *_written(parameters[parameter]))
                    yield pytest.param(name, words, id=f"{name} {' '.join(words)}")


def _written(parameter: click.Parameter) -> tuple[str, ...]:
    if isinstance(parameter, click.Argument):
        return (VALUES[str(parameter.name)],)
    assert isinstance(parameter, click.Option)
    if parameter.is_flag:
        return (parameter.opts[-1],)
    value = __file__ if isinstance(parameter.type, click.Path) else VALUES.get(str(parameter.name), "1")
    return (parameter.opts[-1], value)


@pytest.mark.parametrize(("command", "words"), tuple(cases()))
def test_an_option_of_another_action_is_refused(run: Run, command: str, words: tuple[str, ...]) -> None:
    """Port 1 has no broker, so that a command that connected would fail in another way."""
    result = run(command, *words, "-b", "127.0.0.1:1")
    assert result.exit_code == 2
    assert "applies only to --" in result.stderr


def test_a_deletion_cannot_be_asked_to_change_nothing(run: Run) -> None:
    result = run("topics", "--delete", "orders", "--validate-only", "-b", "127.0.0.1:1")
    assert (result.exit_code, "applies only to --create and --alter" in result.stderr) == (2, True)


def test_short_options_of_an_entity_exclude_the_long_ones(run: Run) -> None:
    with EmbeddedBroker() as broker:
        words = ("-t", "orders", "--entity-type", "brokers", "--entity-name", "1")
        result = run("configs", *words, "-b", broker.bootstrap_servers)
    assert (result.exit_code, "exclude" in result.stderr) == (2, True)
