"""The plots of ``docs/performance.md``: one compares languages by message, the other libraries by content.

Both show the time relative to kafka-msgs on a logarithmic scale. This module does not measure, and does not write
tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from benchmarks.results import DOCS, Summary, named

__all__ = ["draw"]

Bars: TypeAlias = Mapping[str, Mapping[str, Summary]]
"""The peers' relative times, by label and peer; a peer may lack a label."""

LIBRARIES: Final = DOCS / "performance.svg"
LANGUAGES: Final = DOCS / "languages.svg"

_COLOURS: Final = {
    "Java": "#c44e52",
    "Go": "#4c72b0",
    "Rust": "#dd8452",
    "kafka-python": "#8a8a8a",
    "kio": "#c44e52",
    "msgspec": "#4c72b0",
}
_LIBRARY_BARS: Final = (
    ("codec_metadata", "decode, {}", ("varied", "fixed", "small", "worst")),
    ("held_trees", "decode and hold, {}", ("varied",)),
    ("codec_metadata", "encode, {}", ("varied",)),
)


def draw() -> None:
    """Write both plots."""
    import matplotlib as mpl

    mpl.use("svg")
    # Text stays text, and the output does not depend on the time or the machine.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "kafka-msgs", "font.size": 9})
    _draw(LIBRARIES, {"": _libraries()}, "MetadataResponse v12: times as long as the C core takes (logarithmic)")
    _draw(
        LANGUAGES,
        {direction: _languages(direction) for direction in ("decode", "encode")},
        "times as long as kafka-msgs takes (logarithmic); left of the line the other language is faster",
    )


def _libraries() -> Bars:
    return {
        label.format(content): {
            peer: named(benchmark)[f"c, {label.format(content)}: {peer} takes"]
            for peer in ("kafka-python", "kio", "msgspec")
        }
        for benchmark, label, contents in _LIBRARY_BARS
        for content in contents
    }


def _languages(direction: str) -> Bars:
    found = named("languages")
    messages = [what.removesuffix(": bytes") for what in found if what.endswith(": bytes")]
    return {
        message: {
            language: found[what]
            for language in ("Java", "Go", "Rust")
            if (what := f"warm, {direction}, {message}: {language} takes") in found
        }
        for message in messages
    }


def _draw(file: Path, panels: Mapping[str, Bars], caption: str) -> None:
    """Write a plot with a panel of horizontal bars for each title."""
    from matplotlib import pyplot as plt
    from matplotlib.patches import Patch
    from matplotlib.ticker import FuncFormatter, LogLocator

    figure, all_axes = plt.subplots(1, len(panels), figsize=(7.5, 5), sharey=True, squeeze=False)
    for axes, (title, bars) in zip(all_axes[0], panels.items(), strict=True):
        peers = list(dict.fromkeys(peer for row in bars.values() for peer in row))
        for place, row in enumerate(bars.values()):
            _draw_row(axes, place, peers, row)
        axes.set_title(title)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
        axes.minorticks_off()
        axes.axvline(1, color="black", linewidth=0.8)
        axes.margins(x=0.25)
    first = all_axes[0][0]
    labels = list(next(iter(panels.values())))
    first.set_yticks(range(len(labels)), labels)
    first.invert_yaxis()
    handles = [Patch(color=_COLOURS[peer], label=peer) for peer in peers]
    figure.legend(handles=handles, loc="lower center", ncols=len(peers), bbox_to_anchor=(0.5, 0.035), frameon=False)
    figure.supxlabel(caption, fontsize=9)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(file, metadata={"Date": None})


def _draw_row(axes: Any, place: int, peers: Sequence[str], row: Mapping[str, Summary]) -> None:
    for peer, summary in row.items():
        height = place + 0.27 * (peers.index(peer) - (len(peers) - 1) / 2)
        value, least, most = summary.figure.value, min(summary.values), max(summary.values)
        errors = [[value - least], [most - value]]
        # A bar starts at 1: its direction shows which side is faster.
        axes.barh(height, value - 1, 0.25, left=1, xerr=errors, color=_COLOURS[peer])
        axes.annotate(
            f"{value:.3g}",
            (most if value >= 1 else least, height),
            (3 if value >= 1 else -3, 0),
            textcoords="offset points",
            ha="left" if value >= 1 else "right",
            va="center",
            fontsize=7,
        )
