"""The settings of a producer."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.client.producer import ProducerConfig
from kafka_msgs.errors import OptionError, RecordWriteError
from kafka_msgs.records import Compression

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
    assert ProducerConfig(compression="zstd").compression is Compression.ZSTD
    assert ProducerConfig(compression=Compression.LZ4).compression is Compression.LZ4
    assert ProducerConfig().compression is Compression.NONE


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
