"""Draw the state machines of the group coordinator from the tables in its code.

    python docs/tools/state_machines.py [--check]

Each picture is an SVG file in ``docs/design``. The states and the arrows come from the code; this module defines only
the positions of the states. With ``--check`` nothing is written, and the exit status is 1 if a picture is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from html import escape
from math import hypot
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafka_msgs.groups.classic.classic_state import VALID_PREVIOUS_STATES, ClassicGroupState
from kafka_msgs.groups.shard_runtime import VALID_TRANSITIONS, CoordinatorState
from kafka_msgs_generator.atomic_write import write_atomically

ROOT: Final = Path(__file__).resolve().parents[2]
DESIGN: Final = ROOT / "docs" / "design"

_WIDTH, _HEIGHT, _COLUMN, _ROW, _MARGIN = 170, 40, 230, 110, 20


class Machine(NamedTuple):
    """A state machine: its transitions, and the column and row of each state in the picture."""

    title: str
    moves: Mapping[Any, frozenset[Any]]
    places: Mapping[Any, tuple[int, int]]


def _onward(previous: Mapping[Any, frozenset[Any]]) -> dict[Any, frozenset[Any]]:
    """Return the states after each state, from the states before it."""
    return {state: frozenset(after for after in previous if state in previous[after]) for state in previous}


MACHINES: Final[Mapping[str, Machine]] = {
    "shard-states.svg": Machine(
        "The states of a partition",
        VALID_TRANSITIONS,
        {
            CoordinatorState.INITIAL: (0, 0),
            CoordinatorState.LOADING: (1, 0),
            CoordinatorState.ACTIVE: (2, 0),
            CoordinatorState.FAILED: (0, 1),
            CoordinatorState.CLOSED: (2, 1),
        },
    ),
    "classic-group-states.svg": Machine(
        "The states of a classic group",
        _onward(VALID_PREVIOUS_STATES),
        {
            ClassicGroupState.EMPTY: (0, 0),
            ClassicGroupState.PREPARING_REBALANCE: (1, 0),
            ClassicGroupState.COMPLETING_REBALANCE: (2, 0),
            ClassicGroupState.STABLE: (2, 1),
            ClassicGroupState.DEAD: (0, 1),
        },
    ),
}


def main(arguments: Sequence[str]) -> int:
    """Update all pictures, or with ``--check`` list the ones that are out of date; return the exit status."""
    stale = [(path, text) for path, text in pictures() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path, text in stale:
        if "--check" in arguments:
            print(f"{path.relative_to(ROOT)}: not up to date; run python docs/tools/state_machines.py")
        else:
            write_atomically(path, text)
            print(f"{path.relative_to(ROOT)}: written")
    return int("--check" in arguments and bool(stale))


def pictures() -> Iterator[tuple[Path, str]]:
    """Yield the path and the up-to-date content of each picture."""
    for name, machine in MACHINES.items():
        yield DESIGN / name, "\n".join(_picture(machine)) + "\n"


def _picture(machine: Machine) -> Iterator[str]:
    assert set(machine.places) == set(machine.moves), "each state has a place"
    columns, rows = (1 + max(place[axis] for place in machine.places.values()) for axis in (0, 1))
    width, height = (columns - 1) * _COLUMN + _WIDTH + 2 * _MARGIN, (rows - 1) * _ROW + _HEIGHT + 2 * _MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="14">'
    )
    yield f"<title>{escape(machine.title)}</title>"
    yield (
        '<defs><marker id="end" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 L10 5 L0 10 z" fill="#555"/></marker></defs>'
    )
    for state, following in machine.moves.items():
        for after in sorted(following, key=lambda each: machine.places[each]):
            if after is not state:
                yield _arrow(machine.places[state], machine.places[after], both=state in machine.moves[after])
    for state, place in machine.places.items():
        yield from _box(state, place)
    yield "</svg>"


def _centre(place: tuple[int, int]) -> tuple[float, float]:
    column, row = place
    return _MARGIN + column * _COLUMN + _WIDTH / 2, _MARGIN + row * _ROW + _HEIGHT / 2


def _arrow(start: tuple[int, int], end: tuple[int, int], *, both: bool) -> str:
    """Return an arrow from box to box. Two opposite arrows are drawn next to each other."""
    (x1, y1), (x2, y2) = _centre(start), _centre(end)
    dx, dy = x2 - x1, y2 - y1
    aside = 7 / hypot(dx, dy) if both else 0
    x1, y1, x2, y2 = x1 - dy * aside, y1 + dx * aside, x2 - dy * aside, y2 + dx * aside
    inside = min(_WIDTH / 2 / abs(dx) if dx else 1, _HEIGHT / 2 / abs(dy) if dy else 1)
    points = (x1 + dx * inside, y1 + dy * inside, x2 - dx * inside, y2 - dy * inside)
    a, b, c, d = (f"{point:.0f}" for point in points)
    return f'<line x1="{a}" y1="{b}" x2="{c}" y2="{d}" stroke="#555" marker-end="url(#end)"/>'


def _box(state: Enum, place: tuple[int, int]) -> Iterator[str]:
    x, y = _centre(place)
    yield (
        f'<rect x="{x - _WIDTH / 2:.0f}" y="{y - _HEIGHT / 2:.0f}" width="{_WIDTH}" height="{_HEIGHT}" rx="8" '
        'fill="#eef3fa" stroke="#456"/>'
    )
    yield f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle">{escape(str(state.value))}</text>'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
