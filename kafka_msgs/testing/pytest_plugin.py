"""The pytest plugin: embedded broker fixtures for testing Kafka applications.

A project enables it once, in the ``conftest.py`` of its root or in the pytest configuration::

    pytest_plugins = ["kafka_msgs.testing.pytest_plugin"]  # conftest.py
    addopts = -p kafka_msgs.testing.pytest_plugin          # pytest.ini

It is not an entry point, because pytest would then rewrite the assertions of all modules of this package in every run
of every project. A test requests fixtures by name::

    def test_orders_are_written(kafka_broker, kafka_topic):
        write_orders(kafka_broker.bootstrap_servers, kafka_topic)
        assert len(topic_records(kafka_broker, kafka_topic)) == 3

``kafka_broker`` has one broker and ``kafka_cluster`` three. The ini option ``kafka_broker_scope`` sets their scope:
``function`` (the default), ``class``, ``module``, ``package`` or ``session``. Override the fixture
``kafka_broker_settings`` to change ``BrokerConfig``. Each pytest-xdist process runs separate brokers, at ports that the
system chooses. An unexpected exception in the broker is an error of the test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pytest

if TYPE_CHECKING:
    from kafka_msgs.broker import EmbeddedBroker
    from kafka_msgs.testing.cassettes import Cassette

Scope: TypeAlias = Literal["session", "package", "module", "class", "function"]

_OPTION: Final = "kafka_broker_scope"
_RECORD: Final = "--kafka-record"
_CLUSTER: Final = "--kafka-cluster"
_BROKERS_OF_A_CLUSTER: Final = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addini(_OPTION, "how long the brokers of kafka_broker and kafka_cluster live", default="function")
    group = parser.getgroup("kafka", "Kafka")
    group.addoption(
        _RECORD,
        choices=("once", "none", "all"),
        default="once",
        help="cassettes: record what is missing (once), only play (none), or record all anew",
    )
    group.addoption(_CLUSTER, metavar="HOST:PORT", help="the cluster that cassettes record")


def pytest_configure(config: pytest.Config) -> None:
    """Add the marker."""
    config.addinivalue_line("markers", "kafka_cassette(file, **options): the cassette of the fixture kafka_cassette")


def _scope(fixture_name: str, config: pytest.Config) -> Scope:
    """Return the scope of the broker fixtures, as a pytest scope callback."""
    scope: Scope = config.getini(_OPTION)
    return scope


@pytest.fixture(scope="session")
def kafka_broker_settings() -> dict[str, Any]:
    """Return the broker configuration: attributes of ``BrokerConfig``. Override this fixture to change it."""
    return {}


def _running(settings: dict[str, Any]) -> Iterator[EmbeddedBroker]:
    from kafka_msgs.broker import EmbeddedBroker

    with EmbeddedBroker(**settings) as broker:
        yield broker
        for problem in broker.problems:
            raise problem


@pytest.fixture(scope=_scope)
def kafka_broker(kafka_broker_settings: dict[str, Any]) -> Iterator[EmbeddedBroker]:
    """Yield a running broker: a cluster of one."""
    yield from _running(kafka_broker_settings)


@pytest.fixture(scope=_scope)
def kafka_cluster(kafka_broker_settings: dict[str, Any]) -> Iterator[EmbeddedBroker]:
    """Yield a running cluster of three brokers."""
    yield from _running({"brokers": _BROKERS_OF_A_CLUSTER, **kafka_broker_settings})


@pytest.fixture
def kafka_new_topic(request: pytest.FixtureRequest) -> Callable[..., str]:
    """Return a function that creates a topic on the test's broker and returns its name.

    Its arguments are the arguments of ``new_topic`` after the broker: ``kafka_new_topic(partitions=3)``.
    """
    from kafka_msgs.testing.broker_helpers import new_topic

    broker = _broker_of(request)

    def create(name: str | None = None, **settings: Any) -> str:
        return new_topic(broker, name, **settings)

    return create


@pytest.fixture
def kafka_topic(kafka_new_topic: Callable[..., str]) -> str:
    """Return the name of a new topic with one partition on the test's broker."""
    return kafka_new_topic()


@pytest.fixture
def kafka_group() -> str:
    """Return a unique group id."""
    from kafka_msgs.testing.broker_helpers import new_group

    return new_group()


def _broker_of(request: pytest.FixtureRequest) -> EmbeddedBroker:
    """Return the cluster of a test if it requests one, or its broker."""
    name = "kafka_cluster" if "kafka_cluster" in request.fixturenames else "kafka_broker"
    broker: EmbeddedBroker = request.getfixturevalue(name)
    return broker


@pytest.fixture(scope="session")
def kafka_cassette_cluster(request: pytest.FixtureRequest) -> str | None:
    """Return the addresses of the real cluster to record: the option ``--kafka-cluster``.

    Override this fixture to start a cluster.
    """
    cluster: str | None = request.config.getoption(_CLUSTER)
    return cluster


@pytest.fixture
def kafka_cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """Yield a cassette that replaces a cluster: it replays the recording, or creates it.

    The file is ``cassettes/MODULE/TEST.jsonl`` next to the test module. The marker ``kafka_cassette`` may name another
    file, relative to that folder, and accepts the other options of ``Cassette``.
    """
    from kafka_msgs.testing.cassettes import Cassette

    marker = request.node.get_closest_marker("kafka_cassette")
    options = dict(marker.kwargs) if marker else {}
    module = request.path
    given = marker.args[0] if marker and marker.args else f"{module.stem}/{_file_name(request.node.name)}.jsonl"
    options.setdefault("mode", request.config.getoption(_RECORD))
    cluster = partial(request.getfixturevalue, "kafka_cassette_cluster")
    cassette = Cassette(module.parent / "cassettes" / given, cluster, **options)
    cassette.start()
    failures = request.session.testsfailed
    yield cassette
    cassette.close(keep=request.session.testsfailed == failures)
    cassette.check()


def _file_name(test: str) -> str:
    return re.sub(r"[^\w.-]+", "-", test).strip("-")
