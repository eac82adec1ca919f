"""``kafka-msgs lag --listen`` against real brokers, compared with Kafka's own tool."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from urllib.error import HTTPError
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from kafka_msgs.admin import Admin
from kafka_msgs.client import TopicPartition
from kafka_msgs.client.consumer import Consumer
from tests.support.command_line import squeezed
from tests.support.kafka_cluster import ClusterAddresses

Sample = tuple[str, dict[str, str], float]


def test_the_exporter_has_the_lags_owners_and_statuses_of_a_real_cluster(
    kafka_cluster: ClusterAddresses, admin: Admin, filled: str, group: str
) -> None:
    """The consumer owns both partitions and never commits."""
    admin.alter_group_offsets(group, {TopicPartition(filled, 0): 4, TopicPartition(filled, 1): 5}).all()
    options = ("-b", kafka_cluster.bootstrap_servers, "--timeout", "30s", "--refresh", "500ms", "--groups", group)
    command = [sys.executable, "-m", "kafka_msgs", "lag", "--listen", ":0", *options]
    with (
        Consumer(kafka_cluster.bootstrap_servers, group_id=group, client_id="reader", auto_commit=False) as consumer,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as exporter,
    ):
        consumer.subscribe([filled])
        try:
            assert exporter.stdout is not None
            url = exporter.stdout.readline().split()[-1]
            samples = until_stalled(consumer, url)
            described = squeezed(kafka_cluster.consumer_groups("--describe", "--group", group))
        finally:
            exporter.send_signal(signal.SIGTERM)
        assert exporter.wait(60) == 0
    by_tool = {tuple(line.split()[1:3]): line.split()[5] for line in described if line.startswith(group)}
    lags = [each for each in samples if each[0] == "kafka_group_lag_records"]
    assert {(labels["topic"], labels["partition"]): f"{value:.0f}" for _, labels, value in lags} == by_tool
    assert {labels["client_id"] for _, labels, _ in lags} == {"reader"}
    assert {labels["member_host"] for _, labels, _ in lags} == {"/127.0.0.1"}
    assert {labels["cluster"] for _, labels, _ in lags} == {admin.describe_cluster().cluster_id}
    assert [value for name, _, value in samples if name == "kafka_group_lag_records_sum"] == [6]


def until_stalled(consumer: Consumer, url: str) -> list[Sample]:
    """Keep the consumer in its group until the exporter reports that it is stalled."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        consumer.poll(0.5)
        found = scraped(url)
        if ("kafka_group_status", 4.0) in {(name, value) for name, _, value in found}:
            return found
    raise AssertionError("the group is not stalled")


def scraped(url: str) -> list[Sample]:
    try:
        with urlopen(url, timeout=30) as response:
            text = response.read().decode()
    except HTTPError as error:
        text = error.read().decode()
    return [
        (each.name, each.labels, each.value)
        for family in text_string_to_metric_families(text)
        for each in family.samples
    ]
