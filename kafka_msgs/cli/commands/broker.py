"""``kafka-msgs broker``: an embedded broker in a process of its own, for programs in any language.

The broker is imported when it is started. The list of commands does not wait for it.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Response

if TYPE_CHECKING:
    from kafka_msgs.broker import BrokerConfig
    from kafka_msgs.broker.call import Call

__all__ = ["broker_command"]

_PROFILES: Final = ("shipped", "page")
_LAST_PORT: Final = 65535


def _settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, sign, _ in pairs:
        if not (name.strip() and sign):
            raise click.BadParameter(f"{name!r} does not read NAME=VALUE")
    return {name.strip(): text for name, _, text in pairs}


@click.command("broker")
@click.option("--brokers", type=click.IntRange(1, 100), default=1, show_default=True, help="How many brokers.")
@click.option(
    "--port",
    type=click.IntRange(0, _LAST_PORT),
    default=9092,
    show_default=True,
    help="The port of the first broker on 127.0.0.1; the others get the ports after it. 0 lets the system choose.",
)
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep all data here, in Kafka's own files. Without it, everything is in memory.",
)
@click.option(
    "--durable", is_flag=True, help="Acknowledge records when they are on the disk, so that power may fail; needs --dir."
)
@click.option("--as-release", metavar="RELEASE", help="Offer the versions of this Kafka release only, such as 3.7.")
@click.option(
    "--config",
    "configs",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_settings,
    help="A setting of Kafka's brokers, such as auto.create.topics.enable=false. May be given several times.",
)
@click.option(
    "--profile",
    type=click.Choice(_PROFILES),
    default="shipped",
    show_default=True,
    help="Groups as the release has them, or as the documents of Kafka describe them.",
)
@click.option("--verbose", is_flag=True, help="Show each request with its outcome.")
def broker_command(
    brokers: int,
    port: int,
    directory: Path | None,
    durable: bool,
    as_release: str | None,
    configs: dict[str, str],
    profile: str,
    verbose: bool,
) -> None:
    """Run an embedded broker until Ctrl-C. Its address is the one line on standard output.

    Any Kafka client can use it for tests. It is not for data that you want to keep.
    """
    from kafka_msgs.broker import BrokerConfig, ListenerConfig
    from kafka_msgs.groups.profiles import PAGE, SHIPPED

    config = BrokerConfig(
        brokers=brokers,
        listeners=(ListenerConfig(port=port),),
        directory=directory,
        durable=durable,
        release=as_release,
        configs=configs,
        profile=dict(zip(_PROFILES, (SHIPPED, PAGE), strict=True))[profile],
    )
    asyncio.run(_run(config, verbose=verbose))


async def _run(config: BrokerConfig, *, verbose: bool) -> None:
    from kafka_msgs.broker import AsyncEmbeddedBroker

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncEmbeddedBroker(config) as broker:
        if verbose:
            broker.run(lambda cluster: cluster.observers.append(_show))
        click.echo(broker.bootstrap_servers)
        await stop.wait()
        for problem in broker.problems:
            click.echo(f"problem of the broker: {problem!r}", err=True)


def _show(call: Call[Any], response: Response | None) -> None:
    name = call.request.INFO.name.removesuffix("Request")
    took = call.cluster.now - call.received_at
    error = ErrorCode(getattr(response, "error_code", 0))
    outcome = "no response" if response is None else error.name if error else "ok"
    client = call.client_id or "-"
    click.echo(f"broker {call.session.broker_id}  {client}  {name} v{call.version}  {took} ms  {outcome}", err=True)
