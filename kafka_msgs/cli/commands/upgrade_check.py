"""``kafka-msgs upgrade-check``: the clients and files that prevent an upgrade."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.capture import Endpoint
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.pcap import open_capture
from kafka_msgs.cli.broker_options import with_port
from kafka_msgs.cli.capture_options import ports_options, read_items
from kafka_msgs.cli.durations import duration
from kafka_msgs.cli.output_options import listing_option, log_dirs_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.output import echo
from kafka_msgs.cli.report_options import report_option, save_report
from kafka_msgs.errors import OptionError
from kafka_msgs.upgrade import (
    ClientUsage,
    KafkaRelease,
    check_client_release,
    check_upgrade,
    parse_release,
    read_cluster_files,
)
from kafka_msgs.upgrade.client_check import is_documented
from kafka_msgs.upgrade.reports import (
    CLIENT_COLUMNS,
    FINDING_COLUMNS,
    client_report,
    client_rows,
    finding_rows,
    upgrade_report,
)

if TYPE_CHECKING:
    from kafka_msgs.report import Report

__all__ = ["upgrade_check_command"]

_BLOCKED: Final = 3
_INCOMPLETE: Final = 1


def _release(ctx: click.Context, param: click.Parameter, value: str | None) -> KafkaRelease | None:
    try:
        return None if value is None else parse_release(value)
    except OptionError as error:
        raise click.BadParameter(f"{value!r}: {error.reason}", ctx, param) from None


def _endpoints(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[Endpoint, ...]:
    return tuple(_endpoint(with_port(each)) for each in value.split(",")) if value else ()


def _endpoint(text: str) -> Endpoint:
    host, _, port = text.rpartition(":")
    if not (host and port.isdigit() and int(port) < 2**16):
        raise click.BadParameter(f"{text!r} is not HOST:PORT")
    return Endpoint(host.strip("[]"), int(port))


@click.command("upgrade-check")
@click.argument("paths", metavar="[FILES]...", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", "target", metavar="RELEASE", callback=_release, help="The release to upgrade brokers to.")
@ports_options
@click.option(
    "--listen", metavar="HOST:PORT", callback=_endpoints, help="Run a proxy for clients on this address, as tap does."
)
@click.option(
    "-b", "--bootstrap-server", "brokers", metavar="HOST[:PORT]", callback=_endpoints, help="The brokers for --listen."
)
@click.option(
    "--duration", "seconds", metavar="TIME", type=duration("s", min_seconds=0.001), help="Stop --listen then."
)
@log_dirs_option(required=False)
@click.option("--client", metavar="RELEASE", callback=_release, help="A client release to compare with --broker.")
@click.option("--broker", metavar="RELEASE", callback=_release, help="A broker release to compare with --client.")
@click.option("--all", "everything", is_flag=True, help="Also list supported versions, formats and features.")
@report_option
@listing_option
@click.pass_context
def upgrade_check_command(
    ctx: click.Context,
    paths: tuple[Path, ...],
    target: KafkaRelease | None,
    ports: tuple[int, ...],
    any_port: bool,
    listen: tuple[Endpoint, ...],
    brokers: tuple[Endpoint, ...],
    seconds: float | None,
    log_dirs: tuple[Path, ...],
    client: KafkaRelease | None,
    broker: KafkaRelease | None,
    everything: bool,
    report_dir: Path | None,
    output_format: str,
) -> None:
    """Find clients and files that prevent an upgrade of brokers, or compare a client release with a broker release.

    FILES are packet captures and recordings of tap. Clients are blocked if they send versions or message formats that
    the release removed, and files if they have features that it does not support. The exit status is 3 if something is
    blocked, and 1 if the input is damaged.

    Example: kafka-msgs upgrade-check --to 4.4 traffic.jsonl
    """
    if (client is None) != (broker is None):
        raise click.UsageError("--client needs --broker, and the other way round")
    if client is not None and broker is not None:
        if target is not None or paths or log_dirs or listen:
            raise click.UsageError("--client and --broker exclude --to and all inputs")
        _compare(ctx, client, broker, everything, report_dir, output_format)
        return
    if target is None or not (paths or log_dirs or listen):
        raise click.UsageError("give --to and FILES, --listen or --log-dirs; or --client and --broker")
    if bool(listen) != bool(brokers):
        raise click.UsageError("--listen needs --bootstrap-server, and the other way round")
    usage = ClientUsage()
    for path in paths:
        usage.add_all(_items(path, None if any_port else ports), str(path))
    if listen:
        asyncio.run(_observe(listen[0], brokers, usage, seconds))
    check = check_upgrade(target, usage, read_cluster_files(log_dirs) if log_dirs else None)
    rows = list(finding_rows(check, everything=everything))
    _print(output_format, FINDING_COLUMNS, rows)
    for reason in check.incomplete:
        echo(f"not examined: {reason}", err=True)
    _save(upgrade_report(check), report_dir, (*paths, *log_dirs))
    ctx.exit(_BLOCKED if check.blocked else _INCOMPLETE if check.incomplete else 0)


def _items(path: Path, ports: Sequence[int] | None) -> Iterator[Item]:
    with open_capture(path) as file:
        yield from read_items(file, ports)


async def _observe(listen: Endpoint, brokers: tuple[Endpoint, ...], usage: ClientUsage, seconds: float | None) -> None:
    """Run a proxy until the timeout or a signal."""
    from kafka_msgs.tap import Tap

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Tap(brokers, seen=usage.add, listen=listen) as tap:
        echo(f"listening on {tap.address} for {', '.join(map(str, brokers))}", err=True)
        try:
            async with asyncio.timeout(seconds):
                await stop.wait()
        except TimeoutError:
            return


def _compare(
    ctx: click.Context,
    client: KafkaRelease,
    broker: KafkaRelease,
    everything: bool,
    report_dir: Path | None,
    output_format: str,
) -> None:
    supports = check_client_release(client, broker)
    rows = [row for row in client_rows(supports) if everything or row["verdict"] != "ok"]
    print_listing(output_format, CLIENT_COLUMNS, rows)
    if not is_documented(client, broker):
        echo(f"Kafka does not document support for clients of {client} with brokers of {broker} (KIP-896)", err=True)
    _save(client_report(supports, client, broker), report_dir, ())
    ctx.exit(_BLOCKED if any(each.blocked for each in supports) else 0)


def _print(output_format: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows. A table shows times as text."""
    if output_format == "table":
        rows = [{**row, **{name: _time(row[name]) for name in ("first", "last")}} for row in rows]
    print_listing(output_format, columns, rows)


def _time(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _save(report: Report, report_dir: Path | None, inputs: Sequence[Path]) -> None:
    if report_dir is not None:
        save_report(report, report_dir, inputs)
