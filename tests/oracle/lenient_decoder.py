"""A decoder that is as lenient as Kafka's own, and records each leniency it uses.

It is the reference interpreter with this library's deliberate strictness removed point by point: each method here is
one point, and first records its use. The list of ``DEVIATIONS`` is therefore measured, not claimed: input that Kafka
accepts and this library rejects must be accepted here through a recorded deviation; input that Kafka rejects must be
rejected here as well.
"""

from __future__ import annotations

import codecs
import re
from typing import Any, Final

from kafka_msgs.codec import CodecOptions
from kafka_msgs.codec.ops import MAX_TAG, MAX_TAGS, Op
from kafka_msgs.codec.plan import Plan, Step, StructPlan, WireValue
from kafka_msgs.codec.reference.decoder import Decoder
from kafka_msgs.errors import (
    DecodeError,
    InvalidLengthError,
    InvalidTagError,
    InvalidUtf8Error,
    InvalidVarintError,
    TrailingDataError,
    TruncatedError,
)
from kafka_msgs.primitives import MAX_UINT32

__all__ = ["BEFORE_4_4", "DEVIATIONS", "LenientDecoder"]

DEVIATIONS: Final[dict[str, tuple[type[DecodeError], ...]]] = {
    "varint of more than 32 bits": (InvalidVarintError,),
    "negative length other than -1": (InvalidLengthError, TruncatedError),
    "tag number above 2147483647": (InvalidTagError,),
    "tags out of order or repeated": (InvalidTagError,),
    "wrong size of a known tag": (InvalidTagError, TruncatedError, InvalidLengthError),
    "text that is not UTF-8": (InvalidUtf8Error,),
    "trailing bytes": (TrailingDataError,),
}
"""Input that Kafka's classes accept and this library rejects, with the possible errors.

A compact length that is negative for Kafka is a large one here, which exceeds the available bytes. A known tag of the
wrong size may cause an error inside its value, if the bytes of the tag end too early.
"""

BEFORE_4_4: Final[dict[str, tuple[type[DecodeError], ...]]] = {
    "negative number of tags": (DecodeError,),
    "more than 10000 tags": (InvalidTagError,),
}
"""Input that only classes generated before Kafka 4.4 accept, which did not check the number of tags.

Kafka's test messages may be of a different release than all other messages.
"""

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


class LenientDecoder(Decoder):
    """Decodes as Kafka does; ``deviations`` lists, in order, the input that the strict decoder rejects."""

    def __init__(self, plan: Plan, data: bytes, *, counts_tags: bool) -> None:
        super().__init__(plan, data, 0, CodecOptions(utf8_errors="surrogateescape"))
        self.counts_tags = counts_tags
        self.deviations: list[str] = []

    def whole(self) -> Any:
        """Decode the message and ignore the bytes after it; raise ``DecodeError`` if Kafka rejects it."""
        message = self.message()
        if self.position != self.end:
            self.deviations.append("trailing bytes")
        return message

    def uvarint(self) -> int:
        """Read at most five bytes as a *signed* 32-bit integer, ignoring any higher bits."""
        start = self.position
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1, "varint")[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > MAX_UINT32:
                    self.deviations.append("varint of more than 32 bits")
                return _int32(value)
        self.fail(InvalidVarintError, "varint of more than five bytes", start)

    def length(self, value: WireValue) -> int | None:
        """Read any negative length as null."""
        start = self.position
        if value.compact:
            length = _int32(self.uvarint() - 1)
        else:
            length = self.unpack(Op.INT16 if value.op is Op.STRING else Op.INT32)
        if length >= 0:
            return length
        if length < -1:
            self.deviations.append("negative length other than -1")
        self.check_null(value, start)
        return None

    def value(self, value: WireValue) -> Any:
        """Read a string that is not UTF-8 as Java does."""
        result = super().value(value)
        if isinstance(result, str) and not _is_utf8(result):
            self.deviations.append("text that is not UTF-8")
            return result.encode("utf-8", "surrogateescape").decode("utf-8", "java-replace")
        return result

    def tag_section(self, plan: StructPlan) -> dict[str, Any]:
        """Read tags in any order, including repeated tags."""
        known = {step.tag: step for step in plan.tagged}
        values: dict[str, Any] = {}
        unknown: list[tuple[int, bytes]] = []
        previous = -1
        start = self.position
        count = self.uvarint()
        self.check_tags(count, start)
        for _ in range(count):
            tag, size = self.uvarint(), self.uvarint()
            self.note_tag(tag, previous)
            previous = tag
            if tag in known:
                values[known[tag].attribute] = self.tagged_value(known[tag], size)
            elif tag in plan.inactive_tags:
                self.fail(InvalidTagError, f"tag {tag} is not valid at this version")
            else:
                unknown.append((tag, self.unknown_tag(tag, size)))
        return values | {"unknown_tagged_fields": tuple(unknown)}

    def check_tags(self, count: int, start: int) -> None:
        """Reject what a class of Kafka 4.4 or later rejects; an older class reads tags while bytes are available."""
        if self.counts_tags and not 0 <= count <= min(self.left, MAX_TAGS):
            self.fail(InvalidTagError, f"{count} tags", start)
        if count < 0:
            self.deviations.append("negative number of tags")
        elif count > MAX_TAGS:
            self.deviations.append("more than 10000 tags")

    def note_tag(self, tag: int, previous: int) -> None:
        """Record a tag that does not ascend, or whose number is negative as a signed integer."""
        if tag < 0:
            self.deviations.append("tag number above 2147483647")
        elif tag <= previous:
            self.deviations.append("tags out of order or repeated")

    def tagged_value(self, step: Step, size: int) -> Any:
        """Read a known tag's value wherever it ends."""
        start, mark = self.position, len(self.deviations)
        value = self.field(step)
        if self.position - start != size:
            self.deviations.insert(mark, "wrong size of a known tag")
        return value

    def unknown_tag(self, tag: int, size: int) -> bytes:
        """Read an unknown tag; a negative size is also an error in Java."""
        if size < 0:
            self.fail(InvalidLengthError, f"negative size {size}")
        return super().unknown_tag(tag, size)


def _int32(value: int) -> int:
    """Keep the low 32 bits, as a signed integer."""
    value &= MAX_UINT32
    return value - 2**32 if value > MAX_TAG else value


def _is_utf8(text: str) -> bool:
    """Return whether the text has no bytes escaped by ``surrogateescape``."""
    return text.isascii() or not any("\udc80" <= char <= "\udcff" for char in text)


def _java_replace(error: UnicodeError) -> tuple[str, int]:
    """Replace invalid UTF-8 as Java does: like Python, but with one replacement for each encoded surrogate."""
    assert isinstance(error, UnicodeDecodeError)
    surrogate = _SURROGATE.match(error.object, error.start)
    return "\ufffd", surrogate.end() if surrogate else error.end


codecs.register_error("java-replace", _java_replace)
