"""``kafka-msgs capture``: requests and responses from captured network traffic."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from kafka_msgs.analysis.capture_report import captures_report
from kafka_msgs.analysis.capture_stats import QUANTILES, UNDECODED, CaptureStats, CaptureTables, capture_row
from kafka_msgs.capture import CaptureFault
from kafka_msgs.capture.pcap import open_capture
from kafka_msgs.cli.capture_options import ports_options, read_items
from kafka_msgs.cli.output_options import rows_option
from kafka_msgs.cli.render.exchanges import item_row
from kafka_msgs.cli.render.progress import progress_over
from kafka_msgs.cli.render.rows import Named, Row, print_rows
from kafka_msgs.cli.report_options import report_option, save_report
from kafka_msgs.report.sections.table_building import grouped

__all__ = ["capture_command"]

_API: Final = ("apiKey", "version")


@click.command("capture")
@click.argument(
    "paths", metavar="FILES...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@ports_options
@click.option("--bodies", is_flag=True, help="Include the decoded requests and responses.")
@click.option("--summary", "only_summary", is_flag=True, help="Print only faults and the statistics of each API.")
@report_option
@rows_option
@click.pass_context
def capture_command(
    ctx: click.Context,
    paths: tuple[Path, ...],
    ports: tuple[int, ...],
    any_port: bool,
    bodies: bool,
    only_summary: bool,
    report_dir: Path | None,
    output_format: str,
) -> None:
    """Print the requests and responses in pcap and pcapng files, and in recordings of tap: latency and errors.

    Statistics for each API and version follow, and a summary. Missing packets, corruption and other protocols are
    reported at their position; the exit status is then 1.

    Example: kafka-msgs capture traffic.pcapng --summary
    """
    rows = _Rows(None if any_port else ports, exchanges=not only_summary, bodies=bodies)
    print_rows(output_format, rows.of(paths), lambda: _summary(rows.total.finish()))
    found = rows.total.finish()
    if report_dir is not None:
        save_report(captures_report(found), report_dir, paths)
    if found.damaged:
        ctx.exit(1)


class _Rows:
    """The rows of captures; ``total`` counts the items of all captures."""

    def __init__(self, ports: Collection[int] | None, *, exchanges: bool, bodies: bool) -> None:
        self.total = CaptureStats()
        self._ports = ports
        self._exchanges = exchanges
        self._bodies = bodies

    def of(self, paths: Sequence[Path]) -> Iterator[Named]:
        with progress_over(paths) as progress:
            for path in paths:
                progress.file(path)
                for row in self._of_file(path, progress.read):
                    yield path, row

    def _of_file(self, path: Path, progress: Callable[[int], None]) -> Iterator[Row]:
        stats = CaptureStats()
        with open_capture(path) as file:
            for item in read_items(file, self._ports):
                progress(file.tell())
                stats.add(capture_row(str(path), item))
                if isinstance(item, CaptureFault) or self._exchanges:
                    yield item_row(item, bodies=self._bodies)
        yield from (Row("api", each) for each in _apis(stats.finish()))
        self.total = self.total.merge(stats)


def _apis(found: CaptureTables) -> Iterator[dict[str, Any]]:
    """Yield the statistics of each API and version, with its errors by name and the names of its clients."""
    errors, clients = (grouped(rows, *_API) for rows in (found.tables["errors"], found.tables["clients"]))
    for place, (row,) in sorted(grouped(found.tables["summary"], *_API).items()):
        named = [each for each in clients[place] if each["clientId"] is not None]
        yield {
            "api": row["api"] or row["apiKey"],
            **{name: row[name] for name in ("version", "exchanges", "answered")},
            **{name: None if row[name] is None else round(row[name]) for name in QUANTILES},
            **{name: row[name] for name in ("maxUs", "requestBytes", "responseBytes", "problems")},
            "errors": {each["name"] or str(each["code"]): each["count"] for each in errors.get(place, ())},
            "clients": [each["clientId"] for each in sorted(named, key=lambda each: -each["exchanges"])],
        }


def _summary(found: CaptureTables) -> dict[str, Any]:
    faults = {kind: counts for kind, counts in found.kinds.items() if kind != UNDECODED}
    return {
        **{name: sum(row[name] for row in found.tables["summary"]) for name in ("exchanges", "answered", "problems")},
        "faults": {kind: count for kind, (count, _) in faults.items()},
        "faultBytes": {kind: size for kind, (_, size) in faults.items()},
    }
