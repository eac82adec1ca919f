"""Traffic of a release before 4.0, with all the definitions of that release, from its own jar.

This library writes the versions that 4.0 removed (KIP-896), Kafka's classes of that release read and rewrite them, and
a catalog with the current release as its fallback decodes the frames.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest
from attrs import evolve

from kafka_msgs import Message
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.testing import random_message
from kafka_msgs.wire import decode_request, decode_response, encode_request, encode_response
from tests.oracle import Decoded
from tests.oracle.older_releases import oracle_of

pytestmark = pytest.mark.oracle

RELEASE: Final = "3.9.1"
EXAMPLES: Final = 3
Case = tuple[Any, int]


@pytest.fixture(scope="module")
def old_classes() -> list[type[Message]]:
    """The requests and responses of the old release that have at least one version."""
    classes = oracle_of(RELEASE).classes or {}
    return [cls for cls in classes.values() if cls.INFO.kind in ("request", "response")]


@pytest.fixture(scope="module")
def cases(old_classes: list[type[Message]]) -> list[Case]:
    """Messages of the versions missing in the current release."""
    random = Random(1)
    ours = release_catalog()
    found = []
    for cls in old_classes:
        kind, api_key = cls.INFO.kind, cls.INFO.api_key
        assert api_key is not None
        removed = sorted(set(cls.INFO.versions) - set(ours.versions(api_key, kind)))
        found += [(random_message(cls, v, random), v) for v in removed for _ in range(EXAMPLES)]
    return found


def test_kafkas_classes_of_that_release_read_and_write_the_same(cases: list[Case]) -> None:
    encoded = [message.encode(version) for message, version in cases]
    answers = oracle_of(RELEASE).decode_many(
        (m.INFO.name, v, data) for (m, v), data in zip(cases, encoded, strict=True)
    )
    assert [answer.reencoded for answer in answers if isinstance(answer, Decoded)] == encoded


def test_frames_of_removed_versions_are_read_and_written_back(
    cases: list[Case], old_classes: list[type[Message]]
) -> None:
    catalog = MessageCatalog.of(old_classes, fallback=release_catalog())
    assert len({(type(message), version) for message, version in cases}) > 100
    for message, version in cases:
        info = message.INFO
        if info.kind == "request":
            payload = encode_request(message, version, correlation_id=7, client_id="c")
            frame: Any = decode_request(payload, catalog=catalog)
        else:
            payload = encode_response(message, version, correlation_id=7)
            frame = decode_response(payload, info.api_key, version, catalog=catalog)
        assert type(frame.message) is type(message)
        assert frame.message.encode(version) == message.encode(version)
        assert frame.encode() == evolve(frame).encode() == payload
