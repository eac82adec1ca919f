"""The facts of an error are parameters that a type checker sees."""

from __future__ import annotations

from kafka_msgs.errors import (
    CorruptRecordError,
    DecodeError,
    EncodeError,
    KafkaMsgsError,
    SchemaError,
    TruncatedError,
    UnsupportedVersionError,
)
from kafka_msgs.versions import VersionRange

DecodeError(message="Ping", version=1, path="name", offset=3, reason="no")
DecodeError(mesage="Ping", version=1, path="name", offset=3, reason="no")  # refused
DecodeError(message="Ping", version=1, path="name", offset=3)  # refused
DecodeError("Ping", 1, "name", 3, "no")  # refused
TruncatedError(message="Ping", version=None, path="name", offset="3", reason="no")  # refused
EncodeError(message="Ping", version=1, path="", value=object(), reason="no")
CorruptRecordError(position=0, offset=None, at=4, index=None, compressed=False, reason="no")
CorruptRecordError(position=0, offset=None, reason="no")  # refused
UnsupportedVersionError(message="Ping", version=1, supported=VersionRange(0, 4))
UnsupportedVersionError(message="Ping", version=1, supported="0-4")  # refused
SchemaError("no", line=3)
SchemaError("no", 3)  # refused


def facts(error: KafkaMsgsError) -> int:
    try:
        raise error from ValueError()
    except UnsupportedVersionError as caught:
        return caught.supported.highest
    except DecodeError as caught:
        return caught.message  # refused
