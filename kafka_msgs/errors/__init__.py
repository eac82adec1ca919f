"""The exceptions of kafka-msgs: each error as data, and the one place that makes its text.

Every error has its facts as attributes, so a program can use them. Its text is made from these facts, here. No other
code formats a position or a path, or decides how long a shown value may be. There is one module per area. Import the
names from here.
"""

from kafka_msgs.errors.base import InternalError, KafkaMsgsError, MissingExtraError, shown
from kafka_msgs.errors.capture import CaptureError
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
from kafka_msgs.errors.columns import ColumnSizeError, ColumnTypeError
from kafka_msgs.errors.jobs import JobPathError, OptionError
from kafka_msgs.errors.log import LogFileError
from kafka_msgs.errors.lookup import UnknownColumnError, UnknownMessageError, UnknownNameError, UnknownTopicError
from kafka_msgs.errors.records import (
    CompressionError,
    CorruptRecordError,
    CrcMismatchError,
    DecompressedSizeError,
    RecordBudgetError,
    RecordError,
    RecordWriteError,
    UnsupportedMagicError,
)
from kafka_msgs.errors.schema import SchemaError
from kafka_msgs.errors.wire import FrameSizeError

__all__ = [
    "BudgetExceededError",
    "CaptureError",
    "ColumnSizeError",
    "ColumnTypeError",
    "CompressionError",
    "CorruptRecordError",
    "CrcMismatchError",
    "DecodeError",
    "DecompressedSizeError",
    "EncodeError",
    "FrameSizeError",
    "InternalError",
    "InvalidKeyTypeError",
    "InvalidLengthError",
    "InvalidTagError",
    "InvalidUtf8Error",
    "InvalidVarintError",
    "JobPathError",
    "JsonFormError",
    "KafkaMsgsError",
    "LogFileError",
    "MissingExtraError",
    "OptionError",
    "RecordBudgetError",
    "RecordError",
    "RecordWriteError",
    "SchemaError",
    "TrailingDataError",
    "TruncatedError",
    "UnexpectedNullError",
    "UnknownColumnError",
    "UnknownMessageError",
    "UnknownNameError",
    "UnknownTopicError",
    "UnsupportedFieldError",
    "UnsupportedMagicError",
    "UnsupportedVersionError",
    "shown",
]

# Tracebacks and pickles name an exception by its public place.
for _name in __all__:
    globals()[_name].__module__ = __name__
