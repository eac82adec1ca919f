"""``kafka-msgs view``: the exchanges of recordings and captures as one page for a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_msgs.capture.pcap import open_capture
from kafka_msgs.cli.capture_options import ports_options, read_items
from kafka_msgs.cli.page_files import new_page
from kafka_msgs.cli.recording_options import redact_option
from kafka_msgs.cli.registry_options import payload_schemas, registry_option
from kafka_msgs.cli.render.output import echo
from kafka_msgs.cli.render.progress import progress_over

if TYPE_CHECKING:
    from kafka_msgs.capture.exchange_builder import Item
    from kafka_msgs.redaction import RedactKind

__all__ = ["view_command"]


@click.command("view")
@click.argument(
    "paths", metavar="FILES...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "-o",
    "--output",
    "page",
    metavar="PAGE",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page to write, such as traffic.html.",
)
@ports_options
@click.option("--max-exchanges", type=click.IntRange(1), default=200_000, show_default=True, help="Limit of the page.")
@redact_option
@registry_option
def view_command(
    paths: tuple[Path, ...],
    page: Path,
    ports: tuple[int, ...],
    any_port: bool,
    max_exchanges: int,
    kinds: frozenset[RedactKind],
    registry: str | None,
) -> None:
    """Write PAGE, one HTML file that shows the exchanges of recordings and captures.

    The page lists requests with their responses, filters them, and shows each field next to its bytes. It contains all
    data and loads nothing. Passwords and tokens are always hidden.

    Example: kafka-msgs view traffic.jsonl -o traffic.html
    """
    from kafka_msgs.redaction import RedactKind, Redactor
    from kafka_msgs.viewer import PageLimits, write_page

    redactor = Redactor(kinds | {RedactKind.SASL})
    items = map(redactor.redact, _items(paths, None if any_port else ports))
    title = ", ".join(path.name for path in paths)
    schemas, limits = payload_schemas(registry), PageLimits(exchanges=max_exchanges)
    with new_page(page) as file:
        count, omitted = write_page(items, file, title=title, limits=limits, schemas=schemas)
    more = f", {omitted} more exceed the limits of the page" if omitted else ""
    echo(f"{page}: {count} exchanges and faults{more}", err=True)


def _items(paths: Sequence[Path], ports: Sequence[int] | None) -> Iterator[Item]:
    with progress_over(paths) as progress:
        for path in paths:
            progress.file(path)
            with open_capture(path) as file:
                for item in read_items(file, ports):
                    progress.read(file.tell())
                    yield item
