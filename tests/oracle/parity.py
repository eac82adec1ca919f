"""Compares this library with Kafka's own classes, many values or inputs at a time, and counts the results.

This module defines equality. The tests and the campaign choose which values and inputs to compare, and how many.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from attrs import Factory, define, frozen

from kafka_msgs.codec.json_form import from_json, to_json
from kafka_msgs.codec.ops import MAX_TAG
from kafka_msgs.errors import DecodeError, EncodeError
from kafka_msgs.message import Message
from kafka_msgs.schema import Struct, fields
from tests.oracle.class_pairs import Subject
from tests.oracle.driver import Decoded, Oracle, OracleReject
from tests.oracle.lenient_decoder import BEFORE_4_4, DEVIATIONS, LenientDecoder

__all__ = [
    "UNREAD_BYTES",
    "Difference",
    "Tally",
    "compare_downgrades",
    "compare_inputs",
    "compare_values",
    "has_unknown_tags",
]

LAST_TAG: Final = f"Attempted to use tag {MAX_TAG} as an undefined tag"
"""The reason why Kafka cannot write the highest tag, which it can read."""

NO_BYTES: Final = "expected Base64-encoded binary data"
"""The reason why Kafka before 3.0 rejects JSON with bytes."""

UNREAD_BYTES: Final = "bytes in JSON, unread by this release"


@frozen
class Difference:
    """An unexpected difference between this library and Kafka."""

    subject: str
    what: str
    data: str
    ours: str
    kafka: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.what}\n  bytes {self.data}\n  ours  {self.ours}\n  Kafka {self.kafka}"


@define
class Tally:
    """The number of comparisons by outcome, and each difference."""

    counts: Counter[str] = Factory(Counter)
    differences: list[Difference] = Factory(list)

    def add(self, other: Tally) -> None:
        """Add the counts and differences of another tally."""
        self.counts += other.counts
        self.differences += other.differences

    def check(self, subject: Subject, what: str, data: bytes, ours: object, kafka: object) -> bool:
        """Count ``what`` when both sides are equal; otherwise record the difference."""
        equal = ours == kafka
        if equal:
            self.counts[what] += 1
        else:
            self.differ(subject, f"not so: {what}", data, ours, kafka)
        return equal

    def differ(self, subject: Subject, what: str, data: bytes, ours: object, kafka: object) -> None:
        """Record a difference as text: differences outlive the process that found them."""
        self.differences.append(Difference(str(subject), what, data.hex(), _shown(ours), _shown(kafka)))


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else repr(value)


# Values


def compare_values(oracle: Oracle, subject: Subject, values: Sequence[Message]) -> Tally:
    """Encode values with both libraries, and read each other's bytes."""
    tally = Tally(Counter(values=len(values)))
    encoded = [_encoded(tally, subject, value) for value in values]
    answers = oracle.decode_many((subject.name, subject.version, data) for data in encoded)
    for value, data, answer in zip(values, encoded, answers, strict=True):
        _compare_reading(tally, subject, value, data, answer)
    if subject.has_json:
        _compare_writing(tally, oracle, subject, values)
    return tally


def _encoded(tally: Tally, subject: Subject, value: Message) -> bytes:
    first, *others = (codec.encode(value) for codec in subject.codecs.values())
    for other in others:
        tally.check(subject, "executors write equal bytes", first, first, other)
    return first


def _compare_reading(
    tally: Tally, subject: Subject, value: Message, data: bytes, answer: Decoded | OracleReject
) -> None:
    """Decode this library's bytes, which include unknown tags and records, with both libraries."""
    for codec in subject.codecs.values():
        tally.check(subject, "our bytes read back by us", data, _attempt(codec.decode, data), value)
    if isinstance(answer, OracleReject):
        tally.differ(subject, "Kafka refuses our bytes", data, value, answer)
        return
    same = (answer.consumed, answer.reencoded) == (len(data), data)
    tally.check(subject, "our bytes read and written back by Kafka", data, True, same or answer)
    if subject.has_json:
        _compare_json(tally, subject, "JSON equal", value, data, answer)


def _compare_writing(tally: Tally, oracle: Oracle, subject: Subject, values: Sequence[Message]) -> None:
    """Encode the JSON form, which has no unknown tags, with both libraries."""
    forms = [to_json(value, subject.version) for value in values]
    answers = oracle.encode_many((subject.name, subject.version, form) for form in forms)
    for value, form, answer in zip(values, forms, answers, strict=True):
        if _unread_bytes(tally, subject, answer):
            continue
        bare = from_json(subject.cls, form, subject.version)
        data = subject.codecs["python"].encode(bare)
        if tally.check(subject, "bytes equal", data, data, answer):
            tally.check(subject, "Kafka's bytes read by us", data, subject.codecs["python"].decode(data), bare)
        if not has_unknown_tags(value):
            tally.check(subject, "our JSON read back by us", data, bare, value)


def _unread_bytes(tally: Tally, subject: Subject, answer: bytes | OracleReject) -> bool:
    """Count a rejection of bytes in JSON by a release that always rejects them."""
    unread = isinstance(answer, OracleReject) and NO_BYTES in answer.reason and not subject.reads_bytes_in_json
    tally.counts[UNREAD_BYTES] += unread
    return unread


def has_unknown_tags(value: object) -> bool:
    """Return whether a message, or a struct inside it, has unknown tagged fields."""
    if isinstance(value, tuple):
        return any(map(has_unknown_tags, value))
    if not isinstance(value, Struct):
        return False
    inner = (getattr(value, info.attribute) for info in fields(type(value)))
    return bool(value.unknown_tagged_fields) or any(map(has_unknown_tags, inner))


def _compare_json(tally: Tally, subject: Subject, what: str, message: Message, data: bytes, answer: Decoded) -> None:
    ours: Any = to_json(message, subject.version, records="empty")
    kafkas = answer.json
    if ours != kafkas:  # They may still be equal as text: not-a-number does not equal itself.
        ours, kafkas = json.dumps(ours, sort_keys=True), json.dumps(kafkas, sort_keys=True)
    tally.check(subject, what, data, ours, kafkas)


# Values at another version


def compare_downgrades(oracle: Oracle, subject: Subject, written: Subject, values: Sequence[Message]) -> Tally:
    """Write values of one version at another: both libraries must drop or reject the same fields."""
    tally, counts = Tally(), Counter[str]()
    forms = [to_json(value, subject.version) for value in values]
    items = [(subject.name, written.version, form) for form in forms]
    answers = oracle.encode_many(items, json_version=subject.version)
    for value, answer in zip(values, answers, strict=True):
        if _unread_bytes(tally, subject, answer):
            continue
        for executor in subject.codecs:
            ours = _written(written, executor, value)
            kafkas = "refused" if isinstance(answer, OracleReject) else answer
            tally.check(subject, f"alike at another version ({executor}, v{written.version})", b"", ours, kafkas)
        outcome = "refused" if isinstance(answer, OracleReject) else "written"
        counts[f"{outcome} at another version"] += 1
    counts[UNREAD_BYTES] = tally.counts[UNREAD_BYTES]
    return Tally(counts, tally.differences)


def _written(subject: Subject, executor: str, value: Message) -> bytes | str:
    try:
        return subject.codecs[executor].encode(value)
    except EncodeError:
        return "refused"


# Possibly invalid inputs


def compare_inputs(oracle: Oracle, subject: Subject, inputs: Iterable[bytes]) -> Tally:
    """Decode possibly invalid bytes with both libraries.

    Both agree on the input, or this library rejects it for one of the ``DEVIATIONS``, or it counts as a difference.
    """
    data = list(inputs)
    tally = Tally(Counter(inputs=len(data)))
    for each, answer in zip(data, oracle.decode_many((subject.name, subject.version, d) for d in data), strict=True):
        ours = _read(tally, subject, each)
        if isinstance(ours, Exception) and not isinstance(ours, DecodeError):
            tally.differ(subject, "failed by an error that bytes may not cause", each, ours, answer)
        elif isinstance(answer, OracleReject):
            _compare_refused(tally, subject, each, ours, answer)
        elif isinstance(ours, DecodeError):
            _compare_stricter(tally, subject, each, ours, answer)
        else:
            _compare_accepted(tally, subject, each, ours, answer)
    return tally


def _read(tally: Tally, subject: Subject, data: bytes) -> Any:
    """Return the common result of all executors: a message, or the error."""
    first, *others = (_attempt(codec.decode, data) for codec in subject.codecs.values())
    for other in others:
        if other != first and repr(other) != repr(first):  # errors and not-a-number are equal only as text
            tally.differ(subject, "executors differ", data, first, other)
    return first


def _attempt(decode: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return decode(data)
    except Exception as error:
        return error


def _read_leniently(subject: Subject, data: bytes) -> tuple[LenientDecoder, Any]:
    """Return the decoder that is as lenient as Kafka, and its result."""
    lenient = LenientDecoder(subject.plan, data, counts_tags=subject.counts_tags)
    try:
        return lenient, lenient.whole()
    except DecodeError as error:
        return lenient, error


def _compare_refused(
    tally: Tally, subject: Subject, data: bytes, ours: Message | DecodeError, answer: OracleReject
) -> None:
    if not isinstance(ours, DecodeError):
        tally.differ(subject, "only Kafka refuses", data, ours, answer)
        return
    lenient, message = _read_leniently(subject, data)
    if isinstance(message, DecodeError):
        tally.counts["both refuse"] += 1
    else:
        what = f"the model of Kafka accepts, by {lenient.deviations}, what Kafka refuses"
        tally.differ(subject, what, data, ours, answer)


def _compare_stricter(tally: Tally, subject: Subject, data: bytes, ours: DecodeError, answer: Decoded) -> None:
    """Explain a rejection by this library alone: the lenient decoder must accept the input by a known deviation."""
    lenient, message = _read_leniently(subject, data)
    if isinstance(message, DecodeError) or not lenient.deviations:
        tally.differ(subject, "only we refuse", data, ours, answer)
    elif not isinstance(ours, tuple(error for name in lenient.deviations for error in (DEVIATIONS | BEFORE_4_4)[name])):
        what = f"refused by another error than those of {lenient.deviations}"
        tally.differ(subject, what, data, ours, answer)
    else:
        tally.counts[f"stricter: {lenient.deviations[0]}"] += 1
        _compare_rewriting(tally, subject, message, data, answer)
        tally.check(subject, "lenient reading ends where Kafka's does", data, lenient.position, answer.consumed)


def _compare_accepted(tally: Tally, subject: Subject, data: bytes, ours: Message, answer: Decoded) -> None:
    tally.counts["both accept"] += 1
    tally.check(subject, "both read all bytes", data, len(data), answer.consumed)
    _compare_rewriting(tally, subject, ours, data, answer)
    if subject.has_json:
        _compare_json(tally, subject, "JSON of damaged bytes equal", ours, data, answer)


def _compare_rewriting(tally: Tally, subject: Subject, message: Message, data: bytes, answer: Decoded) -> None:
    """Compare values by encoding: both sides must write the same bytes, or both must fail."""
    if isinstance(answer.reencoded, OracleReject) and LAST_TAG in answer.reencoded.reason:
        tally.counts["written back by us alone: the last tag"] += 1
        return
    ours = _written(subject, "reference", message)
    kafkas = "refused" if isinstance(answer.reencoded, OracleReject) else answer.reencoded
    tally.check(subject, "values equal", data, ours, kafkas)
