"""The figures of ``docs/performance.jsonl`` as the tables and the plots of ``docs/performance.md``.

    python -m benchmarks.figures [--check]

With ``--check`` nothing is written, and the exit status is 1 when the tables are not up to date. ``summaries`` has the
figures, and ``plots`` draws.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from benchmarks import plots
from benchmarks.summaries import DOCS, benchmarks, named, summaries

__all__ = ["PAGE", "main", "written"]

PAGE: Final = DOCS / "performance.md"

_REGION: Final = re.compile(r"(<!-- figures: (?P<name>[a-z_ ]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def main(arguments: Sequence[str]) -> int:
    """Bring page and plots up to date, or with ``--check`` report whether the page is; return the exit status."""
    text = PAGE.read_text(encoding="utf-8")
    if "--check" in arguments:
        stale = written(text) != text
        if stale:
            print(f"docs/{PAGE.name}: the tables are not up to date; run python -m benchmarks.figures")
        return stale
    PAGE.write_text(written(text), encoding="utf-8")
    plots.draw()
    return 0


def written(text: str) -> str:
    """Return a page with the tables that it should have: each region names a form and what it is of."""

    def region(match: re.Match[str]) -> str:
        form, *arguments = match["name"].split()
        return f"{match[1]}{_FORMS[form](*arguments)}{match[3]}"

    return _REGION.sub(region, text)


_LANGUAGES: Final = ("Java", "Go", "Rust")


def _languages(caches: str) -> str:
    """Return the table of messages: ours in microseconds, then how many times as long other languages take."""
    found = named("languages")

    def cell(what: str) -> str:
        return found[what].cells()[1].removesuffix(" us").removesuffix("x") if what in found else "-"

    def cells(direction: str, message: str) -> list[str]:
        which = f"{caches}, {direction}, {message}"
        return [cell(f"{which}: kafka-msgs"), *(cell(f"{which}: {language} takes") for language in _LANGUAGES)]

    messages = [what.removesuffix(": bytes") for what in found if what.endswith(": bytes")]
    rows = ([each, cell(f"{each}: bytes"), *cells("decode", each), *cells("encode", each)] for each in messages)
    return _markdown(("message", "bytes", "decode, us", *_LANGUAGES, "encode, us", *_LANGUAGES), rows)


def _missed() -> str:
    """Return the table of figures that miss their targets."""
    missed = (each.cells()[:4] for name in benchmarks() for each in summaries(name) if each.verdict == "missed")
    return _markdown(("what", "median", "range", "target"), missed)


def _list(benchmark: str) -> str:
    """Return the table of a benchmark's figures, one in a row, with their targets where some have one."""
    rows = [each.cells() for each in summaries(benchmark)]
    width = 5 if any(row[3] for row in rows) else 3
    return _markdown(("what", "median", "range", "target", "")[:width], (row[:width] for row in rows))


def _matrix(benchmark: str) -> str:
    """Return a benchmark's medians with a column for each peer: the part of a figure's name after the colon."""
    cells: dict[str, dict[str, str]] = {}
    for each in summaries(benchmark):
        what, _, peer = each.figure.what.partition(": ")
        peer = peer.removeprefix("over that of ").removesuffix("takes").strip()
        cells.setdefault(what, {})[peer] = each.figure.shown(each.figure.value).rstrip("x")
    peers = list(dict.fromkeys(peer for row in cells.values() for peer in row))
    return _markdown(("what", *peers), ((what, *(row.get(peer, "") for peer in peers)) for what, row in cells.items()))


_FORMS: Final[dict[str, Callable[..., str]]] = {
    "languages": _languages,
    "missed": _missed,
    "list": _list,
    "matrix": _matrix,
}


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
