"""Reading and changing selected fields: selection, preserved bytes, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final

import pytest

from kafka_msgs import (
    ApiVersionsResponse,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    MetadataRequest,
    MetadataResponse,
    OffsetFetchRequest,
    ProduceRequest,
    evolve,
)
from kafka_msgs.codec import CodecOptions, DecodeBudget
from kafka_msgs.codec.error_explanation import Edit, PartFunctions
from kafka_msgs.codec.executors import EXECUTORS, part_functions
from kafka_msgs.codec.field_access import Patch, Peek
from kafka_msgs.codec.options import DEFAULT_OPTIONS
from kafka_msgs.codec.plan import Plan, compile_plan
from kafka_msgs.codec.selection import select_fields
from kafka_msgs.errors import (
    BudgetExceededError,
    DecodeError,
    EncodeError,
    InvalidLengthError,
    InvalidTagError,
    InvalidUtf8Error,
    OptionError,
    TruncatedError,
    UnknownColumnError,
    UnsupportedVersionError,
)
from kafka_msgs.messages.metadata_response import MetadataResponseBroker, MetadataResponseTopic
from kafka_msgs.primitives import write_uvarint
from kafka_msgs.schema import field
from kafka_msgs.testing.random_values import random_message
from tests.support.codecs import message_class, struct_class
from tests.support.line_counter import lines_run


@pytest.fixture(params=[name for name in EXECUTORS if name != "reference"])
def executor(request: pytest.FixtureRequest) -> str:
    """Return the name of an executor: field access runs in C, or in the reference if C is not available."""
    return str(request.param)


def part(executor: str, cls: Any, version: int, *paths: str, options: CodecOptions = DEFAULT_OPTIONS) -> PartFunctions:
    return part_functions(select_fields(compile_plan(cls, version), paths), options, executor)


def patched(executor: str, cls: Any, version: int, data: bytes, edits: dict[str, Edit]) -> bytes:
    return part(executor, cls, version, *edits).patch(data, 0, tuple(edits.values()))


# Selection

BROKERS: Final = tuple(MetadataResponseBroker(node_id=number, host=f"b{number}", port=9092) for number in range(3))
TOPICS: Final = (MetadataResponseTopic(name="t"), MetadataResponseTopic(name="u", unknown_tagged_fields=((7, b"x"),)))
METADATA: Final = MetadataResponse(brokers=BROKERS, topics=TOPICS)


def test_an_array_its_elements_and_their_fields(executor: str) -> None:
    data = METADATA.encode(12)
    for path, edit in (
        ("brokers", lambda brokers: tuple(evolve(each, host="x") for each in brokers)),
        ("brokers[]", lambda broker: evolve(broker, host="x")),
        ("brokers[].host", lambda _: "x"),
    ):
        found = patched(executor, MetadataResponse, 12, data, {path: edit})
        assert MetadataResponse.decode(found, 12).brokers == tuple(evolve(each, host="x") for each in BROKERS)
    fewer = patched(executor, MetadataResponse, 12, data, {"topics": lambda topics: topics[1:]})
    assert fewer == evolve(METADATA, topics=TOPICS[1:]).encode(12)


def test_a_chosen_struct_has_its_unknown_tags_and_others_do_not(executor: str) -> None:
    data = METADATA.encode(12)
    assert part(executor, MetadataResponse, 12, "topics[]").read(data)[0].topics == TOPICS
    names = part(executor, MetadataResponse, 12, "topics[].name").read(data)[0].topics
    assert names == (MetadataResponseTopic(name="t"), MetadataResponseTopic(name="u"))


def test_nulls_are_chosen_as_they_are_and_not_entered(executor: str) -> None:
    data = MetadataRequest(topics=None).encode(12)
    calls: list[Any] = []

    def seen(old: Any) -> Any:
        calls.append(old)
        return old

    for path in ("topics", "topics[]", "topics[].name"):
        assert part(executor, MetadataRequest, 12, path).read(data)[0].topics is None
        patched(executor, MetadataRequest, 12, data, {path: seen})
    assert calls == [None]
    everything = DescribeTopicPartitionsRequest().encode(0)
    assert part(executor, DescribeTopicPartitionsRequest, 0, "cursor.topic_name").read(everything)[0].cursor is None
    null = patched(executor, MetadataRequest, 12, MetadataRequest(topics=()).encode(12), {"topics": lambda _: None})
    assert null == data


def test_a_path_that_only_other_versions_have_chooses_nothing(executor: str) -> None:
    data = ProduceRequest(acks=1).encode(3)
    assert part(executor, OffsetFetchRequest, 2, "groups[].group_id").read(b"anything")[0] == OffsetFetchRequest()
    assert patched(executor, ProduceRequest, 3, data, {"topic_data[].topic_id": lambda _: 1 / 0}) == data


def test_the_bytes_behind_the_last_chosen_field_are_not_read(executor: str) -> None:
    data = METADATA.encode(12)
    end = part(executor, MetadataResponse, 12, "brokers[].host").read(data)[1]
    assert end == data.index(b"b2") + 2 + 4 + 1 + 1
    assert patched(executor, MetadataResponse, 12, data[:end] + b"?", {"brokers[].host": lambda _: "x"})[-1:] == b"?"


# Tagged fields


def tagged(data: str) -> Any:
    inner = struct_class("Inner", text=field("Text", "string", tag=1, tagged="0+", default=""))
    cls = message_class(
        "Tagged", flexible="0+",
        a=field("A", "int32", tag=0, tagged="0+", default=5),
        items=field("Items", "[]Inner", struct=inner, tag=2, tagged="0+", default=()),
    )  # fmt: skip
    return cls, bytes.fromhex(data)


def test_sizes_of_tagged_fields_grow_inwards_and_outwards(executor: str) -> None:
    cls, data = tagged("03 00 04 00000009  82 00 86 00 02 01 01 02 02 61  09 01 ff")
    long = "long" * 100
    content = write_uvarint(401) + long.encode()
    inner = b"\x01\x01" + write_uvarint(len(content)) + content
    outer = b"\x82\x00" + write_uvarint(1 + len(inner)) + b"\x02" + inner
    expected = data[:7] + outer + data[-3:]
    assert patched(executor, cls, 0, data, {"items[].text": lambda _: long}) == expected
    assert patched(executor, cls, 0, data, {"items[].text": lambda old: old}) is data
    both = patched(executor, cls, 0, data, {"items[].text": lambda old: old, "a": lambda old: old + 1})
    assert both == data.replace(b"\t", b"\n", 1)


def test_a_tagged_field_stays_where_it_is_with_its_default_and_is_not_added(executor: str) -> None:
    cls, data = tagged("01 00 04 00000009")
    assert patched(executor, cls, 0, data, {"a": lambda _: 5}) == bytes.fromhex("01 00 04 00000005")
    assert patched(executor, cls, 0, b"\0", {"a": lambda _: 1 / 0}) == b"\0"
    assert part(executor, cls, 0, "a").read(b"\0")[0] == cls()


# Bytes that a proxy must preserve


def test_unusual_bytes_stay_as_they_are(executor: str) -> None:
    """Lengths with redundant bytes, and text that is not UTF-8."""
    broker = bytes.fromhex("00000001 83 00 6231 00002384 82 80 00 ff 00")
    data = bytes(4) + b"\x82\x00" + broker + b"rest"
    found = patched(executor, MetadataResponse, 12, data, {"brokers[].host": lambda _: "abc"})
    assert found == data.replace(b"\x83\x00b1", b"\x04abc")
    with pytest.raises(InvalidUtf8Error, match=r"brokers\[0\].rack at byte 21"):
        patched(executor, MetadataResponse, 12, data, {"brokers[].rack": lambda _: None})


def test_any_buffer_is_read_and_bytes_come_back() -> None:
    data = METADATA.encode(12)
    patch = Patch(MetadataResponse, 12, {"brokers[].port": lambda port: port + 1})
    peek = Peek(MetadataResponse, 12, "brokers[].port")
    for buffer in (bytearray(data), memoryview(data), memoryview(b"--" + data)[2:]):
        assert type(patch(buffer)) is bytes
        assert {broker.port for broker in peek(patch(buffer)).brokers} == {9093}


def test_the_whole_message_is_the_empty_path() -> None:
    data = b"--" + METADATA.encode(12) + b"--"
    assert Patch(MetadataResponse, 12, {"": lambda message: message})(data, 2) is data
    without = Patch(MetadataResponse, 12, {"": lambda message: evolve(message, topics=())})(data, 2)
    assert without == b"--" + evolve(METADATA, topics=()).encode(12) + b"--"
    assert Peek(MetadataResponse, 12, "")(data, 2) == METADATA


# Errors


def outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except (DecodeError, EncodeError) as error:
        return type(error), str(error)


DAMAGED: Final = (
    (MetadataResponse, 12, ("topics[].partitions[].leader_id", "topics[].name")),
    (FetchRequest, 17, ("rack_id", "cluster_id", "topics[].partitions")),
    (ApiVersionsResponse, 4, ("supported_features[].name", "finalized_features_epoch")),
)


@pytest.mark.parametrize(("cls", "version", "found"), DAMAGED, ids=lambda each: getattr(each, "__name__", ""))
def test_damaged_bytes_have_one_outcome_in_every_form(cls: Any, version: int, found: tuple[str, ...]) -> None:
    if "c" not in EXECUTORS:
        pytest.skip("the C core is not built")
    rng = Random(cls.__name__)
    data = max((random_message(cls, version, rng, max_elements=2).encode(version) for _ in range(20)), key=len)[:400]
    inputs = [data[:size] for size in range(len(data))]
    for _ in range(300):
        at = rng.randrange(len(data))
        inputs.append(data[:at] + rng.randbytes(1) + data[at + 1 :])
    forms = [part(name, cls, version, *found) for name in ("python", "c")]
    edits = (lambda old: old if old is None or not isinstance(old, str) else old + "!",) * len(found)
    refused = 0
    for each in inputs:
        peeked = [outcome(partial(form.read, each)) for form in forms]
        changed = [outcome(partial(form.patch, each, 0, edits)) for form in forms]
        assert peeked[0] == peeked[1]
        assert changed[0] == changed[1]
        refused += isinstance(changed[0], tuple)
    assert refused > 100


def test_what_is_refused_has_its_path_and_place(executor: str) -> None:
    data = METADATA.encode(12)
    with pytest.raises(EncodeError, match=r"MetadataResponse v12: brokers\[1\].port: 4294967296 is out of range"):
        patched(
            executor, MetadataResponse, 12, data,
            {"brokers[].node_id": lambda old: old, "brokers[].port": iter_of(9, 2**32)},
        )  # fmt: skip
    with pytest.raises(EncodeError, match=r"brokers\[0\]: expected MetadataResponseBroker, got NoneType|None, which"):
        patched(executor, MetadataResponse, 12, data, {"brokers[]": lambda _: None})
    long = evolve(METADATA, brokers=tuple(evolve(each, host=each.host * 20) for each in BROKERS)).encode(12)
    with pytest.raises(TruncatedError, match=r"brokers\[2\].host at byte"):
        patched(executor, MetadataResponse, 12, long[: long.index(b"b2") + 1], {"brokers[].host": lambda old: old})
    twice = data.replace(b"\x01\x07\x01x", b"\x02\x07\x01x\x07\x00")
    peek = part(executor, MetadataResponse, 12, "topics[].name", "error_code")
    with pytest.raises(InvalidTagError, match=r"topics\[1\] at byte \d+: tag 7 after tag 7"):
        peek.read(twice)


def iter_of(*values: Any) -> Edit:
    """Return an edit that returns the values in order."""
    left = iter(values)
    return lambda _: next(left)


def test_an_edit_is_called_once_for_each_value_and_its_exceptions_pass(executor: str) -> None:
    calls: list[str] = []

    def fail(host: str) -> str:
        calls.append(host)
        raise KeyError(host)

    with pytest.raises(KeyError, match="b0"):
        patched(executor, MetadataResponse, 12, METADATA.encode(12), {"brokers[].host": fail})
    with pytest.raises(EncodeError):
        patched(executor, MetadataResponse, 12, METADATA.encode(12), {"brokers[].host": calls.append})
    assert calls == ["b0", "b0"]


def test_wrong_paths_versions_and_offsets() -> None:
    with pytest.raises(UnknownColumnError, match=r"no column 'brokers.host'; similar: \[\]"):
        Peek(MetadataResponse, 12, "brokers.host")
    for path in ("brokers[].hots", "brokers[][]", "brokers[].", ".brokers", "controller_id[]", "cursor"):
        with pytest.raises(UnknownColumnError):
            Patch(MetadataResponse, 12, {path: str})
    for first, second in (("brokers", "brokers[]"), ("brokers[]", "brokers[].host"), ("", "brokers"), ("topics",) * 2):
        for pair in ((first, second), (second, first)):
            with pytest.raises(OptionError, match="overlaps"):
                Peek(MetadataResponse, 12, *pair)
    for version in (99, True, 2.5, "12"):
        with pytest.raises(UnsupportedVersionError):
            Peek(MetadataResponse, version, "brokers")  # type: ignore[arg-type]
    for offset in (-1, 3):
        with pytest.raises(ValueError, match=f"offset {offset} is outside a buffer of 2 bytes"):
            Patch(MetadataResponse, 12, {"brokers": lambda old: old})(b"ab", offset)
        with pytest.raises(ValueError, match=f"offset {offset} is outside a buffer of 2 bytes"):
            Peek(MetadataResponse, 12, "brokers")(b"ab", offset)


# Bounds


def test_counts_are_checked_and_the_elements_passed_over_are_counted(executor: str) -> None:
    with pytest.raises(InvalidLengthError, match="array of 2147483646 elements"):
        part(executor, MetadataResponse, 12, "controller_id").read(bytes(4) + b"\xff\xff\xff\xff\x07" + bytes(20))
    empty = struct_class("Empty")
    inner = struct_class("Many", items=field("Items", "[]Empty", struct=empty, default=()))
    cls = message_class(
        "Weightless", many=field("Many", "[]Many", struct=inner, default=()), last=field("Last", "int8", default=0)
    )
    data = (20).to_bytes(4, "big") + (100).to_bytes(4, "big") * 20 + bytes(100)
    small = CodecOptions(budget=DecodeBudget(elements=1000))
    with pytest.raises(BudgetExceededError, match="more than the budget of 1000 elements"):
        part(executor, cls, 0, "last", options=small).read(data)
    with pytest.raises(BudgetExceededError, match="more than the budget of 1000 elements"):
        part(executor, cls, 0, "last", options=small).patch(data, 0, (lambda _: 1,))
    assert part(executor, cls, 0, "last").patch(data, 0, (lambda _: 1,)).count(1) == data.count(1) + 1


def test_a_message_deeper_than_the_budget_is_refused(executor: str) -> None:
    shallow = CodecOptions(budget=DecodeBudget(depth=1))
    functions = part(executor, MetadataResponse, 12, "brokers[].host", options=shallow)
    with pytest.raises(BudgetExceededError, match="levels deep"):
        functions.read(METADATA.encode(12))
    with pytest.raises(BudgetExceededError, match="levels deep"):
        functions.patch(METADATA.encode(12), 0, (str,))


def test_twice_the_elements_are_twice_the_work() -> None:
    def work(count: int) -> int:
        data = MetadataResponse(topics=TOPICS * count).encode(12)
        functions = part("python", MetadataResponse, 12, "topics[].name")
        return lines_run(lambda: functions.patch(data, 0, (lambda name: name + "!",)))

    work(1)
    assert work(200) < 2.1 * work(100)


def test_a_part_prints_what_it_reads() -> None:
    plan: Plan = Peek(MetadataRequest, 12, "topics[].name").plan
    assert str(plan).splitlines()[1:4] == [
        "  topics: compact nullable array of MetadataRequestTopic",
        "    topic_id: uuid, passed over",
        "    name: compact nullable string",
    ]


def test_parts_are_made_once_and_kept_by_the_class() -> None:
    first, second = (Patch(MetadataResponse, 12, {"brokers[].host": str}) for _ in range(2))
    assert first.plan is second.plan
