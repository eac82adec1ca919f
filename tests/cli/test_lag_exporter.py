"""``kafka-msgs lag`` over time: statuses of live groups, and the exporter, with the parser of Prometheus."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from attrs import evolve
from prometheus_client.parser import text_string_to_metric_families

from kafka_msgs.admin import Admin
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.endpoints.routes import HttpRequest
from kafka_msgs.cli.group_commands.broker_groups import BrokerGroups, PartialBrokerGroups
from kafka_msgs.cli.group_commands.lag_exporter import LagExporter
from kafka_msgs.cli.group_commands.lag_options import LagOptions
from kafka_msgs.cli.group_commands.live_lags import LiveLags
from kafka_msgs.client import TopicPartition
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.client.producer import Producer
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, DeadlineError
from kafka_msgs.report.metric_definitions import DEFINITIONS
from kafka_msgs.testing import new_topic
from tests.support.command_line import Run

INTERVAL = 0.01
OPTIONS = LagOptions(
    requested=(), groups=(), exclude_groups=(), topics=(), exclude_topics=(), end_offsets=None, records_only=True,
    status=True, watch=None, rounds=None, listen=None, refresh=INTERVAL, cluster_name=None, max_lag=None,
    max_seconds=None, prometheus=False,
)  # fmt: skip
ROW = {
    "group": "billing", "topic": "orders", "partition": 0, "committedOffset": 4, "endOffset": 10, "lag": 6, "ahead": 0,
    "lagSeconds": 1.5, "status": "STALLED", "clientId": "app", "clientHost": "/127.0.0.1",
}  # fmt: skip


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def admin(broker: EmbeddedBroker) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    topic = new_topic(broker)
    produce(broker, topic, 10)
    return topic


def produce(broker: EmbeddedBroker, topic: str, count: int) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=0)


def commit(admin: Admin, group: str, topic: str, offset: int) -> None:
    admin.alter_group_offsets(group, {TopicPartition(topic, 0): offset}).all()


def watch(admin: Admin, group: str) -> Callable[[], str]:
    """Return a function for the next round, which returns the status of the group's only partition."""
    lags = LiveLags(BrokerGroups(admin), evolve(OPTIONS, requested=(group,)), INTERVAL)

    def status() -> str:
        time.sleep(2 * INTERVAL)
        (row,) = lags.rows()
        return str(row["status"])

    return status


def test_a_group_without_members_is_stopped_and_all_read_is_ok(
    broker: EmbeddedBroker, admin: Admin, topic: str
) -> None:
    commit(admin, "idle", topic, 4)
    status = watch(admin, "idle")
    assert status() == "UNKNOWN"
    time.sleep(0.2)
    assert status() == "STOPPED"
    commit(admin, "idle", topic, 10)
    assert status() == "OK"
    time.sleep(1)
    produce(broker, topic, 1)
    # The group had nothing to consume before this record.
    assert status() == "UNKNOWN"
    time.sleep(1)
    assert status() == "STOPPED"


def test_offsets_that_move_without_members_have_a_trend(broker: EmbeddedBroker, admin: Admin, topic: str) -> None:
    commit(admin, "slow", topic, 1)
    status = watch(admin, "slow")
    status()
    for offset in (2, 3, 4):
        produce(broker, topic, 1)
        commit(admin, "slow", topic, offset)
        found = status()
    assert found == "WARNING"
    commit(admin, "slow", topic, 8)
    assert status() == "OK"
    commit(admin, "slow", topic, 5)
    assert status() == "REWOUND"


def test_a_member_that_owns_a_partition_and_does_not_commit_is_stalled(
    broker: EmbeddedBroker, admin: Admin, topic: str
) -> None:
    commit(admin, "stuck", topic, 4)
    with Consumer(broker.bootstrap_servers, group_id="stuck", client_id="app-1", auto_commit=False) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment:
            consumer.poll(0.2)
        status = watch(admin, "stuck")
        assert [status() for _ in range(3)] == ["UNKNOWN", "UNKNOWN", "STALLED"]
        (row,) = LiveLags(BrokerGroups(admin), evolve(OPTIONS, requested=("stuck",)), 1).rows()
        assert (row["clientId"], row["clientHost"]) == ("app-1", "/127.0.0.1")


def test_groups_and_topics_are_selected_by_whole_names(run: Run, broker: EmbeddedBroker, admin: Admin) -> None:
    one, two = new_topic(broker, "sel-one"), new_topic(broker, "sel-two")
    for group in ("sel-a", "sel-b", "other"):
        admin.alter_group_offsets(group, {TopicPartition(one, 0): 0, TopicPartition(two, 0): 0}).all()

    def selected(*options: str) -> set[tuple[str, str]]:
        result = run("lag", "-b", broker.bootstrap_servers, "--topics", "sel-.*", *options, "--json")
        return {(row["group"], row["topic"]) for row in json.loads(result.stdout)}

    assert selected("--groups", "sel-.*", "--exclude-topics", two) == {("sel-a", one), ("sel-b", one)}
    assert selected("--groups", "sel-a", "--groups", "other") == {
        (g, t) for g in ("sel-a", "other") for t in (one, two)
    }
    assert selected("--groups", "sel-.*", "--exclude-groups", ".*-b") == {("sel-a", one), ("sel-a", two)}
    assert selected("--groups", "sel") == set()
    result = run("lag", "-b", broker.bootstrap_servers, "--groups", "(")
    assert (result.exit_code, "'(' is not a regular expression" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "options",
    [
        ("--status",),
        ("--listen", ":0", "--watch", "1s"),
        ("--listen", "localhost"),
        ("--listen", ":70000"),
        ("--listen", ":0", "--max-lag", "5"),
        ("--rounds", "2"),
        ("--end-offsets", __file__),
        ("--max-seconds", "5m", "--records-only"),
    ],
    ids=" ".join,
)
def test_combinations_that_are_refused(run: Run, options: tuple[str, ...]) -> None:
    assert run("lag", "-b", "localhost:1", *options).exit_code == 2


def test_files_are_not_served(run: Run) -> None:
    assert "--listen needs --bootstrap-server" in run("lag", "--log-dirs", ".", "--listen", ":0").stderr


def test_files_have_no_age_that_a_limit_could_use(run: Run) -> None:
    result = run("lag", "--log-dirs", ".", "--max-seconds", "5m")
    assert (result.exit_code, "--max-seconds needs --bootstrap-server" in result.stderr) == (2, True)


def families(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Return the values of each metric by labels. The parser checks the format."""
    return {
        sample.name: {tuple(each.labels.items()): each.value for each in family.samples}
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def get(exporter: LagExporter, path: str) -> tuple[int, bytes]:
    (route,) = (each for each in exporter.routes() if each.path == path)
    response: Any = route.handle(HttpRequest(method="GET", target=path))
    return int(response.status), response.body


def test_a_failed_refresh_is_reported_and_leaves_no_old_lags(caplog: pytest.LogCaptureFixture) -> None:
    outcomes: list[Any] = [
        ([ROW], ["group-2: NOT_COORDINATOR"]),
        DeadlineError(waiting_for="list_groups"),
    ]

    def collect() -> Any:
        found = outcomes.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    exporter = LagExporter(collect, "c1", 60)
    assert get(exporter, "/healthz")[0] == 503
    exporter.refresh()
    status, body = get(exporter, "/healthz")
    assert (status, json.loads(body)["problems"]) == (200, ["group-2: NOT_COORDINATOR"])
    found = families(get(exporter, "/metrics")[1].decode())
    labels = {"group": "billing", "topic": "orders", "partition": "0", "client_id": "app", "member_host": "/127.0.0.1"}
    assert found["kafka_group_lag_records"] == {(("cluster", "c1"), *labels.items()): 6}
    assert found["kafka_group_lag_records_sum"] == {(("cluster", "c1"), ("group", "billing")): 6}
    assert found["kafka_group_status"] == {(("cluster", "c1"), ("group", "billing")): 4}
    assert found["kafka_msgs_exporter_up"] == {(("cluster", "c1"),): 1}
    assert found["kafka_msgs_exporter_problems"] == {(("cluster", "c1"),): 1}
    exporter.refresh()
    status, body = get(exporter, "/healthz")
    assert (status, "list_groups" in json.loads(body)["reason"]) == (503, True)
    found = families(get(exporter, "/metrics")[1].decode())
    assert not [name for name in found if name.startswith("kafka_group")]
    assert found["kafka_msgs_exporter_up"] == {(("cluster", "c1"),): 0}
    assert found["kafka_msgs_exporter_failed_refreshes_total"] == {(("cluster", "c1"),): 1}
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def test_a_refresh_that_hangs_makes_the_exporter_unhealthy() -> None:
    exporter = LagExporter(lambda: ([ROW], []), "c1", 0.001)
    exporter.refresh()
    time.sleep(0.05)
    assert exporter.failure == "no refresh has finished for 3 intervals"


def test_a_group_that_fails_hides_no_other_group(admin: Admin, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for group in ("sound", "failing"):
        commit(admin, group, topic, 4)
    source = PartialBrokerGroups(admin)
    listed = source.admin.list_offsets_of_groups

    def partly(groups: Any) -> Any:
        found = listed(groups)
        error = BrokerError(
            error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, retriable=True, api="OffsetFetch", subject="failing"
        )
        return type(found)({**found.outcomes, "failing": error})

    monkeypatch.setattr(source.admin, "list_offsets_of_groups", partly)
    rows = LiveLags(source, evolve(OPTIONS, requested=("sound", "failing")), 1).rows()
    assert [row["group"] for row in rows] == ["sound"]
    assert len(source.problems) == 1
    assert source.problems[0].startswith("failing: ")


def test_the_exporter_serves_a_cluster_until_sigterm(topic: str, admin: Admin, broker: EmbeddedBroker) -> None:
    commit(admin, "served", topic, 4)
    arguments = [
        "lag",
        "-b",
        broker.bootstrap_servers,
        "--listen",
        ":0",
        "--refresh",
        "200ms",
        "--cluster-name",
        "test",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "kafka_msgs", *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            assert url.startswith("http://127.0.0.1:")
            found = until_healthy(url)
            assert found["kafka_group_lag_records_sum"][("cluster", "test"), ("group", "served")] == 6
            assert set(found) <= set(DEFINITIONS)
            with urlopen(Request(url, method="HEAD"), timeout=30) as response:
                assert (response.status, response.read()) == (200, b"")
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


INTERRUPTED_END = """
import os, signal
from kafka_msgs.broker.endpoints.http_server import _Connection
from kafka_msgs.cli.interruption import interrupt_on_sigterm
from kafka_msgs.cli.group_commands.lag_exporter import LagExporter, serve

def connection_lost(self, exc, original=_Connection.connection_lost):
    os.kill(os.getpid(), signal.SIGTERM)
    original(self, exc)

_Connection.connection_lost = connection_lost
interrupt_on_sigterm()
serve(LagExporter(lambda: ([], []), "c1", 60), "127.0.0.1", 0, lambda url: print(url, flush=True))
"""
"""An exporter that receives SIGTERM while a connection ends."""


def test_sigterm_while_a_connection_ends_stops_the_exporter() -> None:
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED_END], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            with urlopen(f"{process.stdout.readline().strip()}/metrics", timeout=30):
                pass
            assert process.wait(60) == 0
        finally:
            process.kill()


def until_healthy(url: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    health, deadline = url.replace("/metrics", "/healthz"), time.monotonic() + 60
    while status_of(health) != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with urlopen(url, timeout=30) as response:
        assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
        return families(response.read().decode())


def status_of(url: str) -> int:
    try:
        with urlopen(url, timeout=30) as response:
            return int(response.status)
    except HTTPError as error:
        return error.code
