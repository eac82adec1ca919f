"""Rows of Arrow tables as records."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_msgs.client.producer import partition_of_key
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.core import ProducerCore
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, ColumnTypeError, RecordWriteError, UnknownColumnError
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


ROWS = st.lists(
    st.tuples(
        st.none() | st.sampled_from([b"a", b"b", b"customer-17", b""]),
        st.none() | st.binary(max_size=60),
        st.none() | st.integers(0, 2**40),
        st.none() | st.integers(0, 2),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, chunk=st.integers(1, 15), with_headers=st.booleans())
def test_any_table_is_written_as_its_rows_are(rows: list[Any], chunk: int, with_headers: bool) -> None:
    cluster = ProduceCluster()
    kinds = {"key": pa.binary(), "value": pa.large_binary(), "timestamp": pa.int64(), "partition": pa.int32()}
    columns = {name: pa.array([row[place] for row in rows], kind) for place, (name, kind) in enumerate(kinds.items())}
    if with_headers:
        pair = pa.struct({"name": pa.string(), "value": pa.binary()})
        columns["headers"] = pa.array([[("n", b"1")]] * len(rows), pa.list_(pair))
    whole = pa.table(columns)
    pieces = [whole.slice(start, chunk) for start in range(0, len(rows), chunk)]
    found = send(cluster, pa.concat_tables([whole.schema.empty_table(), *pieces])).to_pylist()
    assert len(found) == len(rows)
    for (key, value, time, partition), place in zip(rows, found, strict=True):
        wanted = partition if partition is not None else None if key is None else partition_of_key(key, 3)
        assert wanted in (None, place["partition"])
        assert place["timestamp"] == (77 if time is None else time)
        assert cluster.logs[place["partition"]].values[place["offset"]] == value
    assert len({(row["partition"], row["offset"]) for row in found}) == len(rows)
    for number in range(3):
        offsets = [row["offset"] for row, asked in zip(found, rows, strict=True) if asked[3] == number]
        assert offsets == sorted(offsets), "rows of one partition stay in their order"
    assert all(record.headers == ((("n", b"1"),) if with_headers else ()) for record in written(cluster))


def test_rows_of_a_batch_that_was_split_are_found() -> None:
    cluster = ProduceCluster()
    cluster.faults.append(Refused(ErrorCode.MESSAGE_TOO_LARGE))
    values = [b"%03d" % number for number in range(100)]
    producer = cluster.producer(linger=0.0, batch_size=1000)
    pieces = cluster.network.run(producer.add_table("t", pa.table({"value": values}), 77))
    found = cluster.network.run(producer.delivered(pieces, cluster.network.now() + 60)).to_pylist()
    assert [cluster.logs[row["partition"]].values[row["offset"]] for row in found] == values


def test_a_partitioner_of_the_user_decides_for_rows_without_a_partition() -> None:
    cluster = ProduceCluster()
    core = cluster.network.core("b1:9092,b2:9092,b3:9092")
    seen: list[tuple[str, Any, int]] = []

    def choose(topic: str, key: Any, count: int) -> int:
        seen.append((topic, key, count))
        return 2

    producer = ProducerCore(core, ProducerConfig(), partitioner=choose)
    table = pa.table({"key": [b"a", None], "partition": pa.array([None, 1], pa.int8())})
    pieces = cluster.network.run(producer.add_table("t", table, 77))
    found = cluster.network.run(producer.delivered(pieces, cluster.network.now() + 60))
    assert found.column("partition").to_pylist() == [2, 1]
    assert seen == [("t", b"a", 3), ("t", None, 3)]


@pytest.mark.parametrize("partition", [-1, 3, 2**40])
def test_a_partition_that_is_not_there_is_named_and_nothing_is_sent(partition: int) -> None:
    cluster = ProduceCluster()
    with pytest.raises(RecordWriteError, match=f"not {partition}"):
        send(cluster, pa.table({"partition": [0, partition]}))
    assert written(cluster) == []


def test_without_acknowledgements_the_offsets_are_unknown() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(acks=0)
    pieces = cluster.network.run(producer.add_table("t", pa.table({"value": [b"a", b"b"]}), 77))
    found = cluster.network.run(producer.delivered(pieces, cluster.network.now() + 60))
    assert found.column("offset").to_pylist() == [-1, -1]


def test_a_row_that_is_too_large_and_a_time_that_cannot_be_are_named() -> None:
    with pytest.raises(RecordWriteError, match="larger than the limit"):
        send(ProduceCluster(), pa.table({"value": [b"a", b"x" * (2 << 20)]}))
    with pytest.raises(RecordWriteError, match="timestamp"):
        send(ProduceCluster(), pa.table({"timestamp": [5, -7]}))
    with pytest.raises(ColumnTypeError, match="integers of 64 bits"):
        send(ProduceCluster(), pa.table({"timestamp": pa.array([2**63], pa.uint64())}))


def test_a_table_larger_than_the_buffer_is_sent_all_the_same() -> None:
    cluster = ProduceCluster()
    producer = cluster.producer(linger=0.0, batch_size=400, buffer_memory=3000)
    values = [b"%05d" % number * 4 for number in range(2000)]
    pieces = cluster.network.run(producer.add_table("t", pa.table({"value": values}), 77))
    found = cluster.network.run(producer.delivered(pieces, cluster.network.now() + 60))
    assert found.num_rows == 2000
    assert sorted(filter(None, cluster.values())) == values
