"""Broker options of commands: ``--bootstrap-server``, client properties, profiles, and the timeout.

This module defines these options and combines their values. ``kafka_msgs.client`` connects to the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click
from attrs import frozen

from kafka_msgs.cli.durations import duration

if TYPE_CHECKING:
    from kafka_msgs.admin.admin import Admin
    from kafka_msgs.cli.connection_profiles import ConnectionProfile
    from kafka_msgs.client.client import Client
    from kafka_msgs.client.config import ClientConfig

__all__ = ["ClusterOptions", "broker_options", "command_config_option", "name_and_value", "with_port"]

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULT_TIMEOUT: Final = "5s"
"""How long a command waits for brokers (KIP-1071)."""

_DEFAULT_PORT: Final = 9092
_TIMEOUT: Final = duration("ms", min_seconds=0.001)


@frozen
class ClusterOptions:
    """The cluster of a command. ``timeout`` is in seconds; ``properties`` have Kafka's names."""

    bootstrap_server: str | None
    timeout: float
    properties: Mapping[str, str]
    registry: str | None = None

    @property
    def config(self) -> ClientConfig:
        """The client configuration. Raises ``OptionError`` for invalid properties."""
        from kafka_msgs.client.config import ClientConfig

        servers = {"bootstrap.servers": self.bootstrap_server}
        return ClientConfig.from_properties({**self.properties, **servers}, timeout=self.timeout)

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Yield a client whose operations end within the timeout, all together."""
        from kafka_msgs.client.client import Client

        with Client(self.config) as client:
            self.limit(client)
            yield client

    @contextmanager
    def admin(self) -> Iterator[Admin]:
        """Yield an admin client whose operations end within the timeout, all together."""
        from kafka_msgs.admin.admin import Admin

        with self.client() as client:
            yield Admin(client)

    def limit(self, client: Client) -> None:
        """Start the timeout again."""
        client.core.final_deadline = client.core.network.now() + self.timeout


def broker_options(*, required: bool = True) -> Callable[[F], F]:
    """Return a decorator that adds the broker options to a command, which receives ``cluster``: ``ClusterOptions``.

    If they are not required, a command with ``log_dirs`` gets no bootstrap server from the environment or a profile.
    """

    def add(command: F) -> F:
        @wraps(command)
        def run(
            *args: Any,
            bootstrap_server: str | None,
            command_config: Path | None,
            properties: Mapping[str, str],
            profile: str | None,
            timeout: float | None,
            **options: Any,
        ) -> Any:
            options_of_cluster = _combined(
                bootstrap_server, command_config, properties, profile, timeout, has_files=bool(options.get("log_dirs"))
            )
            if required and options_of_cluster.bootstrap_server is None:
                raise click.UsageError("Missing option '-b' / '--bootstrap-server', and no profile has one")
            return command(*args, cluster=options_of_cluster, **options)

        decorated: Callable[..., Any] = run
        for option in (_timeout, _profile, _properties, _config, _servers):
            decorated = option(decorated)
        return cast("F", decorated)

    return add


def _combined(
    bootstrap_server: str | None,
    command_config: Path | None,
    properties: Mapping[str, str],
    profile: str | None,
    timeout: float | None,
    *,
    has_files: bool,
) -> ClusterOptions:
    """Return the values of options; missing ones come from the environment, and otherwise from the profile."""
    from kafka_msgs.cli.connection_profiles import load_profile

    stored = load_profile(profile)
    servers = bootstrap_server or (None if has_files else stored.settings.get("bootstrap-server"))
    if timeout is None:
        timeout = _TIMEOUT(stored.settings.get("timeout", _DEFAULT_TIMEOUT))
    # A command on files needs no client, and its import takes longer than reading a small directory.
    is_used = servers is not None or command_config is not None or properties
    return ClusterOptions(
        None if servers is None else ",".join(map(with_port, servers.split(","))),
        timeout,
        _all_properties(stored, command_config, properties) if is_used else {},
        stored.settings.get("registry"),
    )


def _all_properties(
    stored: ConnectionProfile, command_config: Path | None, properties: Mapping[str, str]
) -> dict[str, str]:
    from kafka_msgs.client.config_loading import load_properties
    from kafka_msgs.client.property_parsing import resolve_names

    named = stored.settings.get("command-config") if command_config is None else command_config
    from_file = {} if named is None else load_properties(Path(named))
    return {**resolve_names(stored.properties), **from_file, **resolve_names(properties)}


def with_port(server: str) -> str:
    """Return an address with Kafka's port if it has none. A bare IPv6 address needs brackets, as in ``[::1]``."""
    host = server.strip()
    has_port = "]:" in host if host.startswith("[") else ":" in host
    return host if has_port or not host else f"{host}:{_DEFAULT_PORT}"


def name_and_value(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return ``NAME=VALUE`` texts as a dict. Raises ``click.BadParameter`` for another text."""
    pairs = [value.partition("=") for value in values]
    for name, sign, _ in pairs:
        if not (name.strip() and sign):
            raise click.BadParameter(f"{name!r} is not NAME=VALUE", ctx, param)
    return {name.strip(): text for name, _, text in pairs}


def command_config_option(help_text: str) -> Callable[[F], F]:
    """Return the option for Kafka's client properties file: ``command_config``."""
    return click.option(
        "--command-config",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=help_text,
    )


_servers: Final = click.option(
    "-b",
    "--bootstrap-server",
    metavar="HOST[:PORT]",
    help="Bootstrap servers, separated by commas. The default port is 9092.",
)
_config: Final = command_config_option("Kafka client properties, such as security.protocol and sasl.jaas.config.")
_properties: Final = click.option(
    "-X",
    "--property",
    "properties",
    metavar="NAME=VALUE",
    multiple=True,
    callback=name_and_value,
    help="A client property; overrides --command-config. May be repeated.",
)
_profile: Final = click.option("--profile", metavar="NAME", help="A connection profile from profiles.toml.")
_timeout: Final = click.option(
    "--timeout",
    metavar="TIME",
    type=_TIMEOUT,
    help="Time limit for the command, such as 30s; without a unit, milliseconds. The default is 5s.",
)
