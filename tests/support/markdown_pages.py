"""Markdown pages as data: fenced blocks, headings and links.

Parses only the Markdown that the documentation tests need. A block's first word after the fence is its language;
further words of the form ``key=value`` (or a bare ``key``) are test options:

* ``python``: a session with ``>>>`` runs as a doctest, other text is executed; all blocks of a page share their names.
* ``console``: lines that start with ``$`` are run, the other lines are the output; ``fails`` expects exit status 1.
* any language with ``file=NAME``: the text is written to that file before the following blocks run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from attrs import frozen

__all__ = ["ROOT", "Block", "anchors", "blocks", "code_spans", "links", "pages"]

ROOT: Final = Path(__file__).parents[2]

_FENCE = re.compile(r"```(?P<info>.*)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"`(?P<text>[^`]+)`")
_HEADING = re.compile(r"#{1,6} (?P<text>.+)")
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


@frozen
class Block:
    """A fenced block; ``line`` (from 1) is where its text starts."""

    line: int
    language: str
    options: Mapping[str, str]
    text: str


def pages() -> list[Path]:
    """Return every Markdown page meant for readers."""
    found = (
        page for folder in ("docs", "benchmarks", "message_defs", "tests") for page in (ROOT / folder).rglob("*.md")
    )
    return sorted([*ROOT.glob("*.md"), *(page for page in found if "target" not in page.parts)])


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = None
    for number, line in enumerate(lines):
        fence = _FENCE.fullmatch(line)
        if fence is None:
            continue
        if start is None:
            start, info = number + 1, fence["info"].split() or [""]
            continue
        options = dict(word.partition("=")[::2] for word in info[1:])
        yield Block(start + 1, info[0], options, "".join(f"{text}\n" for text in lines[start:number]))
        start = None
    assert start is None, f"{page}: the block at line {start} does not end"


def links(page: Path) -> list[str]:
    """Return the targets of a page's links, in order."""
    return [match["target"] for match in _LINK.finditer(_prose(page))]


def code_spans(page: Path) -> list[str]:
    """Return the inline code of a page's sentences and tables, in order."""
    return [" ".join(match["text"].split()) for match in _CODE.finditer(_prose(page))]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = (_HEADING.fullmatch(line) for line in _prose(page).splitlines())
    return {_anchor(heading["text"]) for heading in headings if heading is not None}


def _anchor(heading: str) -> str:
    return _NOT_IN_ANCHORS.sub("", heading.lower()).replace(" ", "-")


def _prose(page: Path) -> str:
    """Return a page's text without its fenced blocks."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
