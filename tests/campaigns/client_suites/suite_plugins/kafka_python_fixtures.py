"""Fixtures for the tests of kafka-python: brokers by address, with and without logins and TLS."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from kafka_msgs.admin import Admin

from . import replacing

_HOST: Final = "localhost"


@replacing.replaces("kafka_broker_factory")
def _factory(request: Any) -> object:
    fixtures = import_module("test.integration.fixtures")

    def factory(*, transport: str = "PLAINTEXT", sasl_mechanism: str | None = None, **_: Any) -> object:
        broker = fixtures.KafkaFixture.instance(
            0,
            host=_HOST,
            port=replacing.port(transport),
            external=True,
            transport=transport,
            sasl_mechanism=sasl_mechanism,
        )
        broker.get_topic_names = _topics
        return broker

    return factory


def _topics() -> list[str]:
    with Admin(replacing.BROKER["listeners"]["PLAINTEXT"]) as admin:
        return list(admin.list_topics())


@replacing.replaces("ssl_kafka")
def _ssl(request: Any) -> object:
    folder = Path("ssl_cert")
    folder.mkdir(exist_ok=True)
    shutil.copy(replacing.BROKER["certificates"]["authority"], folder / "ca-cert")
    return SimpleNamespace(port=replacing.port("SSL"), ssl_dir=str(folder))
