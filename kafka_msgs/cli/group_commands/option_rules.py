"""The valid option combinations of the group commands: the rules of KIP-88 and KIP-1071 as tables.

This module implements the checks that need no broker. A violation is a usage error: one line, and exit status 2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Literal, TypeAlias

import click
from attrs import fields, frozen

from kafka_msgs.cli.group_commands.topic_scope import TopicSelection

__all__ = ["Action", "GroupCommandOptions", "View", "check"]

Action: TypeAlias = Literal["list", "describe", "reset_offsets", "delete_offsets", "delete"]
View: TypeAlias = Literal["offsets", "members", "state"]

_ACTIONS: Final[tuple[Action, ...]] = ("list", "describe", "reset_offsets", "delete_offsets", "delete")
_SPECS: Final = (
    "to_datetime", "by_duration", "to_earliest", "to_latest", "shift_by", "from_file", "to_current", "to_offset",
)  # fmt: skip
_ONE_GROUP: Final = ("reset_offsets", "delete_offsets")

_ONLY_WITH: Final[Mapping[str, Collection[str]]] = {
    "group": ("describe", "reset_offsets", "delete_offsets", "delete"),
    "all_groups": ("describe", "delete"),
    "offsets": ("describe",),
    "members": ("describe",),
    "state": ("describe", "list"),
    "type": ("list",),
    "verbose": ("describe",),
    "old_output": ("describe",),
    "all_topics": _ONE_GROUP,
    "topics": _ONE_GROUP,
    **dict.fromkeys(_SPECS, ("reset_offsets",)),
    "execute": ("reset_offsets",),
    "dry_run": ("reset_offsets", "delete"),
    "internal_topics": ("delete",),
    "log_dirs": ("list", "describe"),
}
"""The actions that an option belongs to."""


@frozen(kw_only=True)
class GroupCommandOptions:
    """The option values of a group command. Missing options are empty, false or None."""

    list: bool = False
    describe: bool = False
    reset_offsets: bool = False
    delete_offsets: bool = False
    delete: bool = False
    group: tuple[str, ...] = ()
    all_groups: bool = False
    offsets: bool = False
    members: bool = False
    state: str | None = None
    type: str | None = None
    verbose: bool = False
    old_output: bool = False
    all_topics: bool = False
    topics: tuple[TopicSelection, ...] = ()
    to_datetime: datetime | None = None
    by_duration: timedelta | None = None
    to_earliest: bool = False
    to_latest: bool = False
    shift_by: int | None = None
    from_file: Path | None = None
    to_current: bool = False
    to_offset: int | None = None
    execute: bool = False
    dry_run: bool = False
    internal_topics: tuple[TopicSelection, ...] = ()
    bootstrap_server: str | None = None
    log_dirs: tuple[Path, ...] = ()

    @property
    def action(self) -> Action:
        """The action of the command."""
        return next(action for action in _ACTIONS if getattr(self, action))

    @property
    def view(self) -> View:
        """The view of ``--describe``; offsets by default."""
        return "members" if self.members else "state" if self.state is not None else "offsets"

    @property
    def wanted_topics(self) -> TopicSelection | None:
        """The selected topics, or None for all topics."""
        whole = TopicSelection(partitions={})
        for partitions in self.topics:
            whole |= partitions
        return whole if self.topics else None

    def given(self, names: Collection[str]) -> Iterator[str]:
        """Yield the names whose option was passed."""
        return (name for name in names if not _absent(getattr(self, name)))


def _absent(value: object) -> bool:
    """Whether an option was omitted; 0 and an empty text are values."""
    return value is None or value is False or value == ()


def check(asked: GroupCommandOptions, flags: Mapping[str, str]) -> None:
    """Raise ``click.UsageError`` for an invalid option combination; ``flags`` has the option spellings."""
    for rule in (_one_source, _one_action, _belongs, _groups, _one_view, _one_scope, _one_spec, _decided):
        problem = rule(asked, flags)
        if problem is not None:
            raise click.UsageError(problem)


def _one_source(asked: GroupCommandOptions, flags: Mapping[str, str]) -> str | None:
    given = list(asked.given(("bootstrap_server", "log_dirs")))
    if len(given) == 1:
        return None
    words = [flags[name] for name in ("bootstrap_server", "log_dirs") if name in flags]
    return f"expected {' or '.join(words)}" + (", not both" if given else "")


def _one_action(asked: GroupCommandOptions, flags: Mapping[str, str]) -> str | None:
    return _exactly_one(asked, [action for action in _ACTIONS if action in flags], flags)


def _belongs(asked: GroupCommandOptions, flags: Mapping[str, str]) -> str | None:
    for name in asked.given(_ONLY_WITH):
        if asked.action not in _ONLY_WITH[name]:
            actions = " or ".join(flags[action] for action in _ONLY_WITH[name] if action in flags)
            return f"{flags[name]} goes with {actions} only"
    return None


def _groups(asked: GroupCommandOptions, flags: Mapping[str, str]) -> str | None:
    if asked.action == "list":
        return None
    if asked.group and asked.all_groups:
        return "expected --group or --all-groups, not both"
    if not asked.group and not asked.all_groups:
        return f"{flags[asked.action]} needs --group"
    if asked.action in _ONE_GROUP and len(asked.group) > 1:
        return f"{flags[asked.action]} takes one --group at a time"
    return None


def _one_view(asked: GroupCommandOptions, flags: Mapping[str, str]) -> str | None:
    given = [flags[name] for name in asked.given(("offsets", "members", "state"))]
    if asked.action == "describe" and len(given) > 1:
        return f"expected one of {', '.join(given)}"
    if asked.action == "describe" and asked.state:
        return "--state takes a value with --list only"
    return None


def _one_scope(asked: GroupCommandOptions, flags: Mapping[str, str]) -> str | None:
    if asked.action not in _ONE_GROUP:
        return None
    given = list(asked.given(("all_topics", "topics")))
    if asked.from_file is not None:
        return f"--from-file names the partitions itself, without {flags[given[0]]}" if given else None
    return _exactly_one(asked, ["all_topics", "topics"], flags)


def _one_spec(asked: GroupCommandOptions, flags: Mapping[str, str]) -> str | None:
    return _exactly_one(asked, [spec for spec in _SPECS if spec in flags], flags) if asked.reset_offsets else None


def _decided(asked: GroupCommandOptions, flags: Mapping[str, str]) -> str | None:
    return _exactly_one(asked, ["dry_run", "execute"], flags) if asked.reset_offsets else None


def _exactly_one(asked: GroupCommandOptions, names: Collection[str], flags: Mapping[str, str]) -> str | None:
    given = list(asked.given(names))
    if len(given) == 1:
        return None
    words = ", ".join(flags[name] for name in given or names)
    return f"expected only one of {words}" if given else f"expected one of {words}"


assert {field.name for field in fields(GroupCommandOptions)} >= set(_ONLY_WITH), "each option has a value"
