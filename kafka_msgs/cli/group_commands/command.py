"""Creates the commands ``consumer-groups``, ``streams-groups`` and ``share-groups`` from their specs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from kafka_msgs import __version__
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.group_commands.datetimes import read_datetime, read_duration
from kafka_msgs.cli.group_commands.option_rules import GroupCommandOptions, check
from kafka_msgs.cli.group_commands.specs import GroupCommandSpec
from kafka_msgs.cli.group_commands.topic_scope import read_topics
from kafka_msgs.cli.output_options import listing_option

__all__ = ["groups_command"]

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_DIRECTORY: Final = click.Path(exists=True, file_okay=False, path_type=Path)
_FLAG: Final[Mapping[str, Any]] = {"is_flag": True}
_STATE: Final[Mapping[str, Any]] = {"is_flag": False, "flag_value": "", "default": None}

_OPTIONS: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "log_dirs": (
        {"metavar": "DIR", "multiple": True, "type": _DIRECTORY},
        "Read a broker's log directory instead of a broker, for --list and --describe; may be repeated.",
    ),
    "list": (_FLAG, "List the groups."),
    "describe": (_FLAG, "Show the offsets and lags, the members or the state of groups."),
    "reset_offsets": (_FLAG, "Set the offsets of a group without members, with --dry-run or --execute."),
    "delete_offsets": (_FLAG, "Delete the offsets of a group for some topics."),
    "delete": (_FLAG, "Delete groups without members."),
    "group": ({"metavar": "ID", "multiple": True}, "A group; may be repeated with --describe and --delete."),
    "all_groups": (_FLAG, "All groups, with --describe and --delete."),
    "offsets": (_FLAG, "With --describe, show offsets and lags. This is the default."),
    "members": (_FLAG, "With --describe, show the members."),
    "state": (
        {**_STATE, "metavar": "[STATES]"},
        "With --describe, show the state. With --list, show the states, or list only groups in these states.",
    ),
    "type": (
        {**_STATE, "metavar": "[TYPES]"},
        "With --list, show the types, or list only groups of these types.",
    ),
    "verbose": (_FLAG, "With --describe, include epochs; with --members also assignments and targets."),
    "old_output": (
        _FLAG,
        "With --describe, print the output before KIP-88: a note, and only the error for a group without members.",
    ),
    "all_topics": (_FLAG, "All topics of the group."),
    "topics": (
        {"metavar": "TOPICS", "multiple": True, "callback": read_topics},
        "Topics, separated by commas, or partitions of a topic, such as orders:0,1; may be repeated.",
    ),
    "to_datetime": (
        {"metavar": "DATETIME", "callback": read_datetime},
        "Reset to the first record at or after YYYY-MM-DDTHH:mm:SS.sss, in UTC unless a zone follows.",
    ),
    "by_duration": (
        {"metavar": "DURATION", "callback": read_duration},
        "Reset to the first record of the last PnDTnHnMnS, an ISO 8601 duration.",
    ),
    "to_earliest": (_FLAG, "Reset to the first records."),
    "to_latest": (_FLAG, "Reset to the ends of the partitions."),
    "shift_by": ({"metavar": "N", "type": int}, "Shift the offsets by N, which may be negative."),
    "from_file": (
        {"metavar": "FILE", "type": _FILE},
        "Reset to the offsets in a CSV file: topic,partition,offset, or the output of --dry-run --output csv.",
    ),
    "to_current": (_FLAG, "Reset to the committed offsets, moved into the range of their partitions."),
    "to_offset": ({"metavar": "N", "type": click.IntRange(min=0)}, "Reset to offset N."),
    "execute": (_FLAG, "Commit the new offsets."),
    "dry_run": (_FLAG, "With --reset-offsets and --delete, change nothing."),
    "internal_topics": (
        {"metavar": "TOPICS", "multiple": True, "callback": read_topics},
        "With --delete, delete only these internal topics of the group; --dry-run prints all of them.",
    ),
}  # fmt: skip
"""The click parameters of each option, and its help."""


def groups_command(kind: GroupCommandSpec, text: str) -> click.Command:
    """Return the command for a kind of groups."""

    def run(cluster: ClusterOptions, output_format: str, **given: Any) -> None:
        asked = GroupCommandOptions(bootstrap_server=cluster.bootstrap_server, **given)
        check(asked, kind.flags)
        from kafka_msgs.cli.group_commands.read_actions import run_action

        run_action(kind, asked, cluster, output_format)

    run.__doc__ = text
    decorated: Callable[..., Any] = listing_option(run)
    for name, (settings, words) in reversed([*_OPTIONS.items()]):
        if name in kind.flags:
            decorated = click.option(*_names(kind, name), name, help=words, **settings)(decorated)
    decorated = click.version_option(__version__)(broker_options(required=False)(decorated))
    return click.command(kind.command)(decorated)


def _names(kind: GroupCommandSpec, name: str) -> list[str]:
    """Return the spellings of an option; Kafka's own tool has one topic per --input-topic."""
    flag = kind.flags[name]
    return [flag, "--input-topic"] if flag == "--input-topics" else [flag]
