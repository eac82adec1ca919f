"""Paths that select parts of messages."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from kafka_msgs.schema import Struct, fields

__all__ = ["chosen", "paths"]


def paths(cls: type[Struct], version: int, above: str = "") -> Iterator[str]:
    """Return all paths of a class at a version: to arrays, elements, structs and values."""
    for each in fields(cls):
        if version in each.versions:
            yield f"{above}{each.attribute}"
            path = f"{above}{each.attribute}{'[]' * each.is_array}"
            if each.is_array:
                yield path
            if each.struct is not None:
                yield from paths(each.struct, version, f"{path}.")


def chosen(cls: Any, version: int, rng: Random) -> list[str]:
    """Draw a few paths, none within another."""
    known = list(paths(cls, version))
    found: list[str] = []
    for path in rng.sample(known, min(len(known), 3)):
        if not any(
            f"{a}.".startswith((f"{b}.", f"{b}[")) for other in found for a, b in ((path, other), (other, path))
        ):
            found.append(path)
    return found
