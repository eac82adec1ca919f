"""The figures of ``docs/performance.jsonl`` as the tables and the plot of ``docs/performance.md``.

    python -m benchmarks.figures [--check]

Each line of that file is one run of a benchmark (``python -m benchmarks --save``); a figure on the page is the median
of its runs, with the least and the greatest. With ``--check`` nothing is written, and the exit status is 1 when the
tables are not up to date. Owns nothing of how figures come about.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from attrs import frozen

from benchmarks.report import Figure

__all__ = ["MEASURED", "PAGE", "PLOT", "Summary", "draw", "main", "summaries", "written"]

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
MEASURED: Final = DOCS / "performance.jsonl"
PAGE: Final = DOCS / "performance.md"
PLOT: Final = DOCS / "performance.svg"

_REGION: Final = re.compile(r"(<!-- figures: (?P<name>[a-z_ ]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def main(arguments: Sequence[str]) -> int:
    """Bring page and plot up to date, or with ``--check`` report whether the page is; return the exit status."""
    text = PAGE.read_text(encoding="utf-8")
    if "--check" in arguments:
        stale = written(text) != text
        if stale:
            print(f"docs/{PAGE.name}: the tables are not up to date; run python -m benchmarks.figures")
        return stale
    PAGE.write_text(written(text), encoding="utf-8")
    draw()
    return 0


def written(text: str) -> str:
    """Return a page with the tables that it should have: each region names a form and, mostly, a benchmark."""

    def region(match: re.Match[str]) -> str:
        form, *benchmarks = match["name"].split()
        return f"{match[1]}{_FORMS[form](*benchmarks)}{match[3]}"

    return _REGION.sub(region, text)


_VERDICTS: Final = {"MISSED": "missed", "stretch": "exceeded"}


@frozen
class Summary:
    """One figure over several runs."""

    figure: Figure
    values: tuple[float, ...]

    def cells(self) -> tuple[str, ...]:
        """Return what was measured, the median, the range, the target and what became of it."""
        middle, target = self.figure, ""
        if middle.target is not None:
            target = f"{'at most' if middle.at_most else 'at least'} {middle.shown(middle.target)}"
        spread = f"{middle.shown(min(self.values))} to {middle.shown(max(self.values))}" if len(self.values) > 1 else ""
        return middle.what, middle.shown(middle.value), spread, target, _VERDICTS.get(middle.verdict, middle.verdict)


def summaries(benchmark: str) -> list[Summary]:
    """Return the figures of a benchmark in the order in which it prints them."""
    runs: dict[str, list[Figure]] = {}
    for line in MEASURED.read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        for row in run["figures"] if run["benchmark"] == benchmark else ():
            runs.setdefault(row["what"], []).append(Figure(**row))
    return [_summary(figures) for figures in runs.values()]


def _summary(figures: list[Figure]) -> Summary:
    values = tuple(figure.value for figure in figures)
    last = figures[-1]
    middle = Figure(last.what, median(values), last.unit, last.target, last.stretch, last.at_most)
    return Summary(middle, values)


def _targets() -> str:
    """Return the table of all figures that have targets."""
    benchmarks = dict.fromkeys(json.loads(line)["benchmark"] for line in MEASURED.read_text("utf-8").splitlines())
    judged = (each.cells() for name in benchmarks for each in summaries(name) if each.figure.target is not None)
    return _markdown(("what", "median", "range", "target", ""), judged)


def _list(benchmark: str) -> str:
    """Return the table of a benchmark's figures, one in a row."""
    return _markdown(("what", "median", "range"), (each.cells()[:3] for each in summaries(benchmark)))


def _matrix(benchmark: str) -> str:
    """Return a benchmark's medians with a column for each peer: the part of a figure's name after the colon."""
    cells: dict[str, dict[str, str]] = {}
    for each in summaries(benchmark):
        what, _, peer = each.figure.what.partition(": ")
        peer = peer.removeprefix("over that of ").removesuffix("takes").strip()
        cells.setdefault(what, {})[peer] = each.figure.shown(each.figure.value).rstrip("x")
    peers = list(dict.fromkeys(peer for row in cells.values() for peer in row))
    return _markdown(("what", *peers), ((what, *(row.get(peer, "") for peer in peers)) for what, row in cells.items()))


_FORMS: Final[dict[str, Callable[..., str]]] = {"targets": _targets, "list": _list, "matrix": _matrix}


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *rows))


_BARS: Final = (
    ("codec_metadata", "decode, {}", ("varied", "fixed", "small", "worst")),
    ("held_trees", "decode and hold, {}", ("varied",)),
    ("codec_metadata", "encode, {}", ("varied",)),
)
_PEERS: Final = {"kafka-python": "#8a8a8a", "kio": "#c44e52", "msgspec": "#4c72b0"}
"""The peers drawn, with their colours."""

_TICKS: Final = (1, 2, 5, 10, 20, 50, 100, 200)


def _rows() -> Iterator[tuple[str, str, Summary]]:
    """Yield the label, the peer and the figure of each bar, from the top."""
    for benchmark, label, contents in _BARS:
        found = {each.figure.what: each for each in summaries(benchmark)}
        for content in contents:
            for peer in _PEERS:
                what = label.format(content)
                yield what, peer, found[f"c, {what}: {peer} takes"]


def draw() -> None:
    """Write the plot: how many times as long as the C core each peer takes, on a logarithmic scale."""
    import matplotlib as mpl

    mpl.use("svg")
    # Text stays text, and nothing depends on when or where the plot was drawn.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "kafka-msgs", "font.size": 9})
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 5))
    labels = list(dict.fromkeys(label for label, _, _ in _rows()))
    for label, peer, summary in _rows():
        place = labels.index(label) + 0.27 * (list(_PEERS).index(peer) - 1)
        value = summary.figure.value
        errors = [[value - min(summary.values)], [max(summary.values) - value]]
        axes.barh(place, value, 0.25, xerr=errors, color=_PEERS[peer], label=peer if label == labels[0] else None)
        axes.text(max(summary.values) * 1.06, place, f"{value:.3g}", va="center", fontsize=8)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xticks(_TICKS, map(str, _TICKS))
    axes.minorticks_off()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlim(0.8, 500)
    axes.set_xlabel("MetadataResponse v12: times as long as the C core takes (logarithmic)")
    axes.legend(loc="upper right")
    figure.tight_layout()
    figure.savefig(PLOT, metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
