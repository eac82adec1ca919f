"""Tables and plots of ``docs/performance.md`` and ``README.md``, generated from ``docs/performance.jsonl``.

    python -m benchmarks.render_docs [--check]

``--check`` writes nothing and exits with status 1 if a table is out of date. ``summaries`` reads the figures, and
``plots`` draws.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from benchmarks import plots
from benchmarks.results import DOCS, benchmarks, named, summaries

__all__ = ["PAGES", "main", "written"]

PAGES: Final = (DOCS / "performance.md", DOCS / "compare.md", DOCS.parent / "README.md")

_REGION: Final = re.compile(r"(<!-- figures: (?P<name>[a-z_ ]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def main(arguments: Sequence[str]) -> int:
    """Update pages and plots, or report stale pages with ``--check``; return the exit status."""
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    stale = [page for page, text in texts.items() if written(text) != text]
    if "--check" in arguments:
        for page in stale:
            print(f"{page.name}: the tables are not up to date; run python -m benchmarks.render_docs")
        return bool(stale)
    for page in stale:
        page.write_text(written(texts[page]), encoding="utf-8")
    plots.draw()
    return 0


def written(text: str) -> str:
    """Return a page with its up-to-date tables: each region names a form and its arguments."""

    def region(match: re.Match[str]) -> str:
        form, *arguments = match["name"].split()
        return f"{match[1]}{_FORMS[form](*arguments)}{match[3]}"

    return _REGION.sub(region, text)


_LANGUAGES: Final = ("Java", "Go", "Rust")


def _languages(caches: str) -> str:
    """Return the table of messages: kafka-msgs' time in microseconds, then the relative times of other languages."""
    found = named("languages")

    def cell(what: str) -> str:
        return found[what].cells()[1].removesuffix(" us").removesuffix("x") if what in found else "-"

    def cells(direction: str, message: str) -> list[str]:
        which = f"{caches}, {direction}, {message}"
        return [cell(f"{which}: kafka-msgs"), *(cell(f"{which}: {language} takes") for language in _LANGUAGES)]

    messages = [what.removesuffix(": bytes") for what in found if what.endswith(": bytes")]
    rows = ([each, cell(f"{each}: bytes"), *cells("decode", each), *cells("encode", each)] for each in messages)
    return _markdown(("message", "bytes", "decode, us", *_LANGUAGES, "encode, us", *_LANGUAGES), rows)


_PEERS: Final = ("kafka-python", "aiokafka", "confluent-kafka", "kio", "Kafka's Java")
_COMPARED: Final = (
    (
        "decode a 55 KB message",
        ("codec_metadata", "c, decode, varied: kafka-python takes"),
        None,
        None,
        ("codec_metadata", "c, decode, varied: kio takes"),
        ("languages", "warm, decode, MetadataResponse.12: Java takes"),
    ),
    (
        "encode it",
        ("codec_metadata", "c, encode, varied: kafka-python takes"),
        None,
        None,
        ("codec_metadata", "c, encode, varied: kio takes"),
        ("languages", "warm, encode, MetadataResponse.12: Java takes"),
    ),
    (
        "read a batch of records",
        ("records", "c, list, plain: kafka-python takes"),
        ("records", "c, list, plain: aiokafka takes"),
        None,
        None,
        None,
    ),
    (
        "produce a million records",
        ("produce", "blocking: kafka-python takes"),
        ("produce", "blocking: aiokafka takes"),
        ("produce", "blocking: confluent-kafka takes"),
        None,
        None,
    ),
    (
        "consume a million records",
        ("consume", "kafka-msgs against kafka-python"),
        ("consume", "kafka-msgs against aiokafka"),
        ("consume", "kafka-msgs against confluent-kafka, tuned"),
        None,
        None,
    ),
)
"""Rows of the table that compares libraries: the operation, and for each peer a benchmark and its figure."""


def _compare() -> str:
    """Return the table of operations by library."""

    def cell(figure: tuple[str, str] | None) -> str:
        return _faster(named(figure[0])[figure[1]].cells()[1]) if figure else ""

    rows = ((operation, *map(cell, figures)) for operation, *figures in _COMPARED)
    return _markdown(("kafka-msgs compared with", *_PEERS), rows)


def _faster(ratio: str) -> str:
    """Return a ratio such as ``1.8x`` as words: how many times kafka-msgs is faster or slower."""
    times = float(ratio.removesuffix("x"))
    return f"{times:.3g}× faster" if times >= 1 else f"{1 / times:.2g}× slower"


def _missed() -> str:
    """Return the table of figures that miss their targets."""
    missed = (each.cells()[:4] for name in benchmarks() for each in summaries(name) if each.verdict == "missed")
    return _markdown(("what", "median", "range", "target"), missed)


def _list(benchmark: str) -> str:
    """Return the table of a benchmark's figures, one per row, with targets if any figure has one."""
    rows = [each.cells() for each in summaries(benchmark)]
    width = 5 if any(row[3] for row in rows) else 3
    return _markdown(("what", "median", "range", "target", "result")[:width], (row[:width] for row in rows))


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
    "compare": _compare,
    "languages": _languages,
    "missed": _missed,
    "list": _list,
    "matrix": _matrix,
}


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
