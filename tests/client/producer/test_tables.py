"""Rows of Arrow tables as records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from kafka_msgs.client.producer import partition_of_key
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, ColumnTypeError, UnknownColumnError
from kafka_msgs.messages.produce_request import ProduceRequest
from kafka_msgs.records import Record, read_batches
from tests.support.produce_cluster import ProduceCluster, Refused


def send(cluster: ProduceCluster, table: Any) -> Any:
    """Send a table, and wait for its delivery."""
    producer = cluster.producer(linger=0.0, batch_size=200)
    sent = cluster.network.run(producer.add_table("t", table, 77))
    return cluster.network.run(producer.delivered(sent, cluster.network.now() + 60))


def written(cluster: ProduceCluster) -> list[Record]:
    """Return the records of all requests."""
    data = [
        each.records
        for request in cluster.requests(ProduceRequest)
        for topic in request.topic_data
        for each in topic.partition_data
    ]
    return [record for records in data for batch in read_batches(records) for record in batch]


def test_every_row_becomes_a_record_and_the_result_says_where_it_is() -> None:
    cluster = ProduceCluster()
    keys = [b"k%d" % (number % 5) for number in range(200)]
    values = [b"%d" % number for number in range(200)]
    found = send(cluster, pa.table({"key": keys, "value": values}))
    assert found.schema.names == ["partition", "offset", "timestamp"]
    rows = found.to_pylist()
    assert [row["partition"] for row in rows] == [partition_of_key(key, 3) for key in keys]
    assert [cluster.logs[row["partition"]].values[row["offset"]] for row in rows] == values
    assert {row["timestamp"] for row in rows} == {77}


def test_all_columns_arrive() -> None:
    cluster = ProduceCluster()
    headers = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "key": pa.array(["text", None]),
            "value": pa.array([None, b"v"], pa.large_binary()),
            "headers": pa.array([[{"name": "a", "value": b"1"}, {"name": "a", "value": None}], None], headers),
            "timestamp": pa.array([datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "partition": pa.array([2, 2], pa.int32()),
        }
    )
    assert send(cluster, table).to_pylist() == [
        {"partition": 2, "offset": 0, "timestamp": 5000},
        {"partition": 2, "offset": 1, "timestamp": 77},
    ]
    assert written(cluster) == [
        Record(0, 5000, b"text", None, (("a", b"1"), ("a", None))),
        Record(1, 77, None, b"v", ()),
    ]


def test_a_record_batch_is_a_table_and_an_empty_table_sends_nothing() -> None:
    cluster = ProduceCluster()
    assert send(cluster, pa.RecordBatch.from_pydict({"value": [b"v"]})).num_rows == 1
    assert send(cluster, pa.table({"value": pa.array([], pa.binary())})).num_rows == 0
    assert [record.value for record in written(cluster)] == [b"v"]


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"values": [b"v"]}, UnknownColumnError),
        ({"value": [5]}, ColumnTypeError),
        ({"partition": ["0"]}, ColumnTypeError),
        ({"headers": [["a"]]}, ColumnTypeError),
        ({"timestamp": [1.5]}, ColumnTypeError),
    ],
)
def test_a_wrong_column_is_named(table: dict[str, Any], error: type[Exception]) -> None:
    cluster = ProduceCluster()
    with pytest.raises(error, match=next(iter(table))):
        send(cluster, pa.table(table))
    assert written(cluster) == []


def test_what_is_not_a_table_is_refused() -> None:
    with pytest.raises(ColumnTypeError, match="an Arrow table"):
        send(ProduceCluster(), [{"value": b"v"}])


def test_the_error_of_a_row_is_raised() -> None:
    cluster = ProduceCluster()
    cluster.faults.append(Refused(ErrorCode.INVALID_RECORD))
    with pytest.raises(BrokerError, match="INVALID_RECORD"):
        send(cluster, pa.table({"value": [b"v"]}))
