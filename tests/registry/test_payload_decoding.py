"""The header of a payload, and unusable schemas, in any format."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from kafka_msgs.errors import PayloadError, RegistryError
from kafka_msgs.registry import PayloadReader, RegisteredSchema, StaticSchemas

TARGET = RegisteredSchema(7, "AVRO", '"int"')
GOOD = b"\0\0\0\0\7\x0a"


class Counted(StaticSchemas):
    """Schemas that count the lookups of each, and one that is unavailable."""

    def __init__(self) -> None:
        written = [TARGET, RegisteredSchema(8, "JSON", "{}"), RegisteredSchema(9, "AVRO", "{")]
        super().__init__(written, source="a test")
        self.asked: Counter[int] = Counter()

    def by_id(self, schema_id: int) -> RegisteredSchema:
        self.asked[schema_id] += 1
        if schema_id == 10:
            raise RegistryError(source="a test", reason="gone")
        return super().by_id(schema_id)


def row(schema_id: int) -> bytes:
    return bytes(1) + schema_id.to_bytes(4) + GOOD[5:]


def test_a_schema_that_cannot_be_used_is_asked_for_once_for_all_its_rows() -> None:
    schemas = Counted()
    reader = PayloadReader(TARGET, schemas)
    found = reader.decode([row(each) for each in (6, 7, 8, 9)] * 50)
    assert found.values.to_pylist() == [None, 5, None, None] * 50
    assert schemas.asked == {6: 1, 7: 1, 8: 1, 9: 1}
    reasons = [error and error["reason"].partition(":")[0] for error in found.errors.to_pylist()]
    kind = "its schema is of the kind JSON, expected AVRO"
    assert reasons == ["a test has no schema 6", None, kind, "schema 9"] * 50
    reader.decode([row(6), row(7)])
    assert schemas.asked == {6: 2, 7: 1, 8: 1, 9: 1}


def test_a_registry_that_does_not_answer_ends_the_reading() -> None:
    with pytest.raises(RegistryError, match="a test: gone"):
        PayloadReader(TARGET, Counted()).decode([GOOD, row(10)])


@pytest.mark.parametrize("payload", [b"", b"\0\0\0\0", b"\1\0\0\0\7\x0a", b"{}"])
def test_bytes_without_the_header(payload: bytes) -> None:
    reader = PayloadReader(TARGET, Counted())
    found = reader.decode(pa.chunked_array([[GOOD], [payload, None]], pa.binary()))
    assert found.values.to_pylist() == [5, None, None]
    assert found.errors.is_valid().to_pylist() == [False, True, False]
    with pytest.raises(PayloadError, match="row 1: it does not start with the header"):
        reader.decode([GOOD, payload], on_error="raise")
