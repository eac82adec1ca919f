"""The intended differences as data, each with its reason. Every other difference is a bug of the embedded broker."""

from __future__ import annotations

from typing import Final

from attrs import frozen

__all__ = ["KNOWN", "Known"]


@frozen
class Known:
    """Output lines (a regular expression) of invocations (another one) that may differ, and the reason."""

    invocations: str
    lines: str
    reason: str


_NODES: Final = (
    r"^(advertised\.listeners|listeners?\b.*|controller\..*|inter\.broker\.listener\.name|process\.roles|log\.dirs"
    r"|ssl\.(key|trust)store\..*|authorizer\.class\.name|super\.users|allow\.everyone\.if\.no\.acl\.found"
    r"|sasl\.enabled\.mechanisms)="
)

KNOWN: Final[tuple[Known, ...]] = (
    Known(r"--broker 0 --all", _NODES, "the real nodes are controllers, with more listeners, keys and directories"),
    Known(
        r"--broker 0 --all",
        r"^(max\.connections|metadata\.log\.max\.record\.bytes\.between\.snapshots)=",
        "the embedded broker has smaller defaults, because it runs in the process of a test",
    ),
    Known(
        r"log\.cleaner\.threads=2",
        r"^status|log\.cleaner|^Completed",
        "the embedded broker has no cleaner threads, and does not compare their number with a buffer",
    ),
    Known(r"kafka-configs --describe (--broker 0|--entity-type brokers)$", r"^log\.cleaner\.threads=", "as above"),
    Known(
        r"--entity-type groups$", r"differential-barrier|^consumer\.session", "a config that settles the real cluster"
    ),
    Known(r"kafka-get-offsets$", r"^__consumer_offsets:", "console consumers commit in intervals"),
    Known(r"--topic __consumer_offsets", r"^\{|^Processed a total", "console consumers commit in intervals"),
    Known(
        r"--describe --group share-a",
        r"^share-a HOST",
        "the epochs of a share group count changes, which depend on time",
    ),
    Known(
        r"kafka-delete-records .* FILE-no-topic$",
        r"^partition: missing-0 error: null$",
        "the tool waits for the topic until the campaign ends it, and sometimes prints the interruption",
    ),
    Known(r"--all-groups", r"^console-consumer-<number> ", "console consumers have random group ids"),
    Known(
        r"kafka-metadata-quorum",
        r"^(Current(Observers|Voters)|HighWatermark|LeaderI|LeaderE|MaxFollower)|^\d <id> \d+ ",
        "each cluster has its own metadata log, and a real one has several voters",
    ),
    Known(
        r"kafka-broker-api-versions",
        r"^(AddRaftVoter|RemoveRaftVoter|UnregisterController)\(",
        "the embedded broker has no quorum of controllers",
    ),
)
