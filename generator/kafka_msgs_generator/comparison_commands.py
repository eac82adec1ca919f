"""The commands that compare revisions and releases: ``evolve``, ``diff`` and ``history``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from kafka_msgs_generator.atomic_write import write_atomically
from kafka_msgs_generator.definition_sets import read_definition_set
from kafka_msgs_generator.diff_output import DIFF_FORMATS, render_diff
from kafka_msgs_generator.evolution import check_evolution
from kafka_msgs_generator.evolution_output import EVOLUTION_FORMATS, render_changes
from kafka_msgs_generator.history import (
    History,
    first_releases,
    history_json,
    history_lines,
    history_text,
    read_history,
    record,
)
from kafka_msgs_generator.plain_errors import plain_errors
from kafka_msgs_generator.release_diff import diff_imports, imported_release, read_source

__all__ = ["diff_command", "evolve_command", "history_command"]

_OUT = click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="The file to write, in place of printing."
)
_DEFINITIONS = click.Path(exists=True, path_type=Path)


@click.command("evolve")
@click.argument("old")
@click.argument("new")
@click.option("--format", "output_format", type=click.Choice(EVOLUTION_FORMATS), default="text", show_default=True)
@click.option("--breaking", is_flag=True, help="Show only incompatible changes.")
@_OUT
def evolve_command(old: str, new: str, output_format: str, breaking: bool, out: Path | None) -> None:
    """Check whether the definitions in NEW are compatible with the ones in OLD, by Kafka's rules.

    OLD and NEW are files, directories, jars, or releases such as 4.3.1, fetched through Maven. The exit status is 1 if
    a change is incompatible. The format github prints annotations for GitHub Actions.
    """
    with plain_errors():
        sets = read_definition_set(old), read_definition_set(new)
        changes = list(check_evolution(*sets))
        shown = [change for change in changes if not (breaking and change.compatible)]
        _write(render_changes(shown, output_format, old, new), out)
    if not all(change.compatible for change in changes):
        raise click.exceptions.Exit(1)


@click.command("diff")
@click.argument("old")
@click.argument("new")
@click.option("--format", "output_format", type=click.Choice(DIFF_FORMATS), default="text", show_default=True)
@_OUT
def diff_command(old: str, new: str, output_format: str, out: Path | None) -> None:
    """Show the changes of messages and error codes from OLD to NEW, and whether shared versions keep their bytes.

    OLD and NEW are releases such as 4.3.1, fetched through Maven, jars, or directories written by import.
    """
    with plain_errors():
        diff = diff_imports(read_source(old), read_source(new))
        since = first_releases(read_history(Path(new))) if Path(new).is_dir() else {}
        _write(render_diff(diff, output_format, since), out)


def _write(text: str, out: Path | None) -> None:
    if out is None:
        click.echo(text, nl=False)
    else:
        write_atomically(out, text)


@click.command("history")
@click.argument("names", nargs=-1, metavar="MESSAGE")
@click.option("--definitions", default="message_defs", show_default=True, type=_DEFINITIONS)
@click.option("--record", "releases", multiple=True, metavar="RELEASE", help="Fetch a newer release and add it first.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with every version and field.")
def history_command(names: tuple[str, ...], definitions: Path, releases: tuple[str, ...], as_json: bool) -> None:
    """Show since which release of Kafka a MESSAGE, its versions and its fields exist, and when they were removed.

    MESSAGE is a name such as OffsetFetchRequest, or without its ending, for the request and the response.
    """
    with plain_errors():
        found = read_history(definitions)
        for release in releases:
            click.echo(f"fetching Kafka {release} through Maven", err=True)
            record(found, release, imported_release(release))
        if releases:
            write_atomically(definitions / "history.json", history_text(found))
    matching = [each for name in names for each in _matching(found, name)]
    if as_json:
        click.echo(history_json(found, matching))
        return
    for each in matching:
        click.echo("\n".join(history_lines(found, each)))


def _matching(history: History, name: str) -> Iterator[str]:
    matching = [each for each in history.versions if each in (name, f"{name}Request", f"{name}Response")]
    if not matching:
        raise click.ClickException(f"the history has no message {name!r}")
    yield from matching
