"""Programs in other languages control the embedded broker over HTTP while their clients use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.testing import new_topic, topic_records
from tests.support.foreign_programs import GO, NODE, ProgramUnavailableError, lines_of
from tests.support.skip_reasons import not_run

REFUSED: Final = "NOT_ENOUGH_REPLICAS"
FACTS: Final = {"hits": 2, "errors": [[REFUSED], [REFUSED], []], "leader": 1, "running": [False, True]}


def control_by_kafkajs(broker: EmbeddedBroker, topic: str) -> Mapping[str, Any]:
    program = ["node", str(NODE.built() / "control.js")]
    return lines_of([*program, broker.control_url, broker.bootstrap_servers, topic])[0]


def control_by_kafka_go(broker: EmbeddedBroker, topic: str) -> Mapping[str, Any]:
    line = lines_of([*GO.command(), "control", broker.bootstrap_servers, broker.control_url, topic])[0]
    facts: Mapping[str, Any] = line.get("facts", line)
    return facts


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(brokers=2, control_port=0) as broker:
        yield broker
        assert broker.problems == []


@pytest.mark.parametrize("control", [control_by_kafkajs, control_by_kafka_go])
def test_a_program_injects_faults_and_kills_a_broker(
    broker: EmbeddedBroker, control: Callable[[EmbeddedBroker, str], Mapping[str, Any]]
) -> None:
    topic = new_topic(broker, "t", replicas=2)
    try:
        facts = control(broker, topic)
    except ProgramUnavailableError as error:
        not_run(str(error))
    assert facts == FACTS
    assert [bytes(record.value or b"") for record in topic_records(broker, topic)] == [b"one", b"two"]
