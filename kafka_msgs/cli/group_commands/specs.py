"""The differences between the group commands: option names, types and states of groups, columns. Data only.

Types and states have Kafka's names, which ``kafka_msgs.enums`` also uses; the module imports no client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from kafka_msgs.cli.group_commands.option_rules import View

__all__ = ["CONSUMER", "DELETED", "DELETED_OFFSETS", "PLANNED", "SHARE", "STREAMS", "Columns", "GroupCommandSpec"]

Columns = Mapping[str, str]
"""The column headings of Kafka's tools by our column names."""

_ANY_ACTION: Final = {
    "bootstrap_server": "--bootstrap-server",
    "log_dirs": "--log-dirs",
    "list": "--list",
    "describe": "--describe",
    "reset_offsets": "--reset-offsets",
    "delete_offsets": "--delete-offsets",
    "delete": "--delete",
    "group": "--group",
    "all_groups": "--all-groups",
    "offsets": "--offsets",
    "members": "--members",
    "state": "--state",
    "verbose": "--verbose",
    "to_datetime": "--to-datetime",
    "to_earliest": "--to-earliest",
    "to_latest": "--to-latest",
    "execute": "--execute",
    "dry_run": "--dry-run",
}
_ANY_OFFSET: Final = {
    "by_duration": "--by-duration",
    "shift_by": "--shift-by",
    "from_file": "--from-file",
    "to_current": "--to-current",
    "to_offset": "--to-offset",
}
_ALL_TOPICS: Final = {"all_topics": "--all-topics", "topics": "--topic"}


@frozen(kw_only=True)
class GroupCommandSpec:
    """The specification of a group command for one kind of groups.

    ``flags`` are the options of the command, by name. ``columns`` are the columns of each view, ``verbose`` the columns
    with ``--verbose``. With ``may_be_new``, a reset may set offsets of a group that does not exist yet.
    """

    command: str
    noun: str
    types: tuple[str, ...]
    states: tuple[str, ...]
    flags: Mapping[str, str]
    columns: Mapping[View, Columns]
    verbose: Mapping[View, Columns]
    may_be_new: bool = False

    @property
    def share(self) -> bool:
        """Whether the offsets belong to share groups, which have separate requests."""
        return "Share" in self.types

    def shown(self, view: View, *, verbose: bool) -> Columns:
        """Return the columns of a view."""
        return self.verbose[view] if verbose else self.columns[view]


_PLACE: Final = {"group": "GROUP", "topic": "TOPIC", "partition": "PARTITION"}
_LAG: Final = {"committedOffset": "CURRENT-OFFSET", "endOffset": "LOG-END-OFFSET", "lag": "LAG"}
_OWNER: Final = {"memberId": "CONSUMER-ID", "clientHost": "HOST", "clientId": "CLIENT-ID"}
_EPOCH: Final = {"leaderEpoch": "LEADER-EPOCH"}
_MEMBER: Final = {
    "group": "GROUP", "memberId": "CONSUMER-ID", "instanceId": "GROUP-INSTANCE-ID", "clientHost": "HOST",
    "clientId": "CLIENT-ID", "partitions": "#PARTITIONS",
}  # fmt: skip
_STATE: Final = {
    "group": "GROUP",
    "coordinator": "COORDINATOR (ID)",
    "assignor": "ASSIGNMENT-STRATEGY",
    "state": "STATE",
}
_STATE_ONLY: Final = {name: heading for name, heading in _STATE.items() if name != "assignor"}
_STREAMS_STATE: Final = _STATE | {"assignor": "ASSIGNOR"}
_EPOCHS: Final = {"groupEpoch": "GROUP-EPOCH", "targetEpoch": "TARGET-ASSIGNMENT-EPOCH"}
_MEMBERS: Final = {"members": "#MEMBERS"}

CONSUMER: Final = GroupCommandSpec(
    command="consumer-groups",
    noun="consumer group",
    may_be_new=True,
    types=("Classic", "Consumer"),
    states=(
        "Assigning", "CompletingRebalance", "Dead", "Empty", "PreparingRebalance", "Reconciling", "Stable",
    ),
    flags={**_ANY_ACTION, **_ANY_OFFSET, **_ALL_TOPICS, "type": "--type", "old_output": "--old-output"},
    columns={"offsets": _PLACE | _LAG | _OWNER, "members": _MEMBER, "state": _STATE | _MEMBERS},
    verbose={
        "offsets": _PLACE | _EPOCH | _LAG | _OWNER,
        "members": _MEMBER
        | {
            "epoch": "CURRENT-EPOCH", "assignment": "CURRENT-ASSIGNMENT", "memberTargetEpoch": "TARGET-EPOCH",
            "target": "TARGET-ASSIGNMENT", "upgraded": "UPGRADED",
        },
        "state": _STATE | _EPOCHS | _MEMBERS,
    },
)  # fmt: skip

STREAMS: Final = GroupCommandSpec(
    command="streams-groups",
    noun="streams group",
    types=("Streams",),
    states=("Empty", "NotReady", "Reconciling", "Assigning", "Stable", "Dead"),
    flags=_ANY_ACTION
    | _ANY_OFFSET
    | {"all_topics": "--all-input-topics", "topics": "--input-topics", "internal_topics": "--internal-topics"},
    columns={
        "offsets": _PLACE | {"lag": "OFFSET-LAG"},
        "members": {
            "group": "GROUP", "memberId": "MEMBER", "processId": "PROCESS", "clientId": "CLIENT-ID",
            "assignments": "ASSIGNMENTS",
        },
        "state": _STREAMS_STATE | _MEMBERS,
    },
    verbose={
        "offsets": _PLACE
        | {
            "committedOffset": "CURRENT-OFFSET", "leaderEpoch": "LEADER-EPOCH", "endOffset": "LOG-END-OFFSET",
            "lag": "OFFSET-LAG",
        },
        "members": {
            "group": "GROUP", "targetEpoch": "TARGET-ASSIGNMENT-EPOCH", "topologyEpoch": "TOPOLOGY-EPOCH",
            "memberId": "MEMBER", "protocol": "MEMBER-PROTOCOL", "epoch": "MEMBER-EPOCH", "processId": "PROCESS",
            "clientId": "CLIENT-ID", "allAssignments": "ASSIGNMENTS",
        },
        "state": _STREAMS_STATE | _EPOCHS | _MEMBERS,
    },
)  # fmt: skip

SHARE: Final = GroupCommandSpec(
    command="share-groups",
    noun="share group",
    types=("Share",),
    states=("Empty", "Stable", "Dead"),
    flags=_ANY_ACTION | _ALL_TOPICS,
    columns={
        "offsets": _PLACE | {"committedOffset": "START-OFFSET", "lag": "LAG"},
        "members": _MEMBER | {"assignment": "ASSIGNMENT"},
        "state": _STATE_ONLY | _MEMBERS,
    },
    verbose={
        "offsets": _PLACE | _EPOCH | {"committedOffset": "START-OFFSET", "lag": "LAG"},
        "members": _MEMBER | {"epoch": "MEMBER-EPOCH", "assignment": "ASSIGNMENT"},
        "state": _STATE_ONLY | {"groupEpoch": "GROUP-EPOCH", "targetEpoch": "ASSIGNMENT-EPOCH"} | _MEMBERS,
    },
)

PLANNED: Final[Columns] = _PLACE | {"newOffset": "NEW-OFFSET"}
"""The columns of a plan of new offsets."""

DELETED_OFFSETS: Final[Columns] = {"topic": "TOPIC", "partition": "PARTITION", "status": "STATUS"}
"""The columns of deleted offsets with their status."""

DELETED: Final[Columns] = {"kind": "KIND", "name": "NAME", "status": "STATUS"}
"""The columns of deleted groups and topics with their status."""
