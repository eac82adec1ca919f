"""The settings of a producer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.client import Consumer
from kafka_msgs.client.producer import Producer, ProducerConfig
from kafka_msgs.client.producer.config import parse_producer_properties
from kafka_msgs.errors import OptionError, RecordWriteError
from kafka_msgs.records import CompressionType

WRONG: list[dict[str, Any]] = [
    {"acks": 2},
    {"acks": True},
    {"acks": "one"},
    {"compression": "brotli"},
    {"compression": 9},
    {"batch_size": -1},
    {"batch_size": 1.5},
    {"linger": -1},
    {"linger": "5"},
    {"buffer_memory": 0},
    {"max_in_flight": 0},
    {"transactional_id": ""},
    {"transactional_id": 5},
    {"idempotence": True, "acks": 1},
    {"idempotence": True, "max_in_flight": 6},
    {"transactional_id": "t", "idempotence": False},
    {"transactional_id": "t", "acks": 1},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_a_wrong_setting_is_named(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError) as caught:
        ProducerConfig(**options)
    assert caught.value.option in options


def test_acks_and_codecs_have_names_and_numbers() -> None:
    assert [ProducerConfig(acks=each).acks for each in ("all", -1, 0, 1)] == [-1, -1, 0, 1]
    assert ProducerConfig(compression="zstd").compression is CompressionType.ZSTD
    assert ProducerConfig(compression=CompressionType.LZ4).compression is CompressionType.LZ4
    assert ProducerConfig().compression is CompressionType.NONE


def test_a_level_must_be_one_of_the_codec() -> None:
    with pytest.raises(RecordWriteError, match="levels of lz4"):
        ProducerConfig(compression="lz4", compression_level=99)


def test_idempotence_is_on_where_the_other_settings_allow_it() -> None:
    assert ProducerConfig().is_idempotent
    assert not ProducerConfig(acks=1).is_idempotent
    assert not ProducerConfig(max_in_flight=6).is_idempotent
    assert not ProducerConfig(idempotence=False).is_idempotent


def test_pauses_double_up_to_the_largest() -> None:
    config = ProducerConfig(retry_backoff=0.1, retry_backoff_max=0.5)
    assert [config.backoff(attempts) for attempts in (1, 2, 3, 4, 4000)] == [0.1, 0.2, 0.4, 0.5, 0.5]


PROPERTIES = {
    "bootstrap.servers": "localhost:9092",
    "acks": "all",
    "compression.type": "ZSTD",
    "compression.zstd.level": "7",
    "compression.gzip.level": "1",
    "batch.size": "1000",
    "linger.ms": "250",
    "buffer.memory": "1000000",
    "max.request.size": "2000",
    "max.in.flight.requests.per.connection": "3",
    "enable.idempotence": "true",
    "transactional.id": "t",
    "transaction.timeout.ms": "9000",
    "delivery.timeout.ms": "8000",
    "request.timeout.ms": "7000",
    "retry.backoff.ms": "60",
    "retry.backoff.max.ms": "600",
    "max.block.ms": "5000",
    "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
}


def test_kafkas_property_names_give_the_same_settings() -> None:
    assert ProducerConfig(**parse_producer_properties(PROPERTIES)) == ProducerConfig(
        acks=-1, compression="zstd", compression_level=7, batch_size=1000, linger=0.25, buffer_memory=1_000_000,
        max_request_size=2000, max_in_flight=3, idempotence=True, transactional_id="t", transaction_timeout=9.0,
        delivery_timeout=8.0, request_timeout=7.0, retry_backoff=0.06, retry_backoff_max=0.6, max_block=5.0,
    )  # fmt: skip


def test_a_producer_and_a_consumer_take_kafkas_file_of_properties(tmp_path: Path) -> None:
    path = tmp_path / "client.client_properties"
    lines = [f"{name} = {value}" for name, value in {**PROPERTIES, "group.id": "g"}.items()]
    path.write_text("# of Kafka\n" + "\n".join(lines), encoding="utf-8")
    with Producer(path, linger=0.5) as producer, Consumer(path) as consumer:
        assert producer.config == ProducerConfig(**{**parse_producer_properties(PROPERTIES), "linger": 0.5})
        assert str(producer.client.core.config.bootstrap_servers[0]) == "localhost:9092"
        assert consumer.config.group_id == "g"
    with pytest.raises(OptionError, match="No such file"):
        Producer(tmp_path / "missing")


@pytest.mark.parametrize(("name", "value"), [("linger.ms", "5s"), ("acks", "some"), ("enable.idempotence", "yes")])
def test_a_property_that_cannot_be_read_is_named(name: str, value: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_producer_properties({name: value})
    assert (caught.value.option, caught.value.value) == (name, value)
