"""Test helpers for an embedded broker: under pytest, under unittest, and without a test runner."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import tomllib
import unittest
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, Producer
from kafka_msgs.errors import RequestRefusedError, UnknownInternalTopicError
from kafka_msgs.testing import KafkaTestCase, committed_offsets, new_group, new_topic, topic_records

VALUES = [b"value-%d" % number for number in range(10)]


def test_the_records_and_offsets_of_a_test() -> None:
    with EmbeddedBroker() as broker:
        topic, group = new_topic(broker, partitions=2), new_group()
        with Producer(broker.bootstrap_servers) as producer:
            for number, value in enumerate(VALUES):
                producer.send(topic, value, key=b"key", partition=number % 2)
            producer.flush()
        found = topic_records(broker, topic)
        assert [(each.partition, each.offset) for each in found] == [(p, o) for p in range(2) for o in range(5)]
        assert {each.value for each in found} == set(VALUES)
        assert committed_offsets(broker, group) == {}
        with Consumer(broker.bootstrap_servers, group_id=group, auto_offset_reset="earliest") as consumer:
            consumer.subscribe(topic)
            read = 0
            while read < len(VALUES):
                read += len(consumer.poll(5))
            consumer.commit()
        assert committed_offsets(broker, group) == {(topic, 0): 5, (topic, 1): 5}


def test_records_of_transactions_count_when_they_are_committed() -> None:
    with EmbeddedBroker() as broker:
        topic = new_topic(broker)
        with Producer(broker.bootstrap_servers, transactional_id="payments") as producer:
            producer.init_transactions()
            for commits in (True, False, True):
                end = producer.commit_transaction if commits else producer.abort_transaction
                producer.begin_transaction()
                producer.send(topic, b"%d" % commits)
                producer.flush()
                end()
        assert [each.value for each in topic_records(broker, topic)] == [b"1", b"0", b"1"]
        assert [each.value for each in topic_records(broker, topic, committed=True)] == [b"1", b"1"]


def test_topics_that_cannot_be_are_errors() -> None:
    with EmbeddedBroker() as broker:
        new_topic(broker, "orders", cleanup_policy="compact")
        with pytest.raises(RequestRefusedError, match="TOPIC_ALREADY_EXISTS"):
            new_topic(broker, "orders")
        with pytest.raises(RequestRefusedError, match="INVALID_CONFIG"):
            new_topic(broker, cleanup_policy="nonsense")
        with pytest.raises(UnknownInternalTopicError):
            topic_records(broker, "nothing")


class TestUnittest(KafkaTestCase):
    """A unittest class, run here by pytest."""

    settings: ClassVar[dict[str, Any]] = {"brokers": 2}

    def test_all_tests_of_a_class_share_the_broker(self) -> None:
        new_topic(self.broker, "shared", replicas=2)
        with pytest.raises(RequestRefusedError, match="TOPIC_ALREADY_EXISTS"):
            new_topic(self.broker, "shared")


def test_the_class_for_unittest_works_without_pytest() -> None:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(TestUnittest).run(result)
    assert (result.testsRun, result.errors, result.failures) == (1, [], [])


SUITE = """
    import pytest
    from kafka_msgs.testing import topic_records

    @pytest.fixture(scope="session")
    def kafka_broker_settings():
        return {"configs": {"num.partitions": "4"}}

    seen = set()

    @pytest.mark.parametrize("number", range(3))
    def test_broker(kafka_broker, kafka_topic, kafka_new_topic, kafka_group, number):
        assert topic_records(kafka_broker, kafka_topic) == []
        assert kafka_new_topic("orders" if SCOPE == "function" else None, partitions=3) != kafka_topic
        seen.add(kafka_broker.bootstrap_servers)

    def test_cluster(kafka_cluster, kafka_new_topic):
        kafka_new_topic(partitions=3, replicas=3)
        assert kafka_cluster.bootstrap_servers.count(":") == 3

    def test_scope():
        assert (len(seen) == 1) == (SCOPE == "session")
"""


@pytest.mark.parametrize("scope", ["function", "session"])
def test_the_fixtures_in_a_suite_of_its_own(tmp_path: Path, scope: str) -> None:
    (tmp_path / "test_suite.py").write_text(f"SCOPE = {scope!r}\n" + textwrap.dedent(SUITE))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nkafka_broker_scope = {scope}\n")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["kafka_msgs.testing.pytest_plugin"]\n')
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_suite.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


def test_a_run_of_pytest_without_the_plugin_imports_and_rewrites_nothing_of_this_package(tmp_path: Path) -> None:
    """With an entry point, pytest would rewrite the assertions of all modules of this distribution."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "pytest11" not in project.get("entry-points", {})
    test = """
        import sys

        def test_nothing_is_imported():
            assert not [name for name in sys.modules if name.startswith("kafka_msgs")]
    """
    (tmp_path / "test_alone.py").write_text(textwrap.dedent(test))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_alone.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
