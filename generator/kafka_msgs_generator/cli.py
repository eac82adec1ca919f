"""The command: compile any definitions, generate this project's code, import Kafka's definitions.

A thin layer: each command parses options, makes one call, and prints the result. Exit status 0 is success, 1 a bad
definition or (with ``--check``) files that do not match the definitions, 2 wrong arguments. ``comparison_commands``
contains the commands that compare revisions and releases.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click

from kafka_msgs_generator import importer
from kafka_msgs_generator.canonical import canonical_text
from kafka_msgs_generator.comparison_commands import diff_command, evolve_command, history_command
from kafka_msgs_generator.compiler import Binding, CompileOptions, compile_paths
from kafka_msgs_generator.evolution_rules import EVOLUTION_DEVIATIONS, EVOLUTION_RULES
from kafka_msgs_generator.glossary import gaps, load_glossary, number_of_fields
from kafka_msgs_generator.ir import UNDOCUMENTED
from kafka_msgs_generator.notation import read_notation
from kafka_msgs_generator.output import Changes, apply, plan, summary
from kafka_msgs_generator.package_files import message_package
from kafka_msgs_generator.plain_errors import plain_errors
from kafka_msgs_generator.project import project_changes
from kafka_msgs_generator.rules import DEVIATIONS, RULES

__all__ = ["command"]

_PATIENCE: Final = 2.0
"""The seconds before a long run shows its progress."""

_SHOWN_PLACES: Final = 3
"""The number of files that an import lists for each reading of older definitions."""

_PACKAGE_DOC: Final = "Compiled messages; importing one name loads that message's module alone."
_BINDING = re.compile(r"(?:(?P<files>[^:=]+):)?(?P<word>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)")
_DIRECTORY = click.Path(file_okay=False, path_type=Path)
_EXISTING = click.Path(exists=True, path_type=Path)


class _Group(click.Group):
    """A group whose help shows the full first sentence of each command; click itself truncates it to one line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(limit=1000)) for name, command in found if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kafka-msgs")
def command() -> None:
    """Compile Kafka message definitions to typed Python classes."""


@command.command("compile")
@click.argument("definitions", nargs=-1, required=True, type=_EXISTING)
@click.option("--out", required=True, type=_DIRECTORY, help="The package directory to write.")
@click.option("--check", is_flag=True, help="Write nothing; fail when the package is not up to date.")
@click.option("--partial", is_flag=True, help="Accept a request without its response, and the like.")
@click.option("--lenient", is_flag=True, help="Accept what pages have that JSON has not: see the tutorial.")
@click.option("--bind", "binds", multiple=True, metavar="[FILES:]WORD=VALUE", help="The value of a placeholder word.")
@click.option("--glossary", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Documentation to use.")
def compile_command(
    definitions: tuple[Path, ...],
    out: Path,
    check: bool,
    partial: bool,
    lenient: bool,
    binds: tuple[str, ...],
    glossary: Path | None,
) -> None:
    """Compile DEFINITIONS, files or directories of JSON with all below them, into one package.

    A placeholder word such as TBD needs --lenient and a --bind; FILES, a pattern such as 'Heartbeat*', limits the
    binding to the definitions whose file name matches without its suffix.
    """
    if binds and not lenient:
        raise click.UsageError("--bind needs --lenient")
    bindings = [_binding(text) for text in binds]
    with plain_errors():
        reading = CompileOptions(lenient, bindings, load_glossary(glossary) if glossary else UNDOCUMENTED)
        compiled = compile_paths(definitions, reading, partial=partial, progress=_Ticker())
        _finish([plan(out, message_package(compiled, _PACKAGE_DOC))], check)


def _binding(text: str) -> Binding:
    match = _BINDING.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} does not read [FILES:]WORD=VALUE", param_hint="--bind")
    return Binding(match["word"], match["value"], match["files"] or "*")


@command.command()
@click.option("--check", is_flag=True, help="Write nothing; fail when the code is not up to date.")
@click.option("--definitions", default="message_defs", show_default=True, type=_EXISTING)
@click.option("--package", default="kafka_msgs", show_default=True, type=_DIRECTORY)
def generate(check: bool, definitions: Path, package: Path) -> None:
    """Generate this project's own messages, drafts and error codes, and the header of its C core."""
    with plain_errors():
        _finish(project_changes(definitions, package, _Ticker()), check)


@command.command("import")
@click.option("--release", help="The Kafka release to fetch through Maven, such as 4.4.0.")
@click.option(
    "--from", "path", type=_EXISTING, help="A jar, a directory of jars or of definitions, or a checkout of Kafka."
)
@click.option("--origin", help="What to call the definitions of a directory.")
@click.option("--into", default="message_defs", show_default=True, type=_DIRECTORY)
def import_command(release: str | None, path: Path | None, origin: str | None, into: Path) -> None:
    """Bring the definitions of a Kafka release, or those at a path, into a directory."""
    if (release is None) == (path is None):
        raise click.UsageError("give either --release or --from")
    with plain_errors():
        if path is not None:
            report = importer.import_path(path, into, origin)
        else:
            click.echo(f"fetching Kafka {release} through Maven", err=True)
            report = importer.import_release(str(release), into)
    for line in _import_lines(report):
        click.echo(line)


def _import_lines(report: importer.ImportReport) -> Iterator[str]:
    for origin, number in report.counts.items():
        yield f"{origin}: {number} definitions"
    for origin, kept in report.kept.items():
        yield f"{origin}: not in this release" + (f"; the definitions of {kept} stay" if kept else "")
    yield "error codes: " + ("not in this source" if report.errors is None else str(report.errors))
    for what in ("added", "changed", "removed"):
        for definition in getattr(report, what):
            yield f"{what} {definition}"
    for reading, places in report.readings.items():
        more = f" and {len(places) - _SHOWN_PLACES} more" if len(places) > _SHOWN_PLACES else ""
        yield f"{reading}: {', '.join(places[:_SHOWN_PLACES])}{more}"


for _command in (evolve_command, diff_command, history_command):
    command.add_command(_command)


@command.command()
@click.argument("page", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--message", help="Only the definition of this message, such as OffsetFetchRequest.")
@click.option("--version", type=int, help="Only the definitions at this version.")
def notation(page: Path, message: str | None, version: int | None) -> None:
    """Print as JSON the definitions that PAGE, a text file, shows in the notation of Kafka's documentation.

    The notation has no api keys and no defaults, and older pages do not show which arrays may be null: add them.
    """
    with plain_errors():
        read = read_notation(page.read_text(encoding="utf-8"), str(page))
    found = [each for each in read if message in (None, each["name"]) and version in (None, int(each["validVersions"]))]
    if not found:
        raise click.ClickException("the page shows no such message")
    for definition in found:
        click.echo(canonical_text(definition), nl=False)


@command.command()
@click.option("--missing", is_flag=True, help="List what has no entry, with the facts of its definition.")
@click.option("--definitions", default="message_defs", show_default=True, type=_EXISTING)
def glossary(missing: bool, definitions: Path) -> None:
    """Count how many messages and fields the glossary of this project documents."""
    with plain_errors():
        entries = load_glossary(definitions / "glossary")
        read = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(definitions.glob("*/*/*.json"))]
    lacking = [gap for definition in read for gap in gaps(entries, definition)]
    if missing:
        for gap in lacking:
            click.echo(f"{gap.message}: {gap.key}" + (f" ({gap.facts})" if gap.facts else ""))
    messages = sum(gap.key == "message" for gap in lacking)
    fields = sum(map(number_of_fields, read))
    click.echo(f"{len(read) - messages} of {len(read)} messages are documented")
    click.echo(f"{fields - len(lacking) + messages} of {fields} fields are documented")


@command.command()
def rules() -> None:
    """List the rules of definitions and of their evolution, and the differences from Kafka's behaviour."""
    for number, rule in {**RULES, **EVOLUTION_RULES}.items():
        click.echo(f"{number:<4} {rule}")
        if deviation := DEVIATIONS.get(number) or EVOLUTION_DEVIATIONS.get(number):
            click.echo(f"     ({deviation})")


def _finish(planned: Iterable[Changes], check: bool) -> None:
    """Apply changes, or with ``check`` list them and fail when there are any."""
    stale = 0
    for changes in planned:
        if check:
            for line in summary(changes):
                click.echo(f"{changes.root}: {line}")
            stale += bool(changes)
        else:
            apply(changes)
            click.echo(f"{changes.root}: {len(changes.written)} files written, {len(changes.removed)} removed")
    if check and not stale:
        click.echo("the generated files are up to date")
    if stale:
        raise click.ClickException("the generated files do not match the definitions; generate them again")


class _Ticker:
    """Prints the progress of a run that takes longer than ``_PATIENCE``."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _PATIENCE

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _PATIENCE
            click.echo(f"compiled {done} of {total} definitions", err=True)
