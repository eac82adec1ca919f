"""Fixtures for the integration tests of confluent-kafka-python: clusters by address, with and without logins."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from . import replacing

_UNUSED: Final = (
    "trivup",
    "trivup.clusters",
    "trivup.clusters.KafkaCluster",
    "confluent_kafka.avro",
    "confluent_kafka.schema_registry",
    "confluent_kafka.schema_registry._async",
    "confluent_kafka.schema_registry._async.schema_registry_client",
    "confluent_kafka.schema_registry.schema_registry_client",
)
"""Modules that start clusters or access a schema registry. The tests import names from them, but do not need them."""


class _Unused(ModuleType):
    """A module, and a package, whose every attribute is a class."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


sys.modules.update((name, _Unused(name)) for name in _UNUSED)


@replacing.replaces("kafka_cluster")
def _plain(request: Any) -> object:
    return _cluster("PLAINTEXT")


@replacing.replaces("sasl_cluster")
def _sasl(request: Any) -> object:
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "sasl_user", "sasl.password": "sasl_user"}
    return _cluster("SASL_PLAINTEXT", **login)


def _cluster(listener: str, **more: str) -> object:
    return import_module("tests.integration.cluster_fixture").ByoFixture(
        {"bootstrap.servers": replacing.BROKER["listeners"][listener], "security.protocol": listener, **more}
    )
