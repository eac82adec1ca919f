"""No original text survives redaction: in every field of every message version, in faults, and in control batches."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from attrs import evolve
from crc32c import crc32c

from kafka_msgs import Message, Request, Response, SaslAuthenticateRequest
from kafka_msgs.capture import CapturedConnection, CapturedPayload, CaptureFault, Endpoint, Exchange, FaultKind
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.messages.end_txn_marker import EndTxnMarker
from kafka_msgs.messages.voters_record import Endpoint as VoterEndpoint
from kafka_msgs.messages.voters_record import Voter, VotersRecord
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, ControlType, RecordBatch, read_batches
from kafka_msgs.redaction import ALL_KINDS, RedactKind, Redactor, redact_records
from kafka_msgs.redaction.field_kinds import field_kinds
from kafka_msgs.redaction.masks import TOKEN_BYTES
from kafka_msgs.schema import FieldInfo, fields
from kafka_msgs.testing.random_values import random_message
from kafka_msgs.wire import encode_request, encode_response

ENDS = CapturedConnection(1, Endpoint("app.internal.example", 50_000), Endpoint("kafka.internal.example", 9092))
CLASSES: list[type[Message]] = [cls for cls in iter_message_classes() if issubclass(cls, Request | Response)]
SECRET = "Secret"


class _Marker:
    """Replaces every text and all bytes of a message with numbered secrets."""

    def __init__(self) -> None:
        self.count = 0
        self.hidden: list[bytes] = []

    def secret(self, *, is_hidden: bool) -> str:
        self.count += 1
        text = f"{SECRET}-{self.count:05}!"
        if is_hidden:
            self.hidden.append(text.encode())
        return text

    def marked(self, item: Any, version: int) -> Any:
        changes: dict[str, Any] = {}
        for field in fields(type(item)):
            value = getattr(item, field.attribute)
            if value and version in field.versions and value != field.default:
                changes[field.attribute] = self._value(type(item), field, value, version)
        if item.unknown_tagged_fields:
            texts = [(tag, self.secret(is_hidden=True).encode()) for tag, _ in item.unknown_tagged_fields]
            changes["unknown_tagged_fields"] = tuple(texts)
        return evolve(item, **changes)

    def _value(self, struct: type[Any], field: FieldInfo, value: Any, version: int) -> Any:
        if field.struct is not None:
            return (
                tuple(self.marked(each, version) for each in value) if field.is_array else self.marked(value, version)
            )
        if field.element_type not in ("string", "bytes", "records"):
            return value
        is_hidden = bool(field_kinds(struct, field))

        def secret(_: object) -> str | bytes:
            text = self.secret(is_hidden=is_hidden)
            if field.element_type == "string":
                return text
            return _records(text.encode()) if field.element_type == "records" else text.encode()

        return tuple(map(secret, value)) if field.is_array else secret(value)


def _records(secret: bytes) -> bytes:
    builder = BatchBuilder()
    assert builder.append(secret, secret, timestamp=1, headers=[(secret.decode(), secret)])
    return builder.build()


def _exchange(message: Message, version: int) -> Exchange:
    api_key = message.INFO.api_key
    assert api_key is not None
    if isinstance(message, Request):
        payload, answer = encode_request(message, version, correlation_id=3, client_id=f"{SECRET}-client"), None
    else:
        assert isinstance(message, Response)
        payload = b"".join((api_key.to_bytes(2, "big"), version.to_bytes(2, "big"), bytes(4)))
        answer = encode_response(message, version, correlation_id=3)
    return Exchange(
        connection=ENDS, api_key=api_key, version=version, correlation_id=3,
        request=CapturedPayload(payload, len(payload), 0, 0, 1),
        response=None if answer is None else CapturedPayload(answer, len(answer), 0, 9, 1),
    )  # fmt: skip


def _messages(cls: type[Message]) -> Iterator[tuple[Message, int, list[bytes]]]:
    rng = Random(cls.__name__)
    for version in cls.INFO.versions:
        for _ in range(3):
            marker = _Marker()
            message = marker.marked(random_message(cls, version, rng), version)
            yield message, version, [*marker.hidden, f"{SECRET}-client".encode()]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_no_text_of_any_message_survives(cls: type[Message]) -> None:
    """Only protocol terms remain, which the generated table lists as kept."""
    redactor = Redactor(ALL_KINDS)
    for message, version, secrets in _messages(cls):
        after = redactor.redact(_exchange(message, version))
        assert isinstance(after, Exchange)
        payload = after.request.payload + (after.response.payload if after.response else b"")
        assert [secret for secret in secrets if secret in payload] == []


@pytest.mark.parametrize(
    "reason",
    [
        "cannot connect to a broker: kafka.internal.example:9092: Connection refused; 10.1.2.3:9092: no answer in time",
        "kafka.internal.example:9092 > [2001:db8::17]:50000: a sequence number out of reach",
        "line 4: not an exchange: ValueError: the kind is 'kafka.internal.example'",
        "no listener for the broker address 'kafka.internal.example', port 70000: no client can connect to it",
    ],
)
@pytest.mark.parametrize("kinds", [ALL_KINDS, {RedactKind.HOSTS}], ids=["all", "hosts"])
def test_hosts_in_the_text_of_faults_are_hidden(reason: str, kinds: frozenset[RedactKind]) -> None:
    fault = CaptureFault(kind=FaultKind.GAP, reason=reason, size=0, connection=ENDS)
    hidden = Redactor(kinds).redact(fault)
    assert isinstance(hidden, CaptureFault)
    assert not [name for name in ("internal", "example", "10.1.2.3", "2001", "db8") if name in str(hidden)]
    assert len(hidden.reason) == len(reason)
    assert Redactor({RedactKind.SASL}).redact(fault) == fault


def test_our_own_words_and_numbers_in_faults_stay_readable() -> None:
    reason = "a response of 24 bytes with the correlation id 7, which no request had"
    fault = CaptureFault(kind=FaultKind.ORPHAN, reason=reason, size=24)
    assert Redactor().redact(fault) == fault


@pytest.mark.parametrize("length", [1, 9, 400])
def test_the_length_of_a_token_is_hidden(length: int) -> None:
    """In decoded requests, in damaged ones, and in faults about tokens without a header."""
    redactor = Redactor({RedactKind.SASL})
    whole = _exchange(SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + bytes(length)), 2)
    damaged = evolve(whole, request=whole.request._replace(payload=whole.request.payload[:-1]))
    sizes = set()
    for exchange in (whole, damaged):
        hidden = redactor.redact(exchange)
        assert isinstance(hidden, Exchange)
        assert b"alice" not in hidden.request.payload
        sizes.add(hidden.request.size)
    assert sizes == {whole.request.size - 7 - length + TOKEN_BYTES - (length + 7 > 126), 8 + TOKEN_BYTES}
    fault = CaptureFault(kind=FaultKind.SASL, reason=f"a token of {length} bytes, answered with 1 bytes", size=length)
    hidden_fault = redactor.redact(fault)
    assert isinstance(hidden_fault, CaptureFault)
    assert (hidden_fault.reason, hidden_fault.size) == ("a token", 0)


def _flagged(data: bytes) -> bytes:
    """Return a batch with the control flag, which any client may set, and a valid checksum."""
    changed = bytearray(data)
    changed[22] |= 0x20
    changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_the_control_flag_protects_no_payload(codec: CompressionType) -> None:
    secret = f"{SECRET}-control".encode()
    builder = BatchBuilder(codec=codec)
    assert builder.append(secret, secret * 9, timestamp=1, headers=[("n", secret)])
    hidden = redact_records(_flagged(builder.build()))
    (batch,) = read_batches(hidden)
    assert isinstance(batch, RecordBatch)
    assert batch.is_control
    assert batch.content()[0].find(secret) < 0


def test_the_names_of_voters_are_hidden_and_markers_are_kept() -> None:
    voter = Voter(voter_id=1, endpoints=(VoterEndpoint(name=SECRET, host=f"{SECRET}.example", port=9093),))
    builder = BatchBuilder(BatchHeader(control=True))
    builder.append_control(ControlType.KRAFT_VOTERS, VotersRecord(voters=(voter,)), timestamp=5)
    assert SECRET.encode() not in redact_records(builder.build())
    for kind in (ControlType.ABORT, ControlType.COMMIT):
        builder = BatchBuilder(BatchHeader(producer_id=1, producer_epoch=0, control=True, transactional=True))
        builder.append_control(kind, EndTxnMarker(coordinator_epoch=3), timestamp=5)
        assert redact_records(builder.build()) == builder.build()
