"""Embedded and real brokers for client test suites, with the same listeners and users."""

from __future__ import annotations

import json
import ssl
import tempfile
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from attrs import frozen
from rich.console import Console

from kafka_msgs.broker import EmbeddedBroker, ListenerConfig
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_listeners import USERS, Certificates, Listener

__all__ = ["BROKERS", "Address", "Wanted"]

_LISTENERS: Final = (Listener.PLAINTEXT, Listener.SSL, Listener.SASL_PLAINTEXT, Listener.SASL_SSL)
_SUPER_USERS: Final = "User:ANONYMOUS;User:admin"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@frozen
class Wanted:
    """The requirements of a suite: the number of brokers, configs, and users in addition to the common ones."""

    nodes: int
    settings: Mapping[str, str]
    users: Mapping[str, str]


@frozen
class Address:
    """The addresses of a cluster: comma-separated ``host:port`` for each listener, and its certificates."""

    listeners: Mapping[str, str]
    certificates: Certificates

    @property
    def plaintext(self) -> str:
        """The brokers' addresses without TLS and without SASL."""
        return self.listeners[Listener.PLAINTEXT.name]

    def to_json(self) -> str:
        """Return the addresses in the JSON form that the plugins read."""
        certificates = {name: str(path) for name, path in self.certificates._asdict().items()}
        return json.dumps({"listeners": dict(self.listeners), "certificates": certificates})


class Start(Protocol):
    """Starts a cluster for the duration of a ``with`` block."""

    def __call__(self, wanted: Wanted, out: Console) -> AbstractContextManager[Address]: ...


@contextmanager
def _embedded(wanted: Wanted, out: Console) -> Iterator[Address]:
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-suites-") as directory:
        Certificates.make(Path(directory))
        certificates = Certificates.at(Path(directory))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificates.server)
        listeners = tuple(
            ListenerConfig(name=each.name, protocol=each.protocol, tls=tls if each.protocol.endswith("SSL") else None)
            for each in _LISTENERS
        )
        broker = EmbeddedBroker(
            brokers=wanted.nodes,
            listeners=listeners,
            users={**USERS, **wanted.users},
            authorizer=True,
            super_users=tuple(_SUPER_USERS.split(";")),
            allow_everyone=True,
            configs=wanted.settings,
        )
        with broker:
            yield Address({each.name: broker.bootstrap_of(each.name) for each in _LISTENERS}, certificates)
            for problem in broker.problems:
                out.print("".join(traceback.format_exception(problem)), markup=False)


@contextmanager
def _kafka(wanted: Wanted, out: Console) -> Iterator[Address]:
    users = " ".join(f'user_{name}="{password}"' for name, password in {**USERS, **wanted.users}.items())
    logins = {
        f"listener.name.{each.name.lower()}.plain.sasl.jaas.config": f"{_PLAIN} {users};"
        for each in (Listener.SASL_PLAINTEXT, Listener.SASL_SSL)
    }
    with KafkaCluster(nodes=wanted.nodes, first=0, settings={**logins, **wanted.settings}, heap_mb=512) as cluster:
        yield Address({each.name: cluster.bootstrap(each) for each in _LISTENERS}, cluster.certificates)


BROKERS: Final[Mapping[str, Start]] = {"kafka": _kafka, "embedded": _embedded}
"""The start function of each broker, by its name on the command line."""
