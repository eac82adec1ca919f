"""Differences between two results, and the differences that no relaxation explains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import evolve, frozen

from tests.broker.differential.known_differences import RELAXATIONS, Place
from tests.broker.differential.normalization import is_unordered, without
from tests.broker.differential.tested_cluster import Command, Result

__all__ = ["Difference", "compared", "tidied"]


@frozen
class Difference:
    """The paths at which a command led to different results, except for explained differences."""

    at: int
    command: Command
    places: list[Place]

    @property
    def kind(self) -> str:
        """A key that is mostly equal for differences with the same cause."""
        place = self.places[0]
        path = re.sub(r"\[\d+\]", "[]", place.path)
        values = f"{place.kafka!r} {place.ours!r}" if path.endswith(("errorCode", "closed", "answer")) else ""
        return f"{place.api} {path} {values[:80]}".strip()


def compared(at: int, command: Command, kafka: Result, ours: Result, used: Iterable[Any] = ()) -> Difference | None:
    """Return the unexplained differences. ``used`` is a counter of relaxations."""
    api = command.get("api", "raw")
    left = []
    for place in _places(Place(api, "", kafka, ours, command, (kafka, ours))):
        explained = next((each for each in RELAXATIONS if each.covers(place)), None)
        if explained is None:
            left.append(place)
        elif hasattr(used, "update"):
            used.update((explained,))
    return Difference(at, command, left) if left else None


def tidied(command: Command, result: Result) -> Result:
    """Return a result with unordered lists sorted."""
    if "answer" not in result:
        return result
    return result | {"answer": _tidied(command.get("api", "raw"), result["answer"])}


def _tidied(api: str, value: Any, path: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _tidied(api, each, f"{path}.{name}") for name, each in value.items()}
    if not isinstance(value, list):
        return value
    found = [_tidied(api, each, path) for each in value]
    return sorted(found, key=lambda each: without(each, _TEXTS)) if is_unordered(f"{api}{path}") else found


_TEXTS: Final = frozenset({"errorMessage"})
_ABSENT: Final = "<nothing>"


def _places(place: Place) -> Iterator[Place]:
    """Yield the paths below a path at which the values differ."""
    path, kafka, ours = place.path, place.kafka, place.ours
    if kafka == ours and type(kafka) is type(ours):
        return
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for name in (*kafka, *(each for each in ours if each not in kafka)):
            below = f"{path}.{name}" if path else name
            yield from _places(evolve(place, path=below, kafka=kafka.get(name, _ABSENT), ours=ours.get(name, _ABSENT)))
    elif isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        for at, (one, other) in enumerate(zip(kafka, ours, strict=True)):
            yield from _places(evolve(place, path=f"{path}[{at}]", kafka=one, ours=other))
    else:
        yield place
