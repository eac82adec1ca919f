"""A decoder that is as lenient as Kafka's own, and says where it was.

It is the reference interpreter with our deliberate strictness taken back, one point at a time: each method here is one
point, and noting it is the first thing that it does. So the list of ``DEVIATIONS`` is not a claim but a measurement:
what Kafka accepts and we refuse must be accepted here, by way of a noted deviation; what Kafka refuses must be refused
here as well.
"""

from __future__ import annotations

import codecs
import re
from typing import Any, Final

from kafka_msgs.codec import CodecOptions
from kafka_msgs.codec.ops import MAX_TAG, MAX_TAGS, Op
from kafka_msgs.codec.plan import Plan, Step, StructPlan, WireValue
from kafka_msgs.codec.reference import Decoder
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
"""What Kafka's classes accept and this library refuses, with the errors that the refusal may be.

A compact length that is negative to Kafka is a large one here, for which the bytes do not suffice. A known tag of the
wrong size may be noticed inside its value, where the bytes of the tag end too early.
"""

BEFORE_4_4: Final[dict[str, tuple[type[DecodeError], ...]]] = {
    "negative number of tags": (DecodeError,),
    "more than 10000 tags": (InvalidTagError,),
}
"""What only classes accept that were generated before Kafka 4.4, which did not look at the number of tags.

Kafka's test messages are not always of the release that all else is of.
"""

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


class LenientDecoder(Decoder):
    """Decodes as Kafka does; ``deviations`` lists, in order, what the strict decoder would have refused."""

    def __init__(self, plan: Plan, data: bytes, *, counts_tags: bool) -> None:
        super().__init__(plan, data, 0, CodecOptions(utf8_errors="surrogateescape"))
        self.counts_tags = counts_tags
        self.deviations: list[str] = []

    def whole(self) -> Any:
        """Decode the message and leave what follows it; raise ``DecodeError`` where Kafka refuses."""
        message = self.message()
        if self.position != self.end:
            self.deviations.append("trailing bytes")
        return message

    def uvarint(self) -> int:
        """Read five bytes at most as a *signed* 32-bit integer, whatever bits are beyond."""
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
        """Read tags in any order, as often as they come."""
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
        """Refuse what a class of Kafka 4.4 or later refuses; an older one reads tags for as long as there are bytes."""
        if self.counts_tags and not 0 <= count <= min(self.left, MAX_TAGS):
            self.fail(InvalidTagError, f"{count} tags", start)
        if count < 0:
            self.deviations.append("negative number of tags")
        elif count > MAX_TAGS:
            self.deviations.append("more than 10000 tags")

    def note_tag(self, tag: int, previous: int) -> None:
        """Note a tag that does not ascend, or whose number is negative as a signed integer."""
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
        """Read an unknown tag; a negative size is an error in Java too."""
        if size < 0:
            self.fail(InvalidLengthError, f"negative size {size}")
        return super().unknown_tag(tag, size)


def _int32(value: int) -> int:
    """Keep the low 32 bits, as a signed integer."""
    value &= MAX_UINT32
    return value - 2**32 if value > MAX_TAG else value


def _is_utf8(text: str) -> bool:
    """Whether the text has no byte that ``surrogateescape`` had to carry."""
    return text.isascii() or not any("\udc80" <= char <= "\udcff" for char in text)


def _java_replace(error: UnicodeError) -> tuple[str, int]:
    """Replace bad UTF-8 as Java does: like Python, but an encoded surrogate, cut off or not, is one bad character."""
    assert isinstance(error, UnicodeDecodeError)
    surrogate = _SURROGATE.match(error.object, error.start)
    return "\ufffd", surrogate.end() if surrogate else error.end


codecs.register_error("java-replace", _java_replace)
