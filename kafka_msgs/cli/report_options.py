"""Reports of commands: their location, and the facts of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import evolve

from kafka_msgs.cli.render.output import echo
from kafka_msgs.errors import LogFileError
from kafka_msgs.filesystems.location import mask_uri

if TYPE_CHECKING:
    from kafka_msgs.report import Report

__all__ = ["input_facts", "report_option", "save_report"]

F = TypeVar("F", bound=Callable[..., Any])


def report_option(command: F) -> F:
    """Add ``--report`` to a command, which receives the directory as ``report_dir``, or None."""
    option = click.option(
        "--report",
        "report_dir",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Also write a report to this directory: HTML, JSON and Prometheus metrics.",
    )
    return option(command)


def save_report(report: Report, directory: Path, inputs: Sequence[Path]) -> None:
    """Write a report with the facts of its inputs, and name its files on standard error."""
    from kafka_msgs.report import write_report
    from kafka_msgs.report.facts import facts_of_now

    directory.mkdir(parents=True, exist_ok=True)
    facts = {**input_facts(list(map(str, inputs))), **facts_of_now()}
    for path in write_report(evolve(report, facts=facts), directory):
        echo(path, err=True)


def input_facts(inputs: Sequence[str]) -> dict[str, str]:
    """Return the facts of inputs: their paths, and the cluster ids in their ``meta.properties``."""
    found = {"input": ", ".join(map(mask_uri, inputs))}
    clusters = {each for path in inputs if (each := _cluster_id(Path(path)))}
    return {**found, "cluster": ", ".join(sorted(clusters))} if clusters else found


def _cluster_id(directory: Path) -> str | None:
    from kafka_msgs.log.small_files import read_meta_properties

    for place in (directory, directory.parent):
        try:
            return read_meta_properties(place / "meta.properties").cluster_id
        except (LogFileError, FileNotFoundError, NotADirectoryError):
            continue
    return None
