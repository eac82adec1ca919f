"""A refused message costs about as much as a valid one: the reference resumes at the fault, not at the start."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kafka_msgs import FetchResponse, MetadataResponse, ProduceRequest, evolve
from kafka_msgs.codec import CodecOptions, DecodeBudget, python, reference
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.executors import EXECUTORS, part_functions
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.codec.selection import select_fields
from kafka_msgs.errors import BudgetExceededError, DecodeError, EncodeError, InvalidTagError, TruncatedError
from kafka_msgs.schema import field
from kafka_msgs.testing.random_values import random_message
from tests.campaigns.refusals import FAST, Damage, pairs, run
from tests.support.codecs import message_class, struct_class

PAIRS = pairs()


def forbid(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Fail the test if the reference processes a whole input, and make Python locate every fault."""

    def whole(*_: Any) -> Any:
        pytest.fail("the reference processed the whole input")

    monkeypatch.setattr(python, "_TRACED_FROM", 0)
    for name in names:
        monkeypatch.setattr(reference, name, whole)


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize("start", range(10))
def test_refusals_equal_those_of_a_full_read(name: str, start: int) -> None:
    """Each part covers every tenth version of all messages. ``tests.campaigns.refusals`` covers all."""
    (tally,) = run(PAIRS[start::10], 1, 21, Damage(truncations=8, flips=6, sets=2, values=4), (name,)).values()
    assert tally.differences == []
    assert tally.refusals > 500
    if name == "c":
        assert tally.whole["decode"] == 0
    else:
        assert tally.whole["decode"] < tally.refusals / 50  # such as empty input


@pytest.mark.parametrize("name", FAST)
@pytest.mark.parametrize(("cls", "version"), [(MetadataResponse, 12), (FetchResponse, 12), (ProduceRequest, 9)])
def test_a_truncated_message_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch, name: str, cls: Any, version: int
) -> None:
    codec: Codec[Any] = Codec(compile_plan(cls, version), executor=EXECUTORS[name])
    data = codec.encode(random_message(cls, version, Random(3), max_elements=4))
    forbid(monkeypatch, "decode")
    for size in range(1, len(data)):
        with pytest.raises(DecodeError):
            codec.decode(data[:size])


@pytest.mark.parametrize("name", FAST)
def test_an_exceeded_budget_is_located(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    budget = CodecOptions(budget=DecodeBudget(elements=300))
    codec: Codec[Any] = Codec(compile_plan(MetadataResponse, 12), budget, EXECUTORS[name])
    topic = random_message(MetadataResponse, 12, Random(1), max_elements=3).topics[:1] or ()
    data = MetadataResponse(topics=topic * 400).encode(12)
    forbid(monkeypatch, "decode")
    with pytest.raises(BudgetExceededError, match="more than the budget of 300 elements"):
        codec.decode(data)


Tagged = struct_class("Tagged", text=field("Text", "string", default=""), number=field("Number", "int32", default=0))
HOLDER = message_class(
    "Holder",
    "0",
    "0+",
    before=field("Before", "[]string", default=()),
    tagged=field("Tagged", "[]Tagged", tag=3, tagged="0+", default=(), struct=Tagged),
    last=field("Last", "[]string", default=()),
)


@pytest.mark.parametrize(
    ("tags", "error", "text"),
    [
        ("01 03 09 02 03 6162 00000000", TruncatedError, "Holder v0: at byte 5: tag 3 needs 9 bytes, 8 left"),
        (
            "01 03 08 02 03 6162 00000000",
            TruncatedError,
            "Holder v0: tagged[0] at byte 13: varint needs 1 bytes, 0 left",
        ),
        (
            "01 03 0a 02 03 6162 00000000 00 00",
            InvalidTagError,
            "Holder v0: at byte 5: tag 3 declares 10 bytes, its value took 9",
        ),
        ("02 03 01 01 02 00", InvalidTagError, "Holder v0: at byte 6: tag 2 after tag 3: tags must ascend"),
        ("02 03 01 01 09 05 61", TruncatedError, "Holder v0: at byte 8: tag 9 needs 5 bytes, 1 left"),
    ],
)
@pytest.mark.parametrize("name", FAST)
def test_faults_in_tags(
    monkeypatch: pytest.MonkeyPatch, name: str, tags: str, error: type[DecodeError], text: str
) -> None:
    codec: Codec[Any] = Codec(compile_plan(HOLDER, 0), executor=EXECUTORS[name])
    forbid(monkeypatch, "decode")
    with pytest.raises(error) as refused:
        codec.decode(bytes.fromhex("01 01" + tags))
    assert str(refused.value) == text


@pytest.mark.skipif("c" not in FAST, reason="the generated encoder does not record locations")
def test_a_refused_value_is_not_encoded_again_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = (Tagged(), Tagged(text="x", number=1 << 40))
    cases: list[tuple[Any, str]] = [
        (HOLDER(before=("a", 7)), "before[1]"),
        (HOLDER(before=7), "before"),
        (HOLDER(last=(None,)), "last[0]"),
        (HOLDER(tagged=inner), "tagged[1].number"),
        (HOLDER(tagged=(Tagged(), 7)), "tagged[1]"),
        (HOLDER(tagged=(Tagged(unknown_tagged_fields=((1, "x"),)),)), "tagged[0].unknown_tagged_fields"),
        (HOLDER(unknown_tagged_fields=((3, b""),)), "unknown_tagged_fields"),
    ]
    codec: Codec[Any] = Codec(compile_plan(HOLDER, 0), executor=EXECUTORS["c"])
    forbid(monkeypatch, "encode")
    for message, path in cases:
        with pytest.raises(EncodeError) as refused:
            codec.encode(message)
        assert refused.value.path == path


@pytest.mark.skipif("c" not in FAST, reason="the generated encoder does not record locations")
def test_a_message_that_changes_meanwhile_is_encoded_from_the_start() -> None:
    """The recorded location no longer leads to the refused value, so the reference encodes the whole message."""
    items: list[Any] = ["a"]

    class Shrinking:
        def __index__(self) -> int:
            items.clear()
            raise TypeError

    items.append(Tagged(number=Shrinking()))
    message = HOLDER(tagged=items, last=(7,))
    with pytest.raises(EncodeError) as refused:
        Codec(compile_plan(HOLDER, 0), executor=EXECUTORS["c"]).encode(message)
    assert refused.value.path in {"last[0]", "tagged[0]"}


@pytest.mark.parametrize("name", FAST)
def test_a_skipped_field_is_not_read_again(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    plan = select_fields(compile_plan(MetadataResponse, 12), ("controller_id",))
    message = random_message(MetadataResponse, 12, Random(5), max_elements=4)
    data = evolve(message, brokers=message.brokers * 50).encode(12)
    read = part_functions(plan, CodecOptions(), name).read
    monkeypatch.setattr(reference, "decode", lambda *_: pytest.fail("the reference read the whole input"))
    for size in range(40, 60):
        with pytest.raises(DecodeError):
            read(data[:size])
