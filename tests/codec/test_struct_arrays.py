"""Arrays of structs with the same shape, and arrays with one different element."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import attrs
import pytest

from kafka_msgs import KafkaMsgsError, MetadataResponse
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.messages.metadata_response import MetadataResponsePartition, MetadataResponseTopic
from kafka_msgs.primitives import ZERO_UUID
from kafka_msgs.schema import field
from tests.support.codecs import Codecs, message_class, struct_class

SCALARS = struct_class(
    "Scalars",
    flag=field("Flag", "bool", default=False),
    id=field("Id", "uuid", default=ZERO_UUID),
    ratio=field("Ratio", "float64", default=0.0),
    level=field("Level", "uint32", default=0),
)
ARRAYS = struct_class(
    "Arrays",
    first=field("First", "[]int8", default=()),
    number=field("Number", "int16", default=0),
    second=field("Second", "[]uint16", default=()),
    third=field("Third", "[]int64", default=()),
    flags=field("Flags", "[]bool", default=()),
)
HOLDERS = {
    cls: message_class("Holder", "0-1", "1+", elements=field("Elements", f"[]{cls.__name__}", struct=cls, default=()))
    for cls in (SCALARS, ARRAYS)
}


def element(cls: Any, rng: Random, lengths: tuple[int, ...]) -> Any:
    """Return a struct with random values and with arrays of these lengths."""
    if cls is SCALARS:
        return cls(
            flag=rng.random() < 0.5, id=UUID(int=rng.getrandbits(128)), ratio=rng.random(), level=rng.getrandbits(32)
        )
    first, second, third, flags = lengths
    return cls(
        first=tuple(rng.randrange(-128, 128) for _ in range(first)),
        number=rng.randrange(-(2**15), 2**15),
        second=tuple(rng.randrange(2**16) for _ in range(second)),
        third=tuple(rng.randrange(-(2**63), 2**63) for _ in range(third)),
        flags=tuple(rng.random() < 0.5 for _ in range(flags)),
    )


def holder(cls: Any, rng: Random, count: int, odd: int | None, lengths: tuple[int, ...]) -> Any:
    """Return a message with ``count`` equal-shaped elements, except for the one at ``odd``, whose arrays are longer."""
    longer = tuple(length + 1 for length in lengths)
    return HOLDERS[cls](
        elements=tuple(element(cls, rng, longer if index == odd else lengths) for index in range(count))
    )


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("cls", HOLDERS)
@pytest.mark.parametrize("count", [0, 1, 4, 300])
@pytest.mark.parametrize("odd", [None, 0, 2, -1])
@pytest.mark.parametrize("lengths", [(0, 0, 0, 0), (1, 2, 3, 0), (32, 1, 0, 2), (33, 1, 0, 0), (0, 0, 200, 1)])
def test_what_was_written_is_read(
    codecs: Codecs, cls: Any, version: int, count: int, odd: int | None, lengths: tuple[int, ...]
) -> None:
    message = holder(cls, Random(count), count, odd if odd is None or odd >= 0 else count - 1, lengths)
    data = codecs.encode(message, version)
    assert data == Codecs("reference").encode(message, version)
    assert codecs.decode(HOLDERS[cls], data, version) == message


def test_an_unknown_tag_in_one_element_is_kept(codecs: Codecs) -> None:
    plain = holder(ARRAYS, Random(1), 9, None, (1, 1, 1, 1))
    for index in range(9):
        elements = list(plain.elements)
        elements[index] = attrs.evolve(elements[index], unknown_tagged_fields=((7, b"kept"),))
        message = HOLDERS[ARRAYS](elements=tuple(elements))
        assert codecs.decode(HOLDERS[ARRAYS], codecs.encode(message, 1), 1) == message


def test_more_shapes_than_are_remembered(codecs: Codecs) -> None:
    for number in range(300):  # the Python encoder keeps 256
        message = holder(ARRAYS, Random(number), 5, None, (number % 100, number % 3, 0, 1))
        assert codecs.decode(HOLDERS[ARRAYS], codecs.encode(message, 1), 1) == message


def test_the_longest_form_of_a_length_is_read_as_the_short_one(codecs: Codecs) -> None:
    message = HOLDERS[ARRAYS](elements=(ARRAYS(first=(1,)),) * 4)
    data = codecs.encode(message, 1)
    one = codecs.encode(HOLDERS[ARRAYS](elements=(ARRAYS(first=(1,)),)), 1)[1:-1]
    assert data == b"\5" + one * 4 + b"\0"
    long = b"\x82\x80\x80\x80\x00" + one[1:]
    for index in range(4):
        parts = [one] * 4
        parts[index] = long
        assert codecs.decode(HOLDERS[ARRAYS], b"\5" + b"".join(parts) + b"\0", 1) == message


def metadata(rng: Random) -> MetadataResponse:
    """Return a typical response of a large cluster: topics with identical or nearly identical partitions."""

    def partition(index: int, replicas: int) -> MetadataResponsePartition:
        nodes = tuple(rng.randrange(20) for _ in range(replicas))
        return MetadataResponsePartition(partition_index=index, replica_nodes=nodes, isr_nodes=nodes[:2])

    return MetadataResponse(
        topics=tuple(
            MetadataResponseTopic(
                name=f"topic-{number}",
                partitions=tuple(partition(index, 3 - (number == 2 and index == 5)) for index in range(12)),
            )
            for number in range(4)
        )
    )


@pytest.mark.parametrize("version", [8, 9, 12])
def test_executors_agree_on_mutations_of_arrays_of_structs(version: int) -> None:
    rng = Random(version)
    data = Codecs("reference").encode(metadata(rng), version)
    for _ in range(150):
        mutated = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            mutated[rng.randrange(len(mutated))] = rng.choice((0, 1, 2, 4, 127, 128, 255))
        raw = bytes(mutated[: rng.randrange(1, len(data) + 1)] if rng.random() < 0.2 else mutated)
        assert len({outcome(name, raw, version) for name in EXECUTORS}) == 1


def outcome(executor: str, data: bytes, version: int) -> Any:
    """Return the message that an executor decodes, or the text of its error."""
    try:
        return Codecs(executor).decode(MetadataResponse, data, version)
    except KafkaMsgsError as error:
        return type(error), str(error)
