"""The classification of damaged records: exactly the records that can be decoded are no problems."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from kafka_msgs.analysis.record_classification import OFFSETS_TOPIC, RECORD_COLUMNS, classify
from kafka_msgs.columns.record_tables import walk_record_table
from kafka_msgs.columns.types import record_schema
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.internal_topics.records import UnknownRecord, decode_record
from tests.support.recordings import GROUP_LOGS

Pair = tuple[bytes | None, bytes | None]


def recorded() -> list[Pair]:
    """Return the different records of a broker's partitions, without transaction markers."""
    found: set[Pair] = set()
    for path in sorted(GROUP_LOGS.glob(f"{OFFSETS_TOPIC}-*/*.log")):
        for batch in walk_record_table(path, columns=RECORD_COLUMNS):
            assert isinstance(batch, pa.RecordBatch)
            rows = zip(*(batch[name].to_pylist() for name in ("key", "value", "is_control")), strict=True)
            found |= {(key, value) for key, value, is_control in rows if not is_control}
    return sorted(found, key=repr)


def damaged(data: bytes | None, dice: Random) -> bytes | None:
    """Return bytes that are cut, or have one byte changed or inserted."""
    if data is None or dice.random() < 0.4:
        return data
    at = dice.randrange(len(data) + 1)
    return data[:at] + dice.choice((b"", bytes([dice.randrange(256)]) + data[at + dice.randrange(2) :]))


def batch_of(pairs: list[Pair]) -> pa.RecordBatch:
    count, schema = len(pairs), record_schema(RECORD_COLUMNS)
    values = {
        "offset": range(count),
        "timestamp_ms": [0] * count,
        "key": [key for key, _ in pairs],
        "value": [value for _, value in pairs],
        "producer_id": [-1] * count,
    }
    columns = [pa.array(values.get(each.name, [False] * count), each.type) for each in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def is_readable(pair: Pair) -> bool:
    try:
        return not isinstance(decode_record(OFFSETS_TOPIC, *pair), UnknownRecord)
    except KafkaMsgsError:
        return False


@pytest.mark.parametrize("seed", range(4))
def test_problems_are_the_records_that_cannot_be_decoded(seed: int) -> None:
    dice, known = Random(seed), recorded()
    pairs = [(damaged(key, dice), damaged(value, dice)) for key, value in dice.choices(known, k=1500)]
    found = classify(batch_of(pairs), "file")
    sound = {*found.commits["offset"].to_pylist(), *found.others["offset"].to_pylist()}
    assert sound == {number for number, pair in enumerate(pairs) if is_readable(pair)}
    assert set(found.problems["logOffset"].to_pylist()) == set(range(len(pairs))) - sound
    assert found.others.num_rows > 100
