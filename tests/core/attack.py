"""``python -m tests.core.attack SEED ROUNDS``: calls the C core with invalid arguments.

Each round changes one or two things in a valid call: numbers, types, tuple items, buffers. Every raised ``Exception``
is fine. The process prints ``done`` at the end. With a third argument it prints each call before making it, so the last
line is the call that crashed the process.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import sys
from array import array
from random import Random
from typing import Any, Final

from tests.core.models import Call, calls, plain_class

__all__ = ["attack"]

_MEMORY: Final = 4 << 30
"""Bytes. An allocation beyond the machine's memory is a ``MemoryError`` here as well."""

_NUMBERS: Final = (
    -1,
    0,
    1,
    2,
    3,
    7,
    8,
    9,
    13,
    14,
    15,
    36,
    255,
    256,
    2**15,
    2**31 - 1,
    2**31,
    2**62,
    2**63 - 1,
    -(2**63),
)


class _Index:
    def __index__(self) -> int:
        return 3


def _odd(rng: Random) -> Any:
    """Return a value that is wrong in nearly every position."""
    return rng.choice(
        (
            None, True, 1.5, 2**64, -(10**30), "", "\ud800", "first", "group_id", b"", bytes(3), bytearray(9),
            memoryview(bytes(40))[::2], memoryview(array("q", range(9))), array("i", range(9)), (), (None,), ((),) * 5,
            (0,) * 11, [], [b"k", 1], {}, {"first": 1}, object(), int, object, type, plain_class("Odd"), len, bytearray,
            lambda *given: given, lambda *given: None, lambda *given: 1 / 0, lambda size: bytearray(3),
            lambda size: memoryview(bytearray(size + 1))[1:], _Index(), rng.choice(_NUMBERS),
        )
    )  # fmt: skip


def _changed(rng: Random, value: Any) -> Any:
    """Return a copy of a value with one change."""
    if isinstance(value, tuple) and value and rng.random() < 0.9:
        at, parts = rng.randrange(len(value)), list(value)
        way = rng.random()
        if way < 0.1:
            del parts[at]
        elif way < 0.2:
            parts.insert(at, parts[rng.randrange(len(parts))])
        else:
            parts[at] = _changed(rng, parts[at])
        return tuple(parts)
    if isinstance(value, bytes) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return value[:at] if rng.random() < 0.5 else value[:at] + rng.randbytes(1) + value[at + 1 :]
    if isinstance(value, int) and rng.random() < 0.7:
        return rng.choice((*_NUMBERS, value - 1, value + 1))
    return _odd(rng)


def _call(call: Call, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    try:
        result = call.function(*arguments, **named)
        call.further(result)
    except Exception:
        return


def attack(seed: int, rounds: int, told: bool) -> None:
    """Run the given number of rounds of calls."""
    rng = Random(seed)
    for _ in range(rounds):
        for call in calls(rng):
            arguments, named = call.arguments, call.named
            for _ in range(rng.randrange(1, 3)):
                arguments = _changed(rng, arguments)
            if named and rng.random() < 0.5:
                named = {rng.choice((*named, "other")): _odd(rng) for _ in range(2)}
            if told:
                print(call.name, arguments if isinstance(arguments, tuple) else (arguments,), named, flush=True)
            _call(call, arguments if isinstance(arguments, tuple) else (arguments,), named)


if __name__ == "__main__":
    faulthandler.enable()
    # AddressSanitizer reserves terabytes of addresses; ASAN_OPTIONS in the Makefile limits its allocations.
    if "KAFKA_MSGS_TEST_CORE" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    attack(int(sys.argv[1]), int(sys.argv[2]), len(sys.argv) > 3)
    print("done")
