"""Draw the pictures of the README and of the home page from real output.

    python docs/tools/screens.py [--check]

``annotated-bytes.svg`` shows the bytes of a response with their fields, from the annotations of ``kafka-msgs decode
--explain``. ``session.svg`` is a terminal session: the commands of ``docs/demo/tour.py``, run. With ``--check`` nothing
is written, and the exit status is 1 if the annotated bytes are out of date; a session runs for seconds, so a test
compares it.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

sys.path.insert(0, str(Path(__file__).parents[2]))
from docs.demo.tour import COLUMNS, RESPONSE, SESSIONS, Session, play
from kafka_msgs import OffsetFetchResponse
from kafka_msgs.cli.render.hex_dump import annotate
from kafka_msgs.codec.reference import Span

__all__ = ["IMAGES", "annotated_bytes", "main", "terminal_session"]

IMAGES: Final = Path(__file__).parents[1] / "images"

_COLOURS: Final = ("#7dd3fc", "#86efac", "#fde047", "#fda4af", "#c4b5fd", "#fdba74", "#5eead4", "#f0abfc")
_BYTES_A_ROW: Final = 17
_CELL: Final = 34
_LINE: Final = 26
_MARGIN: Final = 20
_WIDTH: Final = 2 * _MARGIN + _BYTES_A_ROW * _CELL
_TYPE_AT: Final = 392
_VALUE_AT: Final = 526
_FONT: Final = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
_DURATION: Final = re.compile(r" in [\d.]+s\b")
_BLANK_ENDS: Final = re.compile(r"[ \t]+$", re.MULTILINE)


def annotated_bytes() -> str:
    """Return the picture of a response: a box for each byte in the colour of its field, and the list of fields."""
    data = bytes.fromhex(RESPONSE)
    spans = annotate(OffsetFetchResponse, 2, data).spans
    rows = -(-len(data) // _BYTES_A_ROW)
    list_at = 2 * _MARGIN + 40 + rows * (_CELL + 6)
    height = list_at + len(spans) * _LINE + _MARGIN
    parts = [*_boxes(data, spans), *_fields(spans, list_at)]
    title = "OffsetFetchResponse, version 2, explained byte by byte"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{title}"',
        '     font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">',
        f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#0f172a"/>',
        f'<text x="{_MARGIN}" y="{_MARGIN + 16}" fill="#e2e8f0" font-weight="bold">{title}</text>',
        *parts,
        "</svg>\n",
    ])  # fmt: skip


def _boxes(data: bytes, spans: Sequence[Span]) -> Iterator[str]:
    for number, span in enumerate(spans):
        for at in range(span.start, span.end):
            row, column = divmod(at, _BYTES_A_ROW)
            x, y = _MARGIN + column * _CELL, _MARGIN + 36 + row * (_CELL + 6)
            yield f'<rect x="{x}" y="{y}" width="{_CELL - 3}" height="{_CELL}" rx="3" fill="{_colour(number)}"/>'
            yield f'<text x="{x + 7}" y="{y + 22}" fill="#0f172a">{data[at]:02x}</text>'


def _fields(spans: Sequence[Span], top: int) -> Iterator[str]:
    for number, span in enumerate(spans):
        y = top + number * _LINE
        value = repr(span.value) if isinstance(span.value, str) else str(span.value)
        yield f'<rect x="{_MARGIN}" y="{y - 11}" width="14" height="14" rx="3" fill="{_colour(number)}"/>'
        for x, text in ((_MARGIN + 24, span.path), (_TYPE_AT, span.kind.partition(" of ")[0]), (_VALUE_AT, value)):
            yield f'<text x="{x}" y="{y}" fill="#e2e8f0">{escape(text)}</text>'


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def terminal_session(sessions: Sequence[Session] = SESSIONS[1:]) -> str:
    """Run sessions and return the picture of the terminal; it loads no font from a server."""
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, highlight=False)
    for number, session in enumerate(sessions):
        if number:
            console.print()
        for part in play(session):
            console.print(_without_duration(part) if isinstance(part, Text) else part)
    form = _FONT.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")
    drawn = console.export_svg(title="kafka-msgs", theme=MONOKAI, unique_id="session", code_format=form)
    return _BLANK_ENDS.sub("", drawn)


def _without_duration(output: Text) -> Text:
    """Return output without the duration of a test run, which differs from run to run."""
    found = _DURATION.search(output.plain)
    return output if found is None else Text.assemble(output[: found.start()], output[found.end() :])


def main(arguments: Sequence[str]) -> int:
    """Write the pictures, or with ``--check`` report that the annotated bytes are stale; return the exit status."""
    path = IMAGES / "annotated-bytes.svg"
    if "--check" in arguments:
        stale = path.read_text(encoding="utf-8") != annotated_bytes()
        if stale:
            print(f"{path.name}: not up to date; run python docs/tools/screens.py")
        return int(stale)
    path.write_text(annotated_bytes(), encoding="utf-8")
    (IMAGES / "session.svg").write_text(terminal_session(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
