"""The exceptions: their attributes, their texts, and that both survive a process boundary."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

import kafka_msgs
from kafka_msgs import errors
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import (
    AssignorError,
    AuthenticationError,
    BrokerError,
    BrokerStartError,
    BudgetExceededError,
    CaptureError,
    CassetteError,
    ClientBrokenError,
    ClientClosedError,
    ClientError,
    ClientMetricsError,
    ColumnSizeError,
    ColumnTypeError,
    CommitFailedError,
    CompressionError,
    ConcurrentRunError,
    ConnectionFailedError,
    CorruptRecordError,
    CrcMismatchError,
    DeadlineError,
    DecodeError,
    DecompressedSizeError,
    DeserializationError,
    EncodeError,
    ExpressionError,
    FencedError,
    ForkedError,
    ForkedProcessError,
    FrameSizeError,
    GroupError,
    InternalError,
    InvalidKeyTypeError,
    InvalidLengthError,
    InvalidTagError,
    InvalidUtf8Error,
    InvalidVarintError,
    JobPathError,
    JsonFormError,
    KafkaMsgsError,
    LocalProtocolError,
    LogFileError,
    MissingExtraError,
    NoProgressError,
    OffsetPositionError,
    OptionError,
    PayloadError,
    ProducerClosedError,
    ProducerFencedError,
    ProtocolError,
    RecordBudgetError,
    RecordError,
    RecordsPurgedError,
    RecordWriteError,
    RefusedRecordsError,
    RegisteredSchemaError,
    RegistryError,
    RemoteFormatError,
    RemoteProtocolError,
    RequestLimitError,
    RequestRefusedError,
    SchemaError,
    StorageError,
    TapError,
    TooManyBrokersError,
    TrailingDataError,
    TransactionStateError,
    TruncatedError,
    UndeliveredError,
    UnexpectedNullError,
    UnknownColumnError,
    UnknownInternalTopicError,
    UnknownMessageError,
    UnknownNameError,
    UnknownSchemaError,
    UnknownTopicError,
    UnseenFileError,
    UnsupportedFieldError,
    UnsupportedMagicError,
    UnsupportedVersionError,
    WakeupError,
)
from kafka_msgs.versions import VersionRange

POSITION: dict[str, Any] = {
    "message": "OffsetFetchRequest",
    "version": 8,
    "path": "groups[2].topics[0].name",
    "offset": 117,
    "reason": "string needs 40 bytes, 12 left",
}
DECODE_TEXT = "OffsetFetchRequest v8: groups[2].topics[0].name at byte 117: string needs 40 bytes, 12 left"
FIELD: dict[str, Any] = {
    "message": "OffsetFetchRequest", "version": 1, "path": "topics", "value": None, "reason": "None is not allowed",
}  # fmt: skip
ENCODE_TEXT = "OffsetFetchRequest v1: topics: None is not allowed"

DECODE_ERRORS = [
    BudgetExceededError, DecodeError, InvalidLengthError, InvalidTagError, InvalidUtf8Error, InvalidVarintError,
    TrailingDataError, TruncatedError, UnexpectedNullError,
]  # fmt: skip

ABSTRACT = (KafkaMsgsError, ClientError, ProtocolError)
REFUSED = ConnectionFailedError(address="b:1", step="connect", reason="no")

TEXTS: list[tuple[KafkaMsgsError, str]] = [
    *[(cls(**POSITION), DECODE_TEXT) for cls in DECODE_ERRORS],
    (EncodeError(**FIELD), ENCODE_TEXT),
    (UnsupportedFieldError(**FIELD), ENCODE_TEXT),
    (EncodeError(**{**FIELD, "version": None}), "OffsetFetchRequest: topics: None is not allowed"),
    (
        AuthenticationError(address="b:9093", mechanism="PLAIN", reason="refused"),
        "b:9093: authenticate (PLAIN): refused",
    ),
    (
        BrokerError(error=ErrorCode.NOT_COORDINATOR, retriable=True, api="OffsetFetch"),
        "OffsetFetch: NOT_COORDINATOR (16)",
    ),
    (
        BrokerError(error=ErrorCode.UNKNOWN_TOPIC_ID, retriable=True, api="Fetch", subject=("t", 0), message="gone"),
        "Fetch: UNKNOWN_TOPIC_ID (100) for ('t', 0): gone",
    ),
    (ConnectionFailedError(address="b:1", step="connect", reason="refused"), "b:1: connect: refused"),
    (
        TooManyBrokersError(brokers=1001, limit=1000),
        "the metadata name 1001 brokers, more than max_brokers (1000)",
    ),
    (
        RequestLimitError(address="b1:9092", limit=3),
        "b1:9092: 3 requests wait for their answers, which is the limit (max_in_flight)",
    ),
    (OffsetPositionError(topic="t", partition=3, reason="there is none"), "t-3: there is none"),
    (
        ProducerFencedError(error=ErrorCode.PRODUCER_FENCED, retriable=False, api="EndTxn", subject="payments"),
        "EndTxn: PRODUCER_FENCED (90) for payments",
    ),
    (ProducerClosedError(), "the producer is closed"),
    (
        TransactionStateError(action="send a record", state="has no transaction"),
        "cannot send a record: the producer has no transaction",
    ),
    (DeadlineError(waiting_for="an answer"), "the time is over while waiting for an answer"),
    (
        DeadlineError(waiting_for="b", cause=REFUSED),
        "the time is over while waiting for b; the last failure was: b:1: connect: no",
    ),
    (AssignorError(reason="Partitions were left unassigned"), "Partitions were left unassigned"),
    (GroupError(error=ErrorCode.UNKNOWN_MEMBER_ID), "UNKNOWN_MEMBER_ID"),
    (
        BrokerStartError(address="127.0.0.1:9092", reason="Address already in use"),
        "127.0.0.1:9092: Address already in use",
    ),
    (RefusedRecordsError(error=ErrorCode.INVALID_RECORD, record_errors=((0, "no key"),)), "INVALID_RECORD"),
    (RequestRefusedError(error=ErrorCode.INVALID_CONFIG, message="no such name"), "INVALID_CONFIG: no such name"),
    (CaptureError(file="a.pcap", packet=3, reason="packet 3: gone"), "a.pcap: packet 3: gone"),
    (FrameSizeError(size=-1, limit=100), "a frame of -1 bytes, at most 100 are allowed"),
    (TapError(address="127.0.0.1:9092", reason="Address already in use"), "127.0.0.1:9092: Address already in use"),
    (CassetteError(path="a.jsonl", reason="there is no recording"), "a.jsonl: there is no recording"),
    (
        FrameSizeError(size=int.from_bytes(b"HTTP", "big"), limit=100),
        "a frame of 1213486160 bytes, at most 100 are allowed; these bytes look like HTTP",
    ),
    (
        FrameSizeError(size=0x15030300, limit=100),
        "a frame of 352518912 bytes, at most 100 are allowed; these bytes look like TLS",
    ),
    (LocalProtocolError(state="CLOSED", reason="too late"), "connection CLOSED: too late"),
    (RemoteProtocolError(state="OPEN", reason="a response to no request"), "connection OPEN: a response to no request"),
    (LogFileError(file="a.log", position=61, skipped=9, reason="9 bytes left"), "a.log at byte 61: 9 bytes left"),
    (RemoteFormatError(file="a.rsm-manifest", reason="compressed"), "a.rsm-manifest: compressed"),
    (
        UnknownColumnError(source="FetchRequest v4", column="topic", near=("topics", "topics.topic")),
        "FetchRequest v4 has no column 'topic'; similar: topics, topics.topic",
    ),
    (
        ColumnTypeError(column="topics.name", expected="string", found="int32"),
        "column topics.name is 'int32', expected 'string'",
    ),
    (ColumnTypeError(column="", expected="binary", found="int32"), "the column is 'int32', expected 'binary'"),
    (
        ColumnSizeError(rows=3, size=2**32),
        "the values of 3 rows of 4294967296 bytes need more than one array: give them in chunks",
    ),
    (ClientMetricsError(reason="the payload ends early"), "not metrics of OpenTelemetry: the payload ends early"),
    (ClientBrokenError(cause=ValueError("no")), "the I/O of the client ended with ValueError: no"),
    (ClientClosedError(), "the client is closed"),
    (
        CommitFailedError(error=ErrorCode.ILLEGAL_GENERATION, retriable=False, api="OffsetCommit"),
        "OffsetCommit: ILLEGAL_GENERATION (22)",
    ),
    (
        DeserializationError(topic="t", partition=1, offset=5, cause=ValueError("no")),
        "t-1 at offset 5 cannot be deserialized: ValueError: no",
    ),
    (
        FencedError(error=ErrorCode.FENCED_INSTANCE_ID, retriable=False, api="Heartbeat"),
        "Heartbeat: FENCED_INSTANCE_ID (82)",
    ),
    (ForkedError(), "the client was created before a fork; create another one in the child process"),
    (
        NoProgressError(position=0, offset=4, reason="stalled", topic="t", partition=1),
        "t-1: the broker sends no complete batch at offset 4",
    ),
    (RecordsPurgedError(), "purge() dropped the record"),
    (UndeliveredError(count=2, cause=ValueError("no")), "2 records were not delivered; the first failure: no"),
    (
        UnknownTopicError(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, retriable=True, api="Metadata", subject="t"),
        "Metadata: UNKNOWN_TOPIC_OR_PARTITION (3) for t; clients do not create topics",
    ),
    (WakeupError(), "wakeup() interrupted the call"),
    (UnknownInternalTopicError(topic="orders"), "'orders' is not an internal topic"),
    (
        UnsupportedVersionError(message="Ping", version=9, supported=VersionRange(0, 4)),
        "Ping has no version 9; it has 0-4",
    ),
    (
        UnknownMessageError(api_key=999, kind="request", origin="clients"),
        "no request of clients has the api key 999",
    ),
    (
        InvalidKeyTypeError(message="GroupMetadataKey", expected=2, found=1),
        "GroupMetadataKey has the record type 2, this key has 1",
    ),
    (
        MissingExtraError(feature="compile_schema", extra="generator", package="jinja2"),
        "compile_schema needs jinja2: pip install 'kafka-msgs[generator]'",
    ),
    (InternalError(reason="two and two"), "internal error, please report: two and two"),
    (
        JsonFormError(message="Ping", version=0, path="Ping.name", reason="missing"),
        "Ping v0: Ping.name: missing",
    ),
    (
        RecordError(position=70, offset=5, reason="no batch"),
        "batch at byte 70, offset 5: no batch",
    ),
    (
        CorruptRecordError(position=70, offset=5, at=131, index=3, compressed=False, reason="too short"),
        "batch at byte 70, offset 5: record 3 at byte 131: too short",
    ),
    (
        CorruptRecordError(position=70, offset=5, at=9, index=3, compressed=True, reason="too short"),
        "batch at byte 70, offset 5: record 3 at byte 9 of the decompressed records: too short",
    ),
    (
        CrcMismatchError(position=70, offset=5, expected=1, found=2, reason="changed"),
        "batch at byte 70, offset 5: changed",
    ),
    (
        UnsupportedMagicError(position=70, offset=None, magic=3, reason="the format 3 is unknown"),
        "batch at byte 70: the format 3 is unknown",
    ),
    (
        CompressionError(position=70, offset=5, codec="zstd", reason="zstd data is damaged"),
        "batch at byte 70, offset 5: zstd data is damaged",
    ),
    (
        DecompressedSizeError(position=70, offset=5, codec="zstd", limit=9, reason="more than 9"),
        "batch at byte 70, offset 5: more than 9",
    ),
    (
        RecordBudgetError(position=70, offset=5, limit=9, reason="more than 9 records and headers"),
        "batch at byte 70, offset 5: more than 9 records and headers",
    ),
    (
        RecordWriteError(field="offset", value=-1, reason="-1 is not from 0 to 9"),
        "offset: -1 is not from 0 to 9",
    ),
    (
        ForkedProcessError(filesystem="hdfs"),
        "hdfs: this process was forked from one that has used hdfs, and would wait forever; start processes by spawn "
        "or forkserver, or before the first use",
    ),
    (
        StorageError(path="memory://out", reason="it cannot create files"),
        "memory://out: it cannot create files",
    ),
    (
        ConcurrentRunError(path="out", run="4f", reason="another run has committed 7"),
        "out: run 4f is not committed: another run has committed 7",
    ),
    (
        UnseenFileError(path="out/a", reason="this process does not see it"),
        "out/a: this process does not see it",
    ),
    (
        JobPathError(path="out", reason="there is something already"),
        "out: there is something already",
    ),
    (
        OptionError(source="kafka-log", option="mode", value="odd", reason="it is one of three"),
        "kafka-log: option mode 'odd': it is one of three",
    ),
    (
        ExpressionError(expression="value.a >", position=9, reason="a number is expected"),
        "'value.a >' at character 10: a number is expected",
    ),
    (
        UnknownNameError(name="OfsetFetchRequest", near=("OffsetFetchRequest",)),
        "there is no message 'OfsetFetchRequest'; similar: OffsetFetchRequest",
    ),
    (
        RegistryError(source="http://registry", status=500, reason="Internal Server Error"),
        "http://registry: status 500: Internal Server Error",
    ),
    (RegistryError(source="schemas.json", reason="it is not JSON"), "schemas.json: it is not JSON"),
    (UnknownSchemaError(source="http://registry", schema="schema 7"), "http://registry has no schema 7"),
    (RegisteredSchemaError(schema_id=7, reason="R contains itself"), "schema 7: R contains itself"),
    (PayloadError(row=3, schema_id=7, reason="too short"), "row 3 of schema 7: too short"),
    (PayloadError(row=3, schema_id=None, reason="no header"), "row 3: no header"),
    (
        SchemaError("not a type", source="Ping.json", line=3, column=9, path="Ping.name", rule="V19"),
        "Ping.json:3:9: Ping.name: not a type [V19]",
    ),
]


@pytest.mark.parametrize(("error", "text"), TEXTS, ids=[type(error).__name__ for error, _ in TEXTS])
def test_the_text_is_built_from_the_facts(error: KafkaMsgsError, text: str) -> None:
    assert str(error) == text


@pytest.mark.parametrize(("error", "text"), TEXTS, ids=[type(error).__name__ for error, _ in TEXTS])
def test_an_error_survives_pickling_whole(error: KafkaMsgsError, text: str) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == text
    assert {**vars(copy), "cause": None} == {**vars(error), "cause": None}
    assert str(vars(copy).get("cause")) == str(vars(error).get("cause"))


def test_every_error_of_the_module_is_covered_here_and_exported() -> None:
    defined = {
        cls for _, cls in inspect.getmembers(errors, inspect.isclass)
        if issubclass(cls, KafkaMsgsError) and cls not in ABSTRACT
    }  # fmt: skip
    assert defined == {type(error) for error, _ in TEXTS}
    assert {cls.__name__ for cls in (*defined, *ABSTRACT)} | {"shown"} == set(errors.__all__)


def test_the_top_level_has_the_base_and_what_everybody_catches() -> None:
    top = {name for name in kafka_msgs.__all__ if name.endswith("Error")}
    assert top == {
        "KafkaMsgsError", "SchemaError", "UnsupportedVersionError", "EncodeError", "DecodeError", "RecordError",
    }  # fmt: skip
    assert all(getattr(kafka_msgs, name) is getattr(errors, name) for name in top)


def test_tracebacks_and_pickles_name_an_error_by_its_public_place() -> None:
    assert {getattr(errors, name).__module__ for name in errors.__all__} == {"kafka_msgs.errors"}


def test_the_facts_are_attributes() -> None:
    error = TruncatedError(**POSITION)
    assert (error.message, error.version, error.path) == ("OffsetFetchRequest", 8, "groups[2].topics[0].name")
    assert (error.offset, error.reason) == (117, "string needs 40 bytes, 12 left")
    refusal = EncodeError(**FIELD | {"value": 3})
    assert (refusal.path, refusal.value) == ("topics", 3)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"path": ""}, "Ping v1: at byte 0: no"),
        ({"path": "", "version": None}, "Ping: at byte 0: no"),
        ({"path": "name", "version": None}, "Ping: name at byte 0: no"),
    ],
)
def test_a_decode_error_leaves_out_what_is_not_known(facts: dict[str, Any], text: str) -> None:
    known: dict[str, Any] = {"message": "Ping", "version": 1, "path": "", "offset": 0, "reason": "no"}
    assert str(DecodeError(**known | facts)) == text


def test_an_encode_error_of_the_whole_message_has_no_path() -> None:
    error = EncodeError(message="Ping", version=1, path="", value=3, reason="expected Ping, got int")
    assert str(error) == "Ping v1: expected Ping, got int"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, "no"),
        ({"source": "Ping.json"}, "Ping.json: no"),
        ({"source": "Ping.json", "line": 2}, "Ping.json:2: no"),
        ({"path": "Ping.name", "rule": "V1"}, "Ping.name: no [V1]"),
        ({"line": 2, "column": 5}, "2:5: no"),
    ],
)
def test_a_schema_error_says_as_much_of_the_place_as_is_known(place: dict[str, Any], text: str) -> None:
    assert str(SchemaError("no", **place)) == text


@pytest.mark.parametrize("cls", DECODE_ERRORS)
def test_what_is_wrong_with_bytes_is_a_decode_error_and_a_value_error(cls: type[KafkaMsgsError]) -> None:
    assert issubclass(cls, DecodeError)
    assert issubclass(cls, ValueError)


@pytest.mark.parametrize(
    ("cls", "base"),
    [
        (UnsupportedFieldError, EncodeError),
        (EncodeError, ValueError),
        (JsonFormError, ValueError),
        (SchemaError, ValueError),
        (UnsupportedVersionError, ValueError),
        (InvalidKeyTypeError, ValueError),
        (UnknownColumnError, LookupError),
        (ColumnTypeError, TypeError),
        (ColumnSizeError, OverflowError),
        (UnknownMessageError, LookupError),
        (MissingExtraError, ImportError),
        (InternalError, KafkaMsgsError),
    ],
)
def test_errors_are_also_what_python_calls_such_errors(cls: type[Exception], base: type[Exception]) -> None:
    assert issubclass(cls, base)
    assert issubclass(cls, KafkaMsgsError)


def test_the_base_class_is_not_raised_itself() -> None:
    with pytest.raises(TypeError, match="KafkaMsgsError is abstract"):
        KafkaMsgsError()


def test_a_fact_that_an_error_does_not_have_is_refused() -> None:
    facts = {**POSITION, "mesage": "Ping"}
    with pytest.raises(TypeError, match="mesage"):
        DecodeError(**facts)
    with pytest.raises(TypeError, match="reason"):
        DecodeError(**{name: POSITION[name] for name in POSITION if name != "reason"})


def test_errors_are_equal_only_to_themselves() -> None:
    one, other = TruncatedError(**POSITION), TruncatedError(**POSITION)
    assert one != other
    assert len({one, other, one}) == 2


def test_an_error_takes_a_cause_a_traceback_and_notes_and_keeps_the_notes_in_pickles() -> None:
    cause = KeyError("offset")
    with pytest.raises(TruncatedError) as caught:
        raise TruncatedError(**POSITION) from cause
    error = caught.value
    assert error.__cause__ is cause
    assert error.with_traceback(None).__traceback__ is None
    error.add_note("read from a capture")
    copy = pickle.loads(pickle.dumps(error))
    assert copy.__notes__ == ["read from a capture"]
    assert copy.args == error.args


def test_the_repr_shows_the_text_and_no_value_of_any_size() -> None:
    error = EncodeError(**FIELD | {"value": b"x" * 1_000_000})
    assert repr(error) == f"EncodeError({ENCODE_TEXT!r})"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        ("billing", "'billing'"),
        ("a" * 98, f"'{'a' * 98}'"),
        ("a" * 99, f"'{'a' * 99}..."),
        (b"x" * 1_000_000, f"b'{'x' * 98}..."),
        pytest.param(10**5000, "<int>", id="5001 digits"),
    ],
)
def test_a_text_shows_a_value_at_bounded_length(value: Any, text: str) -> None:
    assert errors.shown(value) == text
