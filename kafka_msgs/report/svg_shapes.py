"""The shapes that a plot consists of, in pixels, as the template ``plot.svg.j2`` takes them.

Owns what every text in a plot needs: letters that XML can have, and about how wide they are.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias
from unicodedata import east_asian_width

from attrs import define, field, frozen

__all__ = ["Anchor", "Bar", "Dot", "Drawing", "Polyline", "Rule", "Text", "plain", "shortened", "width_of"]

_LETTER: Final = 6.8
"""How wide a letter is, about; those of East Asian scripts are twice as wide."""
_LONGEST: Final = 40
"""How many letters of a label are shown."""
_NOT_IN_XML: Final = dict.fromkeys({*range(32), 0xFFFE, 0xFFFF} - set(map(ord, "\t\n\r")), "\ufffd")
Anchor: TypeAlias = Literal["start", "middle", "end"]


@frozen
class Text:
    """A text whose start, middle or end is at a place; ``full`` is all of it, where it is shortened."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    full: str | None = None
    upright: bool = False
    """Whether it is read from below."""


@frozen
class Bar:
    """A filled rectangle, and what is shown to who points at it."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    about: str | None = None


@frozen
class Dot:
    """A point of a line, and what is shown to who points at it."""

    x: float
    y: float
    colour: str
    about: str


@frozen
class Polyline:
    """A line through points, each as ``x,y``."""

    points: tuple[str, ...]
    colour: str


@frozen
class Rule:
    """A thin straight line: of the grid, or of an axis."""

    x: float
    y: float
    to_x: float
    to_y: float
    strong: bool = False


@define
class Drawing:
    """The shapes of a plot. They are drawn in the order of these lists."""

    title: str
    width: float
    height: float = 0
    rules: list[Rule] = field(factory=list)
    bars: list[Bar] = field(factory=list)
    paths: list[Polyline] = field(factory=list)
    dots: list[Dot] = field(factory=list)
    texts: list[Text] = field(factory=list)


def plain(text: object) -> str:
    """Return a text without the letters that XML cannot have, in one line."""
    return " ".join(str(text).translate(_NOT_IN_XML).split())


def shortened(text: str) -> str:
    """Return the start of a long text."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\u2026"


def width_of(text: str) -> float:
    """Return about how many pixels a text takes."""
    return _LETTER * sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
