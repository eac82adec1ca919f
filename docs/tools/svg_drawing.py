"""The shapes of the diagrams: boxes in columns and rows, and arrows from box to box, as text of an SVG file.

A diagram has its own background, and the colours of the dark scheme if the page or the system prefers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from math import hypot
from typing import Final, NamedTuple

__all__ = ["MARGIN", "Box", "arrow", "picture"]

MARGIN: Final = 20

_STYLE: Final = (
    "<style>.ground{fill:#fff}.box{fill:#eef3fa;stroke:#456}text{fill:#1b2530}.line{stroke:#555}.head{fill:#555}"
    "@media (prefers-color-scheme:dark){.ground{fill:#1e2129}.box{fill:#2b3445;stroke:#9bb}text{fill:#e6e9ef}"
    ".line{stroke:#aab}.head{fill:#aab}}</style>"
)
_HEAD: Final = (
    '<defs><marker id="end" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
    '<path class="head" d="M0 0 L10 5 L0 10 z"/></marker></defs>'
)
_LINE_HEIGHT: Final = 18
_BETWEEN_OPPOSITES: Final = 7


class Box(NamedTuple):
    """A box around lines of text. Its position is the centre, in pixels."""

    lines: Sequence[str]
    x: float
    y: float
    width: int = 170
    height: int = 40

    def shapes(self) -> Iterator[str]:
        """Yield the rectangle and its centred lines."""
        left, top = self.x - self.width / 2, self.y - self.height / 2
        yield (
            f'<rect class="box" x="{left:.0f}" y="{top:.0f}" width="{self.width}" height="{self.height}" rx="8"/>'
        )  # fmt: skip
        first = self.y + 5 - (len(self.lines) - 1) * _LINE_HEIGHT / 2
        for number, line in enumerate(self.lines):
            yield _text(line, self.x, first + number * _LINE_HEIGHT)


def picture(title: str, width: int, height: int, shapes: Iterable[str]) -> str:
    """Return an SVG file: the shapes on a background."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="14">',
        f"<title>{escape(title)}</title>",
        _STYLE,
        _HEAD,
        f'<rect class="ground" width="{width}" height="{height}" rx="8"/>',
        *shapes,
        "</svg>\n",
    ])  # fmt: skip


def arrow(start: Box, end: Box, *, both: bool = False) -> str:
    """Return an arrow between the edges of two boxes. If ``both``, it leaves room for the opposite arrow."""
    dx, dy = end.x - start.x, end.y - start.y
    aside = _BETWEEN_OPPOSITES / hypot(dx, dy) if both else 0
    inside, outside = (_to_edge(box, dx, dy) for box in (start, end))
    x1, y1 = start.x - dy * aside + dx * inside, start.y + dx * aside + dy * inside
    x2, y2 = end.x - dy * aside - dx * outside, end.y + dx * aside - dy * outside
    return f'<line class="line" x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" marker-end="url(#end)"/>'


def _to_edge(box: Box, dx: float, dy: float) -> float:
    """Return the part of a vector from the centre of a box that lies in the box."""
    return min(box.width / 2 / abs(dx) if dx else 1, box.height / 2 / abs(dy) if dy else 1)


def _text(line: str, x: float, y: float) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle">{escape(line)}</text>'
