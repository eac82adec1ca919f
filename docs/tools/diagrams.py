"""Draw the diagrams of the design pages.

    python docs/tools/diagrams.py [--check]

Each picture is an SVG file in ``docs/design``. The state machines come from the tables in the code of the group
coordinator, and the layers from the import contract in ``pyproject.toml``; this module defines only positions. With
``--check`` nothing is written, and the exit status is 1 if a picture is out of date.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs.tools.svg_drawing import MARGIN, Box, arrow, picture
from kafka_msgs.groups.classic.members import VALID_PREVIOUS_STATES, ClassicGroupState
from kafka_msgs.groups.runtime.shard import VALID_TRANSITIONS, CoordinatorState
from kafka_msgs_generator.atomic_write import write_atomically

__all__ = ["DESIGN", "layers", "main", "pictures"]

ROOT: Final = Path(__file__).resolve().parents[2]
DESIGN: Final = ROOT / "docs" / "design"
LAYERS: Final = "Each layer imports only what stands below it"
"""The name of the contract for the packages of the library."""

_WIDTH, _HEIGHT, _COLUMN, _ROW = 170, 40, 230, 110
_LAYER, _CHARACTER, _PADDING, _GAP = 32, 8, 20, 8


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

_RESULT: Final = ("bytes", "or a message")
_STEPS: Final[Mapping[str, tuple[Sequence[str], tuple[int, int]]]] = {
    "definition": (("definition", "JSON"), (0, 0)),
    "class": (("message class", "data only"), (1, 0)),
    "plan": (("plan", "one version"), (2, 0)),
    "python": (("generated", "Python"), (0, 1)),
    "reference": (("reference", "interpreter"), (1, 1)),
    "native": (("C core",), (2, 1)),
    "from python": (_RESULT, (0, 2)),
    "error": (("error with", "path and offset"), (1, 2)),
    "from native": (_RESULT, (2, 2)),
}
_FLOWS: Final = (
    ("definition", "class"), ("class", "plan"), ("plan", "python"), ("plan", "reference"), ("plan", "native"),
    ("python", "from python"), ("native", "from native"), ("python", "reference"), ("native", "reference"),
    ("reference", "error"),
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Update all pictures, or with ``--check`` list the ones that are out of date; return the exit status."""
    stale = [(path, text) for path, text in pictures() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path, text in stale:
        if "--check" in arguments:
            print(f"{path.relative_to(ROOT)}: not up to date; run python docs/tools/diagrams.py")
        else:
            write_atomically(path, text)
            print(f"{path.relative_to(ROOT)}: written")
    return int("--check" in arguments and bool(stale))


def pictures() -> Iterator[tuple[Path, str]]:
    """Yield the path and the up-to-date content of each picture."""
    for name, machine in MACHINES.items():
        yield DESIGN / name, _machine(machine)
    yield DESIGN / "executors.svg", _executors()
    yield DESIGN / "layers.svg", _layers()


def _box(lines: Sequence[str], place: tuple[int, int], height: int = _HEIGHT) -> Box:
    column, row = place
    x, y = MARGIN + column * _COLUMN + _WIDTH / 2, MARGIN + row * _ROW + height / 2
    return Box(lines, x, y, _WIDTH, height)


def _picture(title: str, boxes: Mapping[Any, Box], arrows: Iterator[str]) -> str:
    width, height = (max(getattr(box, axis) for box in boxes.values()) for axis in ("x", "y"))
    first = next(iter(boxes.values()))
    shapes = [*arrows, *(shape for box in boxes.values() for shape in box.shapes())]
    return picture(title, int(width + first.width / 2) + MARGIN, int(height + first.height / 2) + MARGIN, shapes)


def _machine(machine: Machine) -> str:
    assert set(machine.places) == set(machine.moves), "each state has a place"
    boxes = {state: _box((str(state.value),), place) for state, place in machine.places.items()}
    return _picture(machine.title, boxes, _transitions(machine, boxes))


def _transitions(machine: Machine, boxes: Mapping[Any, Box]) -> Iterator[str]:
    for state, following in machine.moves.items():
        for after in sorted(following, key=machine.places.__getitem__):
            if after is not state:
                yield arrow(boxes[state], boxes[after], both=state in machine.moves[after])


def _executors() -> str:
    boxes = {name: _box(lines, place, height=52) for name, (lines, place) in _STEPS.items()}
    arrows = (arrow(boxes[start], boxes[end]) for start, end in _FLOWS)
    return _picture("From a definition to bytes", boxes, arrows)


def layers() -> list[list[str]]:
    """Return the packages of the library, layer by layer from the top, as the import contract lists them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    contract = next(contract for contract in contracts["contracts"] if contract["name"] == LAYERS)
    return [[name.strip(" ()") for name in layer.split("|")] for layer in contract["layers"]]


def _layers() -> str:
    rows = layers()
    width = max(sum(map(_layer_width, row)) + _GAP * (len(row) - 1) for row in rows)
    boxes = [box for number, row in enumerate(rows) for box in _layer(row, number, MARGIN + width / 2)]
    height = len(rows) * _LAYER + 2 * MARGIN - _GAP
    return picture("Packages in layers", width + 2 * MARGIN, height, (shape for box in boxes for shape in box.shapes()))


def _layer_width(name: str) -> int:
    return len(name) * _CHARACTER + _PADDING


def _layer(row: Sequence[str], number: int, centre: float) -> Iterator[Box]:
    """Yield the boxes of a layer, next to each other around the centre."""
    left = centre - (sum(map(_layer_width, row)) + _GAP * (len(row) - 1)) / 2
    for name in row:
        width = _layer_width(name)
        yield Box((name,), left + width / 2, MARGIN + number * _LAYER + (_LAYER - _GAP) / 2, width, _LAYER - _GAP)
        left += width + _GAP


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
