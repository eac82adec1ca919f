"""Similar names for misspelt options, columns and messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["did_you_mean", "no_such", "similar_names"]

_LONGEST: Final = 100
"""The longest name with suggestions: the comparison takes time quadratic in the length, and names may be input."""
_LISTED: Final = 8
"""The number of known names up to which an error lists them all if none is similar."""
_PLAIN: Final = str.maketrans("", "", "-_. ")


def similar_names(name: str, known: Iterable[str], count: int = 3, *, cutoff: float = 0.6) -> tuple[str, ...]:
    """Return the known names that are most similar to a name, the nearest first.

    Case, hyphens, underscores, dots and spaces do not count. ``cutoff`` is between 0, which accepts any name, and 1.
    """
    from difflib import get_close_matches

    if len(name) > _LONGEST:
        return ()
    spellings: dict[str, list[str]] = {}
    for each in known:
        spellings.setdefault(_plain(each), []).append(each)
    near = get_close_matches(_plain(name), spellings, n=count, cutoff=cutoff)
    return tuple(each for key in near for each in spellings[key])[:count]


def _plain(name: str) -> str:
    return name.translate(_PLAIN).lower()


def did_you_mean(names: Iterable[str]) -> str:
    """Return the question that follows an error, or an empty text without names."""
    question = " or ".join(names)
    return f"; did you mean {question}?" if question else ""


def no_such(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the reason to refuse an unknown name, with the nearest known name, or with all if these are few."""
    names = tuple(known)
    near = similar_names(name, names, 1)
    listed = f"; known are {', '.join(sorted(names))}" if not near and 0 < len(names) <= _LISTED else ""
    return f"there is no such {kind}{did_you_mean(near)}{listed}"
