"""Hostile inputs for kafka-msgs: each must produce a library error or a value, in linear time and with little memory.

Each input has two sizes. From the smaller to the larger, time per byte must grow less than with quadratic time, and
peak memory must stay within four times the input plus 8 MB. The inputs that expand most when decoded are shown without
that target, because the decode budget limits them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import attrs
from attrs import frozen
from rich.console import Console

from benchmarks import message_cases
from benchmarks.report import Figure, print_figures, rows_table
from benchmarks.timing import PROTOCOL, fastest, peak_memory
from kafka_msgs import (
    DescribeGroupsRequest,
    FetchResponse,
    KafkaMsgsError,
    Message,
    MetadataResponse,
    OffsetFetchRequest,
    SaslAuthenticateRequest,
)
from kafka_msgs.primitives import write_uvarint
from kafka_msgs.schema import MessageInfo, Struct, field

__all__ = ["INPUTS", "Hostile", "outcome", "run"]

_MEGABYTE: Final = 1 << 20
_MEMORY_A_BYTE: Final = 4
_MEMORY_FREE: Final = 8 * _MEGABYTE
_ROUNDS: Final = 5
_LINEAR: Final = 2.0
"""The maximum ratio of the time per byte between the larger and the four times smaller input; quadratic gives 4."""

_LEVELS: Final = 30

_HUGE: Final = write_uvarint(2**32 - 1)
"""The compact encoding of the count 2^32 - 2."""

_BEFORE_TOPICS: Final = b"\0\0\0\0\1\0\0\0\0\1"
"""A MetadataResponse v12 up to its topics: throttle time, no brokers, null cluster, controller."""

_BEFORE_RESPONSES: Final = bytes(10)
"""A FetchResponse v12 up to its responses: throttle time, error, session."""


@frozen
class Hostile:
    """A kind of input, made in the sizes ``small`` and ``large``: one buffer to decode, or several in sequence.

    ``ends`` is the required ``outcome``. ``expands`` marks legal inputs whose values are far larger; for these, the
    smaller size also exceeds the caches, because cache effects would otherwise look like growth.
    """

    name: str
    ends: str
    cls: type[Message]
    version: int
    make: Callable[[int], list[bytes]]
    small: int
    large: int
    expands: bool = False


def _nested(levels: int) -> type[Message]:
    """Return a message whose arrays of structs are nested ``levels`` deep."""
    cls: Any = None
    for level in range(levels, 0, -1):
        members: dict[str, Any] = {"size": field("Size", "int32", default=0)}
        if cls is not None:
            members["children"] = field("Children", f"[]{cls.__name__}", default=(), struct=cls)
        annotations = dict.fromkeys(members, Any)
        made = type(f"Level{level}", (Message if level == 1 else Struct,), members | {"__annotations__": annotations})
        cls = attrs.frozen(kw_only=True, repr=False, eq=False)(made)
    cls.INFO = MessageInfo(name="Nested", kind="data", versions="0", flexible="none")
    message: type[Message] = cls
    return message


def _nested_data(wide: int, cut: int = 0) -> list[bytes]:
    """Return the nested message, ``wide`` elements at the lowest level and one at each above, without ``cut`` bytes."""
    size, one = b"\0\0\0\7", b"\0\0\0\1"
    data = (size + one) * (_LEVELS - 2) + size + wide.to_bytes(4, "big") + size * wide
    return [data[: len(data) - cut]]


def _unknown_tags(count: int, last: int | None = None) -> list[bytes]:
    """Return an OffsetFetchRequest v8 with ``count`` unknown tags; ``last`` replaces the number of the last tag."""
    tags = [*range(100, 100 + count - 1), 99 + count if last is None else last]
    return [b"\1\0" + write_uvarint(count) + b"".join(write_uvarint(tag) + b"\1x" for tag in tags)]


def _cut_everywhere(topics: int) -> list[bytes]:
    """Return every proper prefix of a message."""
    message = message_cases.metadata("varied")
    data = attrs.evolve(message, brokers=(), topics=message.topics[:topics]).encode(12)
    return [data[:size] for size in range(len(data))]


def _strings(count: int) -> bytes:
    return count.to_bytes(4, "big") + b"\0\6groups" * (count - 1)


INPUTS: Final = (
    Hostile(
        "2^32-2 elements declared in 9 bytes, n more follow", "InvalidLengthError", MetadataResponse, 12,
        lambda n: [bytes(4) + _HUGE + bytes(n)], 0, _MEGABYTE,
    ),
    Hostile(
        "2^32-2 elements declared by the second array", "InvalidLengthError", MetadataResponse, 12,
        lambda n: [_BEFORE_TOPICS + _HUGE + bytes(n)], 0, _MEGABYTE,
    ),
    Hostile(
        "as many elements declared as bytes follow", "InvalidLengthError", OffsetFetchRequest, 8,
        lambda n: [write_uvarint(n + 1) + bytes(n)], _MEGABYTE // 4, _MEGABYTE,
    ),
    Hostile(
        "count of -2, n bytes follow", "InvalidLengthError", OffsetFetchRequest, 2,
        lambda n: [b"\0\1g\xff\xff\xff\xfe" + bytes(n)], 0, _MEGABYTE,
    ),
    Hostile(
        "string of -2 bytes, n follow", "InvalidLengthError", OffsetFetchRequest, 2,
        lambda n: [b"\xff\xfe" + bytes(n)], 0, _MEGABYTE,
    ),
    Hostile(
        "varint without an end", "InvalidVarintError", OffsetFetchRequest, 8,
        lambda n: [b"\1\0\1" + b"\xff" * n], _MEGABYTE // 4, _MEGABYTE,
    ),
    Hostile(
        "n bytes declared, one missing", "TruncatedError", SaslAuthenticateRequest, 0,
        lambda n: [n.to_bytes(4, "big") + bytes(n - 1)], _MEGABYTE, 4 * _MEGABYTE,
    ),
    Hostile(
        "n strings, the last not UTF-8", "InvalidUtf8Error", DescribeGroupsRequest, 0,
        lambda n: [_strings(n) + b"\0\6group\xff"], 25_000, 100_000,
    ),
    Hostile(
        "a message of n topics, cut at every byte", "InvalidLengthError, TruncatedError", MetadataResponse, 12,
        _cut_everywhere, 1, 2,
    ),
    Hostile("n unknown tags", "a value", OffsetFetchRequest, 8, _unknown_tags, 2_500, 10_000),
    Hostile(
        "n unknown tags, the last out of order", "InvalidTagError", OffsetFetchRequest, 8,
        partial(_unknown_tags, last=7), 2_500, 10_000,
    ),
    Hostile(
        f"{_LEVELS} levels of structs in arrays, n at the lowest, the last cut", "InvalidLengthError",
        _nested(_LEVELS), 0, partial(_nested_data, cut=1), 25_000, 100_000,
    ),
    Hostile(
        f"{_LEVELS} levels of structs in arrays, n at the lowest", "a value", _nested(_LEVELS), 0,
        _nested_data, 100_000, 400_000, expands=True,
    ),
    Hostile(
        "n empty strings", "a value", DescribeGroupsRequest, 0,
        lambda n: [n.to_bytes(4, "big") + bytes(2 * n)], 100_000, 400_000, expands=True,
    ),
    Hostile(
        "n structs of 3 bytes", "a value", FetchResponse, 12,
        lambda n: [_BEFORE_RESPONSES + write_uvarint(n + 1) + b"\1\1\0" * n + b"\0"], 100_000, 400_000, expands=True,
    ),
)  # fmt: skip
"""All inputs; those that expand come last."""


def outcome(hostile: Hostile, pieces: list[bytes]) -> str:
    """Decode each piece; return the names of the errors, or ``a value``. Errors of other libraries propagate."""
    found = set()
    for piece in pieces:
        try:
            hostile.cls.decode(piece, hostile.version)
            found.add("a value")
        except KafkaMsgsError as error:
            found.add(type(error).__name__)
    return ", ".join(sorted(found))


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    table = rows_table(
        "Hostile inputs in two sizes",
        "input",
        "bytes",
        "ns per byte",
        "bytes",
        "ns per byte",
        "peak memory",
        "allowed",
        "outcome",
    )
    measured = [_measure(hostile, min(rounds, _ROUNDS)) for hostile in INPUTS]
    for each in measured:
        table.add_row(*each.cells())
    ended = sum(each.outcome == each.hostile.ends for each in measured)
    bounded = [each.peak / each.allowed for each in measured if not each.hostile.expands]
    figures = [
        Figure("inputs that ended as they must", ended, "", target=len(INPUTS)),
        Figure(
            "time per byte, larger over smaller input, worst",
            max(each.growth for each in measured),
            target=_LINEAR,
            at_most=True,
        ),
        Figure("peak memory over 4x input + 8 MB, worst", max(bounded), target=1, at_most=True),
        Figure(
            "peak memory over input, of inputs that expand, worst",
            max(each.peak / each.large for each in measured if each.hostile.expands),
        ),
    ]
    console.print(table)
    print_figures(console, "Hostile inputs", PROTOCOL.format(rounds=min(rounds, _ROUNDS)), figures)
    return figures


@frozen
class _Measured:
    """The measurements of one kind of input: decoded bytes and seconds of both sizes, and the larger's peak memory."""

    hostile: Hostile
    small: int
    large: int
    seconds: dict[str, float]
    peak: int
    allowed: int
    outcome: str

    @property
    def growth(self) -> float:
        """Return the time per byte of the larger input divided by the time per byte of the smaller."""
        return (self.seconds["large"] / self.large) / (self.seconds["small"] / self.small)

    def cells(self) -> list[str]:
        """Return the row of the table."""
        row = [self.hostile.name]
        for size, seconds in ((self.small, self.seconds["small"]), (self.large, self.seconds["large"])):
            row += [f"{size:,}", f"{1e9 * seconds / size:,.2f}"]
        allowed = "" if self.hostile.expands else f"{self.allowed / _MEGABYTE:.1f} MB"
        return [*row, f"{self.peak / _MEGABYTE:.2f} MB", allowed, self.outcome]


def _measure(hostile: Hostile, rounds: int) -> _Measured:
    small, large = hostile.make(hostile.small), hostile.make(hostile.large)
    cases = {"small": partial(outcome, hostile, small), "large": partial(outcome, hostile, large)}
    return _Measured(
        hostile=hostile,
        small=sum(map(len, small)),
        large=sum(map(len, large)),
        seconds=fastest(cases, rounds),
        peak=peak_memory(cases["large"]),
        allowed=_MEMORY_A_BYTE * max(map(len, large)) + _MEMORY_FREE,
        outcome=outcome(hostile, large),
    )
