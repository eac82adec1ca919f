"""kafka-msgs: every Apache Kafka protocol message, at every version, byte for byte.

    >>> from kafka_msgs import OffsetFetchRequest
    >>> OffsetFetchRequest(group_id="billing", topics=None).encode(version=2).hex()
    '000762696c6c696e67ffffffff'

Message classes are attributes of this module and are imported on first access, with one module per message. Nested
structs are in their message's module, such as ``kafka_msgs.messages.offset_fetch_request``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kafka_msgs._backend import backend
from kafka_msgs.codec import Buffer, CodecOptions, DecodeBudget, codec_for
from kafka_msgs.errors import (
    DecodeError,
    EncodeError,
    KafkaMsgsError,
    RecordError,
    SchemaError,
    UnsupportedVersionError,
)
from kafka_msgs.message import Message, Request, Response
from kafka_msgs.schema import FieldInfo, MessageInfo, Struct, evolve, fields
from kafka_msgs.versions import VersionRange

if TYPE_CHECKING:
    from kafka_msgs import messages
    from kafka_msgs.api_keys import ApiKey
    from kafka_msgs.catalog import MessageCatalog, iter_message_classes, message_by_name, message_class
    from kafka_msgs.codec.codec import Codec
    from kafka_msgs.codec.field_access import Patch, Peek
    from kafka_msgs.error_codes import ErrorCode
    from kafka_msgs.messages import *  # noqa: F403
    from kafka_msgs.schema_compiler import compile_schema
    from kafka_msgs.versioned import Versioned, decode_versioned, encode_versioned
else:
    _LAZY = {
        "ApiKey": "kafka_msgs.api_keys",
        "Codec": "kafka_msgs.codec.codec",
        "ErrorCode": "kafka_msgs.error_codes",
        "MessageCatalog": "kafka_msgs.catalog",
        "Patch": "kafka_msgs.codec.field_access",
        "Peek": "kafka_msgs.codec.field_access",
        "Versioned": "kafka_msgs.versioned",
        "compile_schema": "kafka_msgs.schema_compiler",
        "decode_versioned": "kafka_msgs.versioned",
        "encode_versioned": "kafka_msgs.versioned",
        "message_class": "kafka_msgs.catalog",
        "iter_message_classes": "kafka_msgs.catalog",
        "message_by_name": "kafka_msgs.catalog",
    }

    def __getattr__(name: str) -> Any:
        messages = import_module("kafka_msgs.messages")
        if name not in _LAZY and name not in messages.__all__:
            raise AttributeError(f"module 'kafka_msgs' has no attribute {name!r}")
        value = getattr(import_module(_LAZY[name]) if name in _LAZY else messages, name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LAZY, *import_module("kafka_msgs.messages").__all__})


__version__ = "0.1.0"

__all__ = [
    "ApiKey",
    "Buffer",
    "Codec",
    "CodecOptions",
    "DecodeBudget",
    "DecodeError",
    "EncodeError",
    "ErrorCode",
    "FieldInfo",
    "KafkaMsgsError",
    "Message",
    "MessageCatalog",
    "MessageInfo",
    "Patch",
    "Peek",
    "RecordError",
    "Request",
    "Response",
    "SchemaError",
    "Struct",
    "UnsupportedVersionError",
    "VersionRange",
    "Versioned",
    "backend",
    "codec_for",
    "compile_schema",
    "decode_versioned",
    "encode_versioned",
    "evolve",
    "fields",
    "iter_message_classes",
    "message_by_name",
    "message_class",
]

if TYPE_CHECKING:
    __all__ += messages.__all__
