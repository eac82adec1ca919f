"""``kafka-msgs broker``: an embedded broker in a separate process, for programs in any language.

The broker is imported when it starts, so that the command list does not wait for it.
"""

from __future__ import annotations

import asyncio
import signal
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import evolve

from kafka_msgs.cli.render.output import echo, json_text, one_line
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Response

if TYPE_CHECKING:
    from kafka_msgs.broker import AsyncEmbeddedBroker
    from kafka_msgs.broker.config import ListenerConfig
    from kafka_msgs.broker.initial_data import InitialData
    from kafka_msgs.broker.server_call import ServerCall

__all__ = ["broker_command"]

_PROFILES: Final = ("shipped", "page")
_LAST_PORT: Final = 65535
_LOOPBACK: Final = "127.0.0.1"
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


def _settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, sign, _ in pairs:
        if not (name.strip() and sign):
            raise click.BadParameter(f"{name!r} is not NAME=VALUE")
    return {name.strip(): text for name, _, text in pairs}


def _host_and_port(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, int | None]:
    if value is None:
        return _LOOPBACK, None
    host, _, port = value.rpartition(":")
    if not port.isdecimal():
        raise click.BadParameter(f"{value!r} is not [HOST:]PORT")
    return host.strip("[]") or _LOOPBACK, int(port)


def _listener(text: str, advertised: dict[str, tuple[str, int]], tls: ssl.SSLContext | None) -> ListenerConfig:
    """Return the listener of ``NAME=HOST:PORT`` or ``NAME:PROTOCOL=HOST:PORT``, like Kafka's ``listeners``."""
    from kafka_msgs.broker import ListenerConfig

    name, protocol, host, port = _listener_parts(text)
    shown_host, shown_port = advertised.get(name, (None, 0))
    return ListenerConfig(
        name=name,
        protocol=protocol,
        host=host,
        port=port,
        advertised_host=shown_host,
        advertised_port=shown_port,
        tls=tls if protocol.endswith("SSL") else None,
    )


def _listener_parts(text: str) -> tuple[str, str, str, int]:
    head, sign, address = text.partition("=")
    name, _, protocol = head.partition(":")
    host, _, port = address.rpartition(":")
    if not (name and sign and host and port.isdecimal()):
        raise click.BadParameter(f"{text!r} is not NAME[:PROTOCOL]=HOST:PORT")
    return name, protocol or name, host.strip("[]"), int(port)


def _initial_data(path: Path | None, topics: tuple[str, ...], acls: tuple[str, ...]) -> InitialData:
    """Return the contents of a data file, and the topics and ACLs of options."""
    from kafka_msgs.broker.initial_data import InitialData, parse_acl, parse_topics

    from_file = InitialData() if path is None else InitialData.from_toml(path)
    return from_file.merge(InitialData(topics=parse_topics(topics), acls=tuple(map(parse_acl, acls))))


def _server_tls(certificate: Path | None, key: Path | None, authority: Path | None) -> ssl.SSLContext | None:
    """Return the server's TLS context. With an authority, clients must have certificates issued by it."""
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if authority is not None:
        context.load_verify_locations(authority)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _properties(path: Path | None) -> dict[str, str]:
    """Return the contents of a Kafka properties file."""
    from kafka_msgs.client.properties_file import read_properties

    return {} if path is None else read_properties(path)


@click.command("broker")
@click.option("--brokers", type=click.IntRange(1, 100), default=1, show_default=True, help="Number of brokers.")
@click.option(
    "--port",
    type=click.IntRange(0, _LAST_PORT),
    default=9092,
    show_default=True,
    help="Port of the first broker on 127.0.0.1; other brokers use the following ports. 0 selects free ports.",
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the data, in Kafka's file formats. By default, data are in memory.",
)
@click.option(
    "--durable",
    is_flag=True,
    help="Acknowledge records after writing them to disk, so that they survive a power failure; needs --dir.",
)
@click.option(
    "--as-release", metavar="RELEASE", help="Support only the API versions of this Kafka release, such as 3.7."
)
@click.option(
    "--config",
    "configs",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_settings,
    help="A broker configuration, such as auto.create.topics.enable=false; may be repeated.",
)
@click.option(
    "--profile",
    type=click.Choice(_PROFILES),
    default="shipped",
    show_default=True,
    help="Group protocol of the Kafka release, or of the KIPs.",
)
@click.option(
    "--listener",
    "listeners",
    metavar="NAME[:PROTOCOL]=HOST:PORT",
    multiple=True,
    help="A listener, instead of --port; may be repeated. The protocol defaults to the name.",
)
@click.option(
    "--advertised",
    metavar="NAME=HOST:PORT",
    multiple=True,
    help="Advertised address of a listener, such as a container host; may be repeated.",
)
@click.option("--topic", "topics", metavar="NAME[:PARTITIONS]", multiple=True, help="Create a topic; may be repeated.")
@click.option(
    "--sasl-user",
    "users",
    metavar="NAME=PASSWORD",
    multiple=True,
    callback=_settings,
    help="A user of SASL listeners (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512); may be repeated.",
)
@click.option("--tls-cert", type=_FILE, help="Certificate of TLS listeners (PEM).")
@click.option("--tls-key", type=_FILE, help="Key of the certificate, if it is in a separate file.")
@click.option("--tls-ca", type=_FILE, help="Require client certificates of this authority.")
@click.option("--authorizer", is_flag=True, help="Enforce ACLs.")
@click.option(
    "--acl",
    "acls",
    metavar="'[deny] PRINCIPAL OPERATION TYPE:NAME'",
    multiple=True,
    help="An ACL, such as 'User:alice read topic:orders', which implies --authorizer; a name that ends with * is a "
    "prefix; may be repeated.",
)
@click.option(
    "--super-user",
    "super_users",
    metavar="PRINCIPAL",
    multiple=True,
    help="A principal that ACLs do not restrict, such as User:admin; may be repeated.",
)
@click.option("--config-file", type=_FILE, help="A properties file with broker configurations.")
@click.option("--data", "data_file", type=_FILE, help="A TOML file with topics, records, users, ACLs and offsets.")
@click.option(
    "--control",
    "control_port",
    type=click.IntRange(0, _LAST_PORT),
    help="Port of the remote control over HTTP on 127.0.0.1; 0 selects a free port.",
)
@click.option(
    "--schema-registry",
    "registry",
    metavar="[HOST:]PORT",
    callback=_host_and_port,
    help="Address of a schema registry in memory, by default on 127.0.0.1; port 0 selects a free port.",
)
@click.option("--telemetry", is_flag=True, help="Let clients push metrics (KIP-714), which the remote control shows.")
@click.option(
    "--clock",
    type=click.Choice(("system", "manual")),
    default="system",
    show_default=True,
    help="A manual clock stands still until the remote control moves it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the addresses as JSON.")
@click.option("--verbose", is_flag=True, help="Print each request and its result on standard error.")
def broker_command(
    brokers: int,
    port: int,
    directory: Path | None,
    durable: bool,
    as_release: str | None,
    configs: dict[str, str],
    profile: str,
    listeners: tuple[str, ...],
    advertised: tuple[str, ...],
    topics: tuple[str, ...],
    users: dict[str, str],
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_ca: Path | None,
    authorizer: bool,
    acls: tuple[str, ...],
    super_users: tuple[str, ...],
    config_file: Path | None,
    data_file: Path | None,
    control_port: int | None,
    registry: tuple[str, int | None],
    telemetry: bool,
    clock: str,
    as_json: bool,
    verbose: bool,
) -> None:
    """Run an embedded broker until Ctrl-C, and print its address on standard output.

    Any Kafka client can use it for tests. Do not store data in it that you want to keep.

    Example: kafka-msgs broker --topic orders:3
    """
    from kafka_msgs.broker import AsyncEmbeddedBroker, BrokerConfig, ManualClock
    from kafka_msgs.groups.page import KIP_1071_PAGE
    from kafka_msgs.groups.profiles import SHIPPED

    tls = _server_tls(tls_cert, tls_key, tls_ca)
    shown = {name: (host, number) for name, _, host, number in map(_listener_parts, advertised)}
    config = BrokerConfig(
        brokers=brokers,
        listeners=tuple(_listener(listener, shown, tls) for listener in listeners)
        or (evolve(_listener(f"PLAINTEXT=127.0.0.1:{port}", shown, None), host=None),),
        directory=directory,
        durable=durable,
        release=as_release,
        configs={**_properties(config_file), **configs},
        users=users,
        authorizer=authorizer,
        super_users=super_users,
        telemetry=telemetry,
        control_port=control_port,
        registry_host=registry[0],
        registry_port=registry[1],
        profile=dict(zip(_PROFILES, (SHIPPED, KIP_1071_PAGE), strict=True))[profile],
    )
    data = _initial_data(data_file, topics, acls)
    broker = AsyncEmbeddedBroker(config, data=data, clock=ManualClock() if clock == "manual" else None)
    asyncio.run(_run(broker, as_json=as_json, verbose=verbose))


async def _run(broker: AsyncEmbeddedBroker, *, as_json: bool, verbose: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with broker:
        if verbose:
            broker.run(lambda cluster: cluster.response_observers.append(_show))
        echo(_ready(broker) if as_json else broker.bootstrap_servers)
        await stop.wait()
        for problem in broker.problems:
            echo(f"problem of the broker: {problem!r}", err=True)


def _ready(broker: AsyncEmbeddedBroker) -> str:
    """Return the addresses of all listeners as one line of JSON."""
    addresses = {listener.name: broker.bootstrap_of(listener.name) for listener in broker.config.listeners}
    cluster_id = broker.run(lambda cluster: cluster.cluster_id)
    facts: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap_servers,
        "listeners": addresses,
        "cluster_id": cluster_id,
    }
    if broker.config.control_port is not None:
        facts["control_url"] = broker.control_url
    if broker.config.registry_port is not None:
        facts["registry_url"] = broker.registry_url
    return json_text({"ready": True, **facts})


def _show(call: ServerCall[Any], response: Response | None) -> None:
    name = call.request.INFO.name.removesuffix("Request")
    took = call.cluster.now - call.received_at
    error = ErrorCode(getattr(response, "error_code", 0))
    outcome = "no response" if response is None else error.name if error else "ok"
    client = one_line(call.client_id or "-")
    echo(f"broker {call.session.broker_id}  {client}  {name} v{call.version}  {took} ms  {outcome}", err=True)
