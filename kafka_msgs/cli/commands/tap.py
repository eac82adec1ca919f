"""``kafka-msgs tap``: a proxy that shows and records the traffic between clients and brokers."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from kafka_msgs.capture import CaptureFault, Endpoint
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.recording import recording_pieces, recording_start
from kafka_msgs.cli.broker_options import command_config_option, with_port
from kafka_msgs.cli.durations import duration
from kafka_msgs.cli.recording_options import new_file, redact_option
from kafka_msgs.cli.registry_options import payload_schemas, registry_option
from kafka_msgs.cli.render.exchanges import item_row, item_text, message_facts
from kafka_msgs.cli.render.output import echo, json_text
from kafka_msgs.redaction import RedactKind, Redactor
from kafka_msgs.tap import Addon, Tap, load_addons

if TYPE_CHECKING:
    import ssl

    from kafka_msgs.viewer import LiveViewer

__all__ = ["tap_command"]

_ADDRESS: Final = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]]+):(?P<port>\d{1,5})", re.ASCII)
_LAST_PORT: Final = 65535
_FORMS: Final = ("text", "jsonl", "none")


def _endpoint(text: str) -> Endpoint:
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or int(match["port"]) > _LAST_PORT:
        raise click.BadParameter(f"{text!r} is not HOST:PORT")
    return Endpoint(match["host"].strip("[]"), int(match["port"]))


def _one(ctx: click.Context, param: click.Parameter, value: str) -> Endpoint:
    return _endpoint(value)


def _several(ctx: click.Context, param: click.Parameter, value: str) -> tuple[Endpoint, ...]:
    return tuple(_endpoint(with_port(address)) for address in value.split(","))


def _faults(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[Any, ...]:
    if not values:
        return ()
    from kafka_msgs.testing.tap_faults import parse_fault

    try:
        return tuple(map(parse_fault, values))
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


@click.command("tap")
@click.option(
    "-b",
    "--bootstrap-server",
    "brokers",
    metavar="HOST[:PORT]",
    required=True,
    callback=_several,
    help="Bootstrap servers, separated by commas, in order of preference.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:19092",
    show_default=True,
    callback=_one,
    help="Address for clients. Brokers use the following ports; with port 0, the system selects all ports.",
)
@click.option("--advertise", metavar="HOST", help="Advertised host, if it differs from --listen.")
@click.option(
    "--certificate",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Certificate (PEM) of the proxy; clients then connect with TLS.",
)
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Key of the certificate (PEM, unencrypted), if it is in a separate file.",
)
@command_config_option(
    "Properties of Kafka's clients for the connections with brokers. Clients themselves log in with SASL."
)
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Record each exchange in a new file of JSON lines, for kafka-msgs capture.",
)
@click.option("--raw", is_flag=True, help="Record payloads as bytes after their lines instead of hexadecimal digits.")
@click.option("--bodies", is_flag=True, help="Include the decoded requests and responses.")
@redact_option
@click.option("--sasl-in-clear", is_flag=True, help="Include passwords and tokens, which are hidden by default.")
@click.option(
    "--addon",
    "addon_files",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Python file with addons, which observe or change the traffic; may be repeated.",
)
@click.option(
    "--fault",
    "faults",
    metavar="FAULT",
    multiple=True,
    callback=_faults,
    help="Inject a fault, such as fail:NOT_LEADER_OR_FOLLOWER,api=Produce,times=2; may be repeated.",
)
@click.option("--web", is_flag=True, help="Show the traffic in a browser; the address is printed.")
@click.option(
    "--web-port",
    type=click.IntRange(0, _LAST_PORT),
    default=0,
    help="Port of --web on 127.0.0.1; by default the system selects it.",
)
@registry_option
@click.option(
    "--max-connections", type=click.IntRange(1), default=1000, show_default=True, help="Limit of client connections."
)
@click.option(
    "--max-memory",
    metavar="MIB",
    type=click.IntRange(1),
    default=1024,
    show_default=True,
    help="Limit of the buffers of all connections in MiB.",
)
@click.option("--cap-versions", is_flag=True, help="Offer clients only API versions that this library supports.")
@click.option(
    "--output",
    "output_format",
    type=click.Choice(_FORMS),
    default=_FORMS[0],
    show_default=True,
    help="Print a line of text or a JSON object for each exchange, or nothing.",
)
@click.option(
    "--duration", metavar="TIME", type=duration("s", min_seconds=0.001), help="Stop after this time, such as 10m."
)
def tap_command(
    brokers: tuple[Endpoint, ...],
    listen: Endpoint,
    advertise: str | None,
    certificate: Path | None,
    key: Path | None,
    command_config: Path | None,
    record: Path | None,
    raw: bool,
    bodies: bool,
    kinds: frozenset[RedactKind],
    sasl_in_clear: bool,
    addon_files: tuple[Path, ...],
    faults: tuple[Any, ...],
    web: bool,
    web_port: int,
    registry: str | None,
    max_connections: int,
    max_memory: int,
    cap_versions: bool,
    output_format: str,
    duration: float | None,
) -> None:
    """Run a proxy between clients and brokers that shows each request with its response: latency, sizes, errors.

    Clients connect to --listen instead of the brokers. The proxy replaces broker addresses in responses, so that
    clients stay connected through it; nothing else changes, except by addons and faults. It stops at Ctrl-C.

    Example: kafka-msgs tap -b localhost:9092 --listen 127.0.0.1:19092 --record traffic.jsonl
    """
    if raw and record is None:
        raise click.UsageError("--raw needs --record")
    if registry is not None and not web:
        raise click.UsageError("--registry needs --web")
    tls = {"client_tls": _client_tls(certificate, key), "broker_tls": _broker_tls(command_config)}
    hidden = kinds if sasl_in_clear else kinds | {RedactKind.SASL}
    with ExitStack() as stack:
        redactor = Redactor(hidden)
        receiver = _Receiver(redactor, output_format=output_format, bodies=bodies, raw=raw)
        if record is not None:
            bootstrap = [str(redactor.endpoint(broker)) for broker in brokers]
            start = recording_start({"bootstrap": bootstrap, "redacted": sorted(hidden)})
            receiver.file = stack.enter_context(new_file(record))
            receiver.write([start.encode("ascii"), b"\n"])
        changes = {"listen": listen, "advertised": advertise, "cap_versions": cap_versions}
        limits = {"max_connections": max_connections, "max_bytes": max_memory * 2**20}
        addons = _addons(addon_files, faults)
        viewer = _viewer(brokers, web_port, registry) if web else None
        asyncio.run(_run(brokers, receiver, duration, viewer, **changes, **limits, **tls, addons=addons))
    if receiver.asked:
        echo(receiver.counts, err=True)
    if receiver.error is not None:
        raise click.ClickException(f"{record}: {receiver.error.strerror}")


def _client_tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        if key is not None:
            raise click.UsageError("--key needs --certificate")
        return None
    from kafka_msgs.client.tls import server_tls_context

    return server_tls_context(certificate=certificate, key=key)


def _broker_tls(command_config: Path | None) -> ssl.SSLContext | None:
    if command_config is None:
        return None
    from kafka_msgs.client.client_properties import parse_tls
    from kafka_msgs.client.config_loading import load_properties

    return parse_tls(load_properties(command_config))


def _addons(paths: tuple[Path, ...], faults: tuple[Any, ...]) -> list[Addon]:
    found = [addon for path in paths for addon in load_addons(path)]
    if faults:
        from kafka_msgs.testing.tap_faults import FaultAddon

        found.append(FaultAddon(faults))
    return found


def _viewer(brokers: tuple[Endpoint, ...], port: int, registry: str | None) -> LiveViewer:
    from kafka_msgs.viewer import LiveViewer

    title = f"tap of {', '.join(map(str, brokers))}"
    return LiveViewer(title=title, port=port, schemas=payload_schemas(registry))


async def _run(
    brokers: tuple[Endpoint, ...],
    receiver: _Receiver,
    duration: float | None,
    viewer: LiveViewer | None,
    **options: Any,
) -> None:
    stop = asyncio.Event()
    receiver.stop = stop.set
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        if viewer is not None:
            receiver.viewer = await stack.enter_async_context(viewer)
        tap = await stack.enter_async_context(Tap(brokers, seen=receiver if receiver.asked else None, **options))
        echo(f"listening on {tap.address} for {', '.join(map(str, brokers))}", err=True)
        if viewer is not None:
            echo(f"traffic at {viewer.address}", err=True)
        try:
            async with asyncio.timeout(duration):
                await stop.wait()
        except TimeoutError:
            return


class _Receiver:
    """Shows and records items. If that fails, it stops the proxy."""

    def __init__(self, redaction: Redactor, *, output_format: str, bodies: bool, raw: bool) -> None:
        self.file: BinaryIO | None = None
        self.viewer: LiveViewer | None = None
        self.error: OSError | None = None
        self.stop: Callable[[], None] = lambda: None
        self._exchanges = self._undecoded = self._faults = 0
        self._redaction = redaction
        self._form = output_format
        self._bodies = bodies
        self._raw = raw

    @property
    def asked(self) -> bool:
        """Whether items are shown or recorded."""
        return self.file is not None or self.viewer is not None or self._form != "none"

    @property
    def counts(self) -> str:
        """The numbers of items. Items that are only recorded are not decoded."""
        undecoded = [] if self._form == "none" else [f"{self._undecoded} not decoded"]
        return ", ".join([f"{self._exchanges} exchanges", *undecoded, f"{self._faults} faults"])

    def __call__(self, item: Item) -> None:
        self._count(item)
        hidden = self._redaction.redact(item)
        try:
            if self.file is not None and self.error is None:
                self.write(recording_pieces(hidden, self._decoded(hidden), raw=self._raw))
            if self.viewer is not None:
                self.viewer.add(hidden)
            self._show(hidden)
        except OSError as error:
            self.error = error
            self._form = "none"
            self.stop()

    def write(self, pieces: Iterable[bytes]) -> None:
        """Add to the recording."""
        assert self.file is not None
        self.file.writelines(pieces)
        self.file.flush()

    def _decoded(self, item: Item) -> dict[str, Any]:
        """Return the messages for the recording, if it includes them."""
        if not self._bodies or isinstance(item, CaptureFault):
            return {}
        return {f"{name}Decoded": message for name, message in message_facts(item).items()}

    def _count(self, item: Item) -> None:
        if isinstance(item, CaptureFault):
            self._faults += 1
            return
        self._exchanges += 1
        if self._form != "none":
            self._undecoded += bool(item.problems)

    def _show(self, item: Item) -> None:
        if self._form == "text":
            echo(item_text(item))
            if self._bodies and not isinstance(item, CaptureFault):
                for name, message in message_facts(item).items():
                    echo(f"    {name} {json_text(message)}")
        elif self._form == "jsonl":
            row = item_row(item, bodies=self._bodies)
            echo(json_text({"kind": row.kind, **row.facts}))
