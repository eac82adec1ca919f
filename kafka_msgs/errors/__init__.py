"""The exceptions of kafka-msgs: each error as data, and the code that builds its text.

Every error exposes its facts as attributes. This package builds the text from these facts. It alone formats positions
and paths, and limits the length of displayed values. Each area has a module. Import the names from here.
"""

from kafka_msgs.errors.base import InternalError, KafkaMsgsError, MissingExtraError, shown
from kafka_msgs.errors.broker import BrokerStartError, ClientMetricsError, RefusedRecordsError, RequestRefusedError
from kafka_msgs.errors.capture import CaptureError
from kafka_msgs.errors.catalog import UnknownMessageError, UnknownNameError
from kafka_msgs.errors.client import (
    AuthenticationError,
    BrokerError,
    ClientBrokenError,
    ClientClosedError,
    ClientError,
    CommitFailedError,
    ConnectionFailedError,
    DeadlineError,
    DeserializationError,
    FencedError,
    ForkedError,
    OffsetPositionError,
    RequestLimitError,
    TooManyBrokersError,
    UndeliveredError,
    UnknownTopicError,
    WakeupError,
)
from kafka_msgs.errors.codec import (
    BudgetExceededError,
    DecodeError,
    EncodeError,
    InvalidKeyTypeError,
    InvalidLengthError,
    InvalidTagError,
    InvalidUtf8Error,
    InvalidVarintError,
    JsonFormError,
    TrailingDataError,
    TruncatedError,
    UnexpectedNullError,
    UnsupportedFieldError,
    UnsupportedVersionError,
)
from kafka_msgs.errors.columns import ColumnSizeError, ColumnTypeError, UnknownColumnError
from kafka_msgs.errors.groups import AssignorError, GroupError
from kafka_msgs.errors.internal_topics import UnknownInternalTopicError
from kafka_msgs.errors.log import LogFileError, RemoteFormatError
from kafka_msgs.errors.options import (
    ConcurrentRunError,
    ExpressionError,
    ForkedProcessError,
    JobPathError,
    OptionError,
    StorageError,
    UnseenFileError,
)
from kafka_msgs.errors.producer import (
    ProducerClosedError,
    ProducerFencedError,
    RecordsPurgedError,
    TransactionStateError,
)
from kafka_msgs.errors.records import (
    CompressionError,
    CorruptRecordError,
    CrcMismatchError,
    DecompressedSizeError,
    NoProgressError,
    RecordBudgetError,
    RecordError,
    RecordWriteError,
    UnsupportedMagicError,
)
from kafka_msgs.errors.registry import PayloadError, RegisteredSchemaError, RegistryError, UnknownSchemaError
from kafka_msgs.errors.schema import SchemaError
from kafka_msgs.errors.tap import TapError
from kafka_msgs.errors.testing import CassetteError
from kafka_msgs.errors.wire import FrameSizeError, LocalProtocolError, ProtocolError, RemoteProtocolError

__all__ = [
    "AssignorError",
    "AuthenticationError",
    "BrokerError",
    "BrokerStartError",
    "BudgetExceededError",
    "CaptureError",
    "CassetteError",
    "ClientBrokenError",
    "ClientClosedError",
    "ClientError",
    "ClientMetricsError",
    "ColumnSizeError",
    "ColumnTypeError",
    "CommitFailedError",
    "CompressionError",
    "ConcurrentRunError",
    "ConnectionFailedError",
    "CorruptRecordError",
    "CrcMismatchError",
    "DeadlineError",
    "DecodeError",
    "DecompressedSizeError",
    "DeserializationError",
    "EncodeError",
    "ExpressionError",
    "FencedError",
    "ForkedError",
    "ForkedProcessError",
    "FrameSizeError",
    "GroupError",
    "InternalError",
    "InvalidKeyTypeError",
    "InvalidLengthError",
    "InvalidTagError",
    "InvalidUtf8Error",
    "InvalidVarintError",
    "JobPathError",
    "JsonFormError",
    "KafkaMsgsError",
    "LocalProtocolError",
    "LogFileError",
    "MissingExtraError",
    "NoProgressError",
    "OffsetPositionError",
    "OptionError",
    "PayloadError",
    "ProducerClosedError",
    "ProducerFencedError",
    "ProtocolError",
    "RecordBudgetError",
    "RecordError",
    "RecordWriteError",
    "RecordsPurgedError",
    "RefusedRecordsError",
    "RegisteredSchemaError",
    "RegistryError",
    "RemoteFormatError",
    "RemoteProtocolError",
    "RequestLimitError",
    "RequestRefusedError",
    "SchemaError",
    "StorageError",
    "TapError",
    "TooManyBrokersError",
    "TrailingDataError",
    "TransactionStateError",
    "TruncatedError",
    "UndeliveredError",
    "UnexpectedNullError",
    "UnknownColumnError",
    "UnknownInternalTopicError",
    "UnknownMessageError",
    "UnknownNameError",
    "UnknownSchemaError",
    "UnknownTopicError",
    "UnseenFileError",
    "UnsupportedFieldError",
    "UnsupportedMagicError",
    "UnsupportedVersionError",
    "WakeupError",
    "shown",
]

# Tracebacks and pickles use the public module of an exception.
for _name in __all__:
    globals()[_name].__module__ = __name__
