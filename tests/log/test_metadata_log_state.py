"""Partitions and topics from the metadata log, compared with the embedded broker's metadata image."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from kafka_msgs.broker.controller.image import MetadataDelta, MetadataImage
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import TopicRecord, encode_record
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.metadata_log_state import METADATA_TOPIC, MetadataLogState, Placement, read_metadata_log_state
from kafka_msgs.message import Message
from kafka_msgs.messages.config_record import ConfigRecord
from kafka_msgs.messages.partition_change_record import PartitionChangeRecord
from kafka_msgs.messages.partition_record import PartitionRecord
from kafka_msgs.messages.remove_topic_record import RemoveTopicRecord
from kafka_msgs.messages.topic_record import TopicRecord as Topic
from kafka_msgs.records import BatchBuilder, BatchHeader
from tests.support.recordings import GROUP_LOGS, LOGS, TIERED_LOGS

NAME = f"{METADATA_TOPIC}-0"
FIRST = f"{0:020}.log"
ORDERS, GONE = UUID(int=1), UUID(int=2)
TOPIC, BROKER = 2, 4


def image_of(partition: Partition) -> MetadataImage:
    image = MetadataImage()
    for record in decode_batches(METADATA_TOPIC, partition.batches()):
        assert isinstance(record, TopicRecord)
        image.apply(record.value, MetadataDelta())  # type: ignore[arg-type]
    return image


@pytest.mark.parametrize("directory", [GROUP_LOGS, LOGS, TIERED_LOGS], ids=lambda path: path.parent.name)
def test_a_recorded_log_gives_what_the_embedded_broker_reads_in_it(directory: Path) -> None:
    partition = Partition(directory / NAME)
    image, cluster = image_of(partition), read_metadata_log_state([partition])
    assert cluster.placements == {
        (topic.name, number): Placement(each.leader, tuple(each.replicas))
        for topic in image.topics.values()
        for number, each in enumerate(topic.partitions)
    }
    assert cluster.placements
    assert {name: settings for name, settings in cluster.configs.items() if settings} == {
        name: settings for (kind, name), settings in image.configs.items() if kind == TOPIC and settings
    }


@pytest.mark.parametrize("directory", [LOGS, TIERED_LOGS], ids=["logs", "tiered"])
def test_a_snapshot_and_the_log_after_it_give_what_the_whole_log_gives(directory: Path, tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    shutil.copy(directory / NAME / FIRST, tmp_path / NAME / FIRST)
    assert read_metadata_log_state([Partition(directory / NAME)]) == read_metadata_log_state(
        [Partition(tmp_path / NAME)]
    )


def written(directory: Path, *messages: tuple[Message, int], damage: bytes = b"") -> Partition:
    builder = BatchBuilder(BatchHeader())
    for message, version in messages:
        key, value = encode_record(TopicRecord(topic=METADATA_TOPIC, value=message, version=version))
        builder.append(key, value, timestamp=0)
    (directory / NAME).mkdir()
    (directory / NAME / FIRST).write_bytes(builder.build() + damage)
    return Partition(directory / NAME)


def test_later_records_change_move_and_remove(tmp_path: Path) -> None:
    log = written(
        tmp_path,
        (Topic(name="orders", topic_id=ORDERS), 0),
        (Topic(name="gone", topic_id=GONE), 0),
        (PartitionRecord(partition_id=0, topic_id=ORDERS, replicas=(1, 2), isr=(1, 2), leader=1), 0),
        (PartitionRecord(partition_id=0, topic_id=GONE, replicas=(1,), isr=(1,), leader=1), 0),
        (ConfigRecord(resource_type=TOPIC, resource_name="orders", name="retention.ms", value="1"), 0),
        (ConfigRecord(resource_type=TOPIC, resource_name="orders", name="cleanup.policy", value="delete"), 0),
        (ConfigRecord(resource_type=BROKER, resource_name="", name="log.retention.bytes", value="9"), 0),
        (ConfigRecord(resource_type=BROKER, resource_name="1", name="log.retention.ms", value="7"), 0),
        (PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2), 0),
        (PartitionChangeRecord(partition_id=0, topic_id=ORDERS, replicas=(2, 3)), 0),
        (PartitionChangeRecord(partition_id=9, topic_id=ORDERS, leader=1), 0),
        (RemoveTopicRecord(topic_id=GONE), 0),
        (ConfigRecord(resource_type=TOPIC, resource_name="orders", name="retention.ms", value=None), 0),
        damage=b"\0" * 30,
    )
    assert read_metadata_log_state([log]) == MetadataLogState(
        placements={("orders", 0): Placement(2, (2, 3))},
        configs={"orders": {"cleanup.policy": "delete", "retention.bytes": "9"}},
    )


def test_without_a_metadata_log_nothing_is_known() -> None:
    assert read_metadata_log_state([Partition(GROUP_LOGS / "orders-0")]) == MetadataLogState()
