"""The shapes of a plot, in pixels, as input for the template ``plot.svg.j2``.

Prepares texts for plots: removal of characters that XML does not allow, and approximate text widths.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias
from unicodedata import east_asian_width

from attrs import define, field, frozen

__all__ = ["Anchor", "Bar", "Dot", "Drawing", "Polyline", "Rule", "Text", "plain", "shortened", "width_of"]

_LETTER: Final = 6.8
"""The approximate width of a character. East Asian characters are twice as wide."""
_LONGEST: Final = 40
"""The maximum number of displayed characters of a label."""
_NOT_IN_XML: Final = dict.fromkeys({*range(32), 0xFFFE, 0xFFFF} - set(map(ord, "\t\n\r")), "\ufffd")
Anchor: TypeAlias = Literal["start", "middle", "end"]


@frozen
class Text:
    """A text whose start, middle or end is at a position; ``full`` is the complete text if it is shortened."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    full: str | None = None
    upright: bool = False
    """Whether it is rotated to read upwards."""


@frozen
class Bar:
    """A filled rectangle with an optional tooltip."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    about: str | None = None


@frozen
class Dot:
    """A point of a line, with its tooltip."""

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
    """Return a text in one line, without the characters that XML does not allow."""
    return " ".join(str(text).translate(_NOT_IN_XML).split())


def shortened(text: str) -> str:
    """Return the start of a long text."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\u2026"


def width_of(text: str) -> float:
    """Return the approximate width of a text in pixels."""
    return _LETTER * sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
