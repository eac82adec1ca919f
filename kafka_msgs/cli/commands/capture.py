"""``kafka-msgs capture``: requests and responses from captured network traffic."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from kafka_msgs.analysis.capture_clients import ClientTally, captures_report
from kafka_msgs.capture import CaptureFault
from kafka_msgs.capture.pcap import open_capture
from kafka_msgs.capture.summary import QUANTILES, ApiSummary, CaptureSummary, CaptureTally
from kafka_msgs.cli.capture_options import ports_options, read_items
from kafka_msgs.cli.output_options import rows_option
from kafka_msgs.cli.render.exchanges import item_row
from kafka_msgs.cli.render.progress import progress_over
from kafka_msgs.cli.render.rows import Named, Row, print_rows
from kafka_msgs.cli.report_options import report_option, save_report

__all__ = ["capture_command"]


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
    total = CaptureTally()
    clients = ClientTally() if report_dir is not None else None
    rows = _Rows(None if any_port else ports, total, clients, exchanges=not only_summary, bodies=bodies)
    print_rows(output_format, rows.of(paths), lambda: _summary(total.summary()))
    if report_dir is not None and clients is not None:
        save_report(captures_report(total.summary(), clients), report_dir, paths)
    if total.summary().damaged:
        ctx.exit(1)


class _Rows:
    """The rows of captures; ``total`` counts the items of all captures, and so does ``clients`` if it is set."""

    def __init__(
        self,
        ports: Collection[int] | None,
        total: CaptureTally,
        clients: ClientTally | None,
        *,
        exchanges: bool,
        bodies: bool,
    ) -> None:
        self._ports = ports
        self._total = total
        self._clients = clients
        self._exchanges = exchanges
        self._bodies = bodies

    def of(self, paths: Sequence[Path]) -> Iterator[Named]:
        with progress_over(paths) as progress:
            for path in paths:
                progress.file(path)
                for row in self._of_file(path, progress.read):
                    yield path, row

    def _of_file(self, path: Path, progress: Callable[[int], None]) -> Iterator[Row]:
        tally = CaptureTally()
        with open_capture(path) as file:
            for item in read_items(file, self._ports):
                progress(file.tell())
                tally.add(item)
                self._total.add(item)
                if self._clients is not None:
                    self._clients.add(str(path), item)
                if isinstance(item, CaptureFault) or self._exchanges:
                    yield item_row(item, bodies=self._bodies)
        for api in tally.summary().apis:
            yield Row("api", _api(api))


def _api(api: ApiSummary) -> dict[str, Any]:
    shares = zip(QUANTILES, api.latencies, strict=True)
    times = {f"p{share * 100:g}Us": None if value is None else round(value) for share, value in shares}
    return {
        "api": api.api or api.api_key,
        "version": api.version,
        "exchanges": api.exchanges,
        "answered": api.answered,
        **times,
        "maxUs": api.longest,
        "requestBytes": api.request_bytes,
        "responseBytes": api.response_bytes,
        "problems": api.problems,
        "errors": api.errors,
        "clients": [name for name in api.clients if name is not None],
    }


def _summary(summary: CaptureSummary) -> dict[str, Any]:
    return {
        "exchanges": sum(api.exchanges for api in summary.apis),
        "answered": sum(api.answered for api in summary.apis),
        "problems": sum(api.problems for api in summary.apis),
        "faults": {kind.value: count for kind, count in summary.faults.items()},
        "faultBytes": {kind.value: size for kind, size in summary.fault_bytes.items()},
    }
