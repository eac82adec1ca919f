"""Clusters for the client tests: ``KAFKA_MSGS_CLIENTS_AT`` is ``embedded``, ``kafka`` or both."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kafka_msgs.admin import Admin
from kafka_msgs.broker import EmbeddedBroker, ListenerConfig
from tests.broker.clients.places import EMBEDDED, SETTINGS, Place
from tests.support.cluster_topics import make_topics
from tests.support.kafka_cluster import ClusterAddresses, cluster_needs
from tests.support.kafka_listeners import USERS, Listener
from tests.support.skip_reasons import not_run


@pytest.fixture(scope="package")
def embedded() -> Iterator[Place]:
    listeners = (ListenerConfig(), ListenerConfig(name="SASL", protocol="SASL_PLAINTEXT"))
    with (
        EmbeddedBroker(
            brokers=3, listeners=listeners, users=USERS, authorizer=True, allow_everyone=True, configs=SETTINGS
        ) as broker,
        Admin(broker.bootstrap_servers) as admin,
    ):
        yield Place(broker.bootstrap_servers, broker.bootstrap_of("SASL"), lambda new: admin.create_topics(new).all())
        assert broker.problems == []


@pytest.fixture(scope="package", params=os.environ.get("KAFKA_MSGS_CLIENTS_AT", EMBEDDED).split(","))
def place(request: pytest.FixtureRequest) -> Place:
    """Return the embedded broker or the real cluster. Both must behave the same."""
    if request.param == EMBEDDED:
        found: Place = request.getfixturevalue("embedded")
        return found
    reason = cluster_needs()
    if reason is not None:
        not_run(reason)
    cluster: ClusterAddresses = request.getfixturevalue("kafka_cluster")
    login = cluster.bootstrap(Listener.SASL_PLAINTEXT)
    return Place(cluster.bootstrap_servers, login, lambda new: make_topics(cluster, *new))
