"""Metrics in the text format of Prometheus, as scrapers and the textfile collector of its node exporter read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import click
from attrs import frozen

__all__ = ["Metric", "print_metrics"]

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@frozen
class Metric:
    """A gauge: its name with the unit at the end, what it says, and its values by labels."""

    name: str
    about: str
    values: Sequence[tuple[Mapping[str, object], float]]


def print_metrics(metrics: Iterable[Metric]) -> None:
    """Print metrics as text; one without values is left out."""
    for metric in metrics:
        if metric.values:
            click.echo(f"# HELP {metric.name} {metric.about}")
            click.echo(f"# TYPE {metric.name} gauge")
        for labels, value in metric.values:
            words = ",".join(f'{name}="{str(label).translate(_ESCAPES)}"' for name, label in labels.items())
            click.echo(f"{metric.name}{{{words}}} {value!r}")
