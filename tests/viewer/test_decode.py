"""The page's decoder: every byte belongs to exactly one leaf, for every message at every version, valid or damaged.

The oracle are the reference interpreter's spans and the JSON form of the codec.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka_msgs import Message
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.codec.reference import annotate
from kafka_msgs.internal_topics.consumer_protocol import EMBEDDED_FIELDS
from kafka_msgs.primitives import write_uvarint
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, MessageSetBuilder
from kafka_msgs.samples import write_sample
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.versioned import encode_versioned
from kafka_msgs.viewer.plans import struct_json
from kafka_msgs.viewer.rows import decompressed_contents
from tests.viewer.node import decode_all

ROUNDS = 3


def _assert_partition(leaves: Sequence[Sequence[Any]], size: int) -> None:
    at = 0
    for start, end, *_ in leaves:
        assert start == at
        assert end > start
        at = end
    assert at == size


def _cases() -> Iterator[tuple[type[Message], int, bytes, Any]]:
    rng = Random(26)
    for cls in iter_message_classes():
        for version in cls.INFO.versions:
            for _ in range(ROUNDS):
                message = random_message(cls, version, rng)
                yield cls, version, message.encode(version), message.to_json(version)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) or isinstance(right, float):
        return bool(left == right) or (math.isnan(left) and math.isnan(right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_equal(left[name], right[name]) for name in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    return bool(left == right)


@pytest.mark.system
def test_every_byte_of_every_message_belongs_to_one_leaf(tmp_path: Path) -> None:
    """The leaves refine the spans of the reference interpreter, and the values equal the JSON form."""
    cases = list(_cases())
    questions = [{"plan": [struct_json(cls, version)], "bytes": data.hex()} for cls, version, data, _ in cases]
    for (cls, version, data, form), answer in zip(cases, decode_all(tmp_path, questions), strict=True):
        _assert_partition(answer["leaves"], len(data))
        spans, error = annotate(compile_plan(cls, version), data)
        assert error is None
        ends = {end for _, end, *_ in answer["leaves"]}
        assert {span.end for span in spans} <= ends | {0}, (cls, version)
        assert _equal(json.loads(answer["json"]), form), (cls, version)


@pytest.mark.system
def test_every_byte_of_damaged_messages_belongs_to_one_leaf(tmp_path: Path) -> None:
    """Truncated and changed messages; bytes after the fault are one leaf with its reason."""
    rng = Random(7)
    questions = []
    for cls, version, data, _ in _cases():
        damaged = bytearray(data[: rng.randint(0, len(data))] if rng.random() < 0.5 else data)
        for _ in range(rng.randint(0, 3) if damaged else 0):
            damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        questions.append({"plan": [struct_json(cls, version)], "bytes": damaged.hex()})
    faults = 0
    for question, answer in zip(questions, decode_all(tmp_path, questions), strict=True):
        _assert_partition(answer["leaves"], len(str(question["bytes"])) // 2)
        faults += any(error for *_, error, _ in answer["leaves"])
    assert faults > len(questions) // 4


def _batches() -> Iterator[bytes]:
    for codec in CompressionType:
        builder = BatchBuilder(BatchHeader(base_offset=7), codec=codec)
        for number in range(20):
            headers = [("who", b"me"), ("n", None)]
            assert builder.append(b"key-%d" % number, b"value " * number, timestamp=number, headers=headers)
        yield builder.build()
    for magic in (0, 1):
        for codec in (CompressionType.NONE, CompressionType.GZIP):
            entries = MessageSetBuilder(magic=magic, codec=codec)
            entries.append(b"k", b"value" * 9)
            entries.append(None, None)
            yield entries.build()


def test_batches_are_opened(tmp_path: Path) -> None:
    """Of every magic and codec: each part of a record is a leaf, also in decompressed content."""
    cases = list(_batches())
    cases += [b"".join(cases), cases[0][:-5], cases[0] + cases[0][:30], b"\0" * 70, b""]
    questions = [
        {
            "plan": {"records": True},
            "bytes": data.hex(),
            "contents": [c.hex() for c in decompressed_contents([data], 2**20)],
        }
        for data in cases
    ]
    answers = decode_all(tmp_path, questions)
    for data, answer in zip(cases, answers, strict=True):
        _assert_partition(answer["leaves"], len(data))
        for *_, opened in answer["leaves"]:
            if opened is not None:
                _assert_partition(opened, opened[-1][1])
                assert {"offset", "offsetDelta"} & {leaf[2] for leaf in opened}
    names = [name for _, _, name, _, _ in answers[0]["leaves"]]
    assert names.count("value") == 20 + 2 * 20
    compressed = [leaf for answer in answers[1:5] for leaf in answer["leaves"] if leaf[4]]
    assert len(compressed) == 4
    assert all(sum(leaf[2] == "offsetDelta" for leaf in opened) == 20 for *_, opened in compressed)


def test_internal_topics_and_group_metadata_are_opened(tmp_path: Path) -> None:
    """The keys and values of a real ``__consumer_offsets``, with the subscriptions in their bytes."""
    directory = tmp_path / "logs"
    write_sample(directory)
    segments = [
        (path.parent.name.rpartition("-")[0], path.read_bytes())
        for path in sorted(directory.rglob("*.log"))
        if path.parent.name.startswith("__") and path.stat().st_size
    ]
    assert segments
    questions = [{"plan": {"records": True, "topic": topic}, "bytes": data.hex()} for topic, data in segments]
    names = set()
    for (_, data), answer in zip(segments, decode_all(tmp_path, questions), strict=True):
        _assert_partition(answer["leaves"], len(data))
        assert not [leaf for leaf in answer["leaves"] if leaf[3]]
        names |= {leaf[2] for leaf in answer["leaves"]}
    assert {"group", "topic", "partition", "offset", "userData"} <= names


def test_embedded_messages_are_opened_and_others_stay_bytes(tmp_path: Path) -> None:
    rng = Random(3)
    questions = []
    for (cls, attribute), embedded in EMBEDDED_FIELDS.items():
        roots = [root for root in iter_message_classes() if cls.__module__ == root.__module__]
        for root in roots[:1]:
            version = root.INFO.versions.highest
            plan = json.loads(json.dumps(struct_json(root, version)))
            for data in (encode_versioned(random_message(embedded, 1, rng), 1), b"\x7fnot a message", b""):
                inner = _struct_with(plan, cls.__name__)
                single = {**inner, "f": 0, "t": [], "s": [step for step in inner["s"] if step[1] == attribute]}
                compact = "c" in single["s"][0][2]
                length = write_uvarint(len(data) + 1) if compact else len(data).to_bytes(4, "big")
                questions.append({"plan": [single], "bytes": (length + data).hex(), "opens": data[:1] == b"\0"})
    asked = [{name: each[name] for name in ("plan", "bytes")} for each in questions]
    for question, answer in zip(questions, decode_all(tmp_path, asked), strict=True):
        _assert_partition(answer["leaves"], len(str(question["bytes"])) // 2)
        assert any(leaf[2] == "version" for leaf in answer["leaves"]) is question["opens"]


def _struct_with(plan: dict[str, Any], name: str) -> dict[str, Any]:
    if plan["x"] == name:
        return plan
    for step in plan["s"] + plan["t"]:
        value = step[2].get("e", step[2])
        if "s" in value and (found := _struct_with(value["s"], name)):
            return found
    return {}


def test_the_python_form_builds_the_same_message(tmp_path: Path) -> None:
    """Copied Python code runs and encodes to the same bytes."""
    rng = Random(11)
    cases = []
    for cls in iter_message_classes():
        if cls.INFO.kind in ("request", "response"):
            version = cls.INFO.versions.highest
            data = random_message(cls, version, rng, unknown_tags=False, max_elements=2).encode(version)
            cases.append((cls, version, data))
    questions = [
        {"plan": [struct_json(cls, version)], "bytes": data.hex(), "python": True, "version": version}
        for cls, version, data in cases
    ]
    for (cls, version, data), answer in zip(cases, decode_all(tmp_path, questions), strict=True):
        scope: dict[str, Any] = {}
        exec(answer["python"], scope)
        assert scope["data"] == data, (cls, version, answer["python"])
