"""Shrinks a script with a difference by delta debugging."""

from __future__ import annotations

from collections.abc import Callable

from tests.coordinator.oracle import Command

__all__ = ["shrink"]


def shrink(
    commands: list[Command], still_differs: Callable[[list[Command]], bool], *, tries: int = 400
) -> list[Command]:
    """Return a short subsequence of the commands that still differs, including the first one, ``start``.

    The function removes ever smaller runs of commands as long as the difference remains. ``tries`` limits the
    attempts.
    """
    start, kept = commands[:1], commands[1:]
    size = len(kept) // 2
    while size and tries > 0:
        at = 0
        while at < len(kept) and tries > 0:
            candidate = kept[:at] + kept[at + size :]
            tries -= 1
            if still_differs(start + candidate):
                kept = candidate
            else:
                at += size
        size //= 2
    return start + kept
