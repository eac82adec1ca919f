"""Guesses: the right message is among them, recorded frames come first, and hostile input ends."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest

from kafka_msgs import HeartbeatRequest, MetadataResponse, OffsetFetchRequest
from kafka_msgs.catalog import MessageCatalog, iter_message_classes
from kafka_msgs.errors import OptionError
from kafka_msgs.message import Message
from kafka_msgs.message_guesses import MAX_GUESSED_BYTES, guess_messages
from kafka_msgs.testing import random_message
from kafka_msgs.versioned import encode_versioned
from kafka_msgs.wire import encode_request
from tests.support.recorded_frames import exchanges
from tests.support.recordings import RECORDINGS

CLASSES: Final = list(iter_message_classes())
SMALL: Final = MessageCatalog.of([HeartbeatRequest, OffsetFetchRequest])


@pytest.mark.parametrize("cls", CLASSES[::9], ids=lambda cls: cls.INFO.name)
def test_the_message_is_among_the_guesses(cls: type[Message]) -> None:
    rng = Random(cls.INFO.name)
    for version in {cls.INFO.versions.lowest, cls.INFO.versions.highest}:
        message = random_message(cls, version, rng)
        found = guess_messages(message.encode(version), catalog=MessageCatalog.of([cls]))
        assert (version, message) in [(each.version, each.message) for each in found] or message != message


def test_every_message_at_every_version_is_among_its_own_guesses() -> None:
    for cls in CLASSES:
        rng, catalog = Random(cls.INFO.name), MessageCatalog.of([cls])
        for version in cls.INFO.versions:
            data = random_message(cls, version, rng).encode(version)
            assert version in {each.version for each in guess_messages(data, catalog=catalog)}


def test_a_readable_request_comes_first() -> None:
    request = HeartbeatRequest(group_id="billing", generation_id=7, member_id="billing-1")
    assert {(each.name, each.version) for each in guess_messages(request.encode(0))[:3]} == {
        ("HeartbeatRequest", version) for version in (0, 1, 2)
    }


@pytest.mark.parametrize("framed", [False, True])
def test_a_request_with_its_header_comes_first(framed: bool) -> None:
    payload = encode_request(OffsetFetchRequest(group_id="billing"), version=5, correlation_id=3, client_id="c")
    data = len(payload).to_bytes(4, "big") + payload if framed else payload
    best = guess_messages(data)[0]
    assert (best.name, best.version, best.form, best.framed) == ("OffsetFetchRequest", 5, "request", framed)


def test_a_version_prefixed_message_comes_first() -> None:
    from kafka_msgs.messages.offset_commit_value import OffsetCommitValue

    value = OffsetCommitValue(offset=1042, leader_epoch=3, metadata="", commit_timestamp=1_700_000_000_000)
    best = guess_messages(encode_versioned(value, 3))[0]
    assert (best.name, best.version, best.form) == ("OffsetCommitValue", 3, "version-prefixed")


def recorded() -> list[Any]:
    from tests.support.recorded_frames import read_frames

    return list(exchanges(read_frames(RECORDINGS / "client_traffic.jsonl")))[::40]


def test_recorded_requests_come_first_and_most_responses_are_among_the_first_ten() -> None:
    ranked = []
    for pair in recorded():
        best = guess_messages(pair.request.data)[0]
        assert (best.form, type(best.message).INFO.api_key, best.version) == ("request", pair.api_key, pair.api_version)
        found = guess_messages(pair.response.data)
        keys = [(each.form, type(each.message).INFO.api_key, each.version) for each in found]
        truth = ("response", pair.api_key, pair.api_version)
        ranked.append(keys.index(truth) < 10 if truth in keys else False)
    assert sum(ranked) / len(ranked) >= 0.8


@pytest.mark.parametrize("pattern", [b"\0", b"\1", b"\x7f", b"\xff", b"\0\1", b"\1\0\0\0", b"\2\1", b"\0\0\0\1"])
def test_hostile_input_of_the_maximum_size_ends(pattern: bytes) -> None:
    data = (pattern * MAX_GUESSED_BYTES)[:MAX_GUESSED_BYTES]
    assert len(guess_messages(data)) < 3000


def test_longer_input_is_refused() -> None:
    with pytest.raises(OptionError, match="the limit is 1048576"):
        guess_messages(bytes(MAX_GUESSED_BYTES + 1))


def test_other_catalogs_are_used() -> None:
    assert guess_messages(MetadataResponse().encode(12), catalog=SMALL) == []
