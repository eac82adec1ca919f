"""Values whose own code runs during a call: it may raise any exception, and change the message being encoded."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from kafka_msgs.codec import CodecOptions, DecodeBudget
from kafka_msgs.errors import EncodeError
from kafka_msgs.schema import Struct, field
from kafka_msgs.validators import LARGEST
from tests.support.codecs import Codecs, message_class, struct_class

Part = struct_class("Part", number=field("Number", "int64", default=0))
Message: Any = message_class(
    "Message",
    versions="0-1",
    flexible="0+",
    number=field("Number", "int32", default=0),
    real=field("Real", "float64", default=0.0),
    numbers=field("Numbers", "[]int32", default=()),
    data=field("Data", "bytes", default=b""),
    parts=field("Parts", "[]Part", default=(), struct=Part),
    later=field("Later", "int32", default=0, versions="1+"),
    mark=field("Mark", "int32", default=0, tag=0, tagged="0+"),
    part=field("Part", "Part", default=Part(), tag=1, tagged="0+", struct=Part),
)


class Stop(BaseException):
    """A ``BaseException`` that is not an ``Exception``, like ``KeyboardInterrupt``."""


class Interrupted:
    """Interrupts the caller that reads its value, but only once, like a signal."""

    asked = 0

    def interrupt(self, *_: Any) -> Any:
        self.asked += 1
        if self.asked == 1:
            raise Stop
        return 1

    __index__ = interrupt

    def __eq__(self, other: object) -> bool:
        return bool(self.interrupt())

    __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("place", ["number", "later", "mark"])
def test_an_interrupt_passes_through(codecs: Codecs, place: str) -> None:
    value = Interrupted()
    with pytest.raises(Stop):
        codecs.encode(Message(**{place: value}), 0)
    assert value.asked == 1


@pytest.mark.parametrize(
    "wrap",
    [
        lambda value: {"numbers": (1, value)},
        lambda value: {"parts": (Part(number=value),)},
        lambda value: {"part": Part(number=value)},
    ],
)
def test_an_interrupt_passes_through_arrays_and_structs(codecs: Codecs, wrap: Any) -> None:
    value = Interrupted()
    with pytest.raises(Stop):
        codecs.encode(Message(**wrap(value)), 0)
    assert value.asked == 1


class Real(float):
    """A subclass of float, which requires one more conversion."""


class Vanishing:
    """Removes itself, the last reference to it, from the message that is being encoded."""

    owner: Struct
    attribute: str

    def vanish(self, *_: Any) -> Any:
        if getattr(self.owner, self.attribute) is self:
            object.__setattr__(self.owner, self.attribute, 1)
        gc.collect()
        return 7

    __index__ = vanish

    def __float__(self) -> float:
        return Real(self.vanish())


def vanishing(attribute: str) -> Any:
    """Return a message that holds the only reference to a value that removes itself."""
    value = Vanishing()
    message = Message(**{attribute: value})
    value.owner, value.attribute = message, attribute
    return message


@pytest.mark.filterwarnings("ignore:.*returned non-float:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*returned non-int:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize("attribute", ["number", "real"])
def test_a_value_may_leave_the_message_while_it_is_written(codecs: Codecs, attribute: str) -> None:
    message = vanishing(attribute)
    try:
        data = codecs.encode(message, 0)
    except EncodeError:
        assert attribute == "real"
    else:
        assert getattr(codecs.decode(Message, data, 0), attribute) in (1, 7)
    assert getattr(message, attribute) == 1


class VanishingBuffer(bytearray):
    """Bytes that remove themselves in the same way (Python calls ``__buffer__`` since 3.12)."""

    owner: Any

    def __buffer__(self, flags: int) -> memoryview:
        object.__setattr__(self.owner, "data", b"")
        return memoryview(b"from elsewhere")


def test_bytes_may_leave_the_message_while_they_are_written(codecs: Codecs) -> None:
    data = VanishingBuffer(b"what is in it")
    data.owner = message = Message(data=data)
    del data
    assert codecs.decode(Message, codecs.encode(message, 0), 0).data in (b"what is in it", b"from elsewhere")


class Reentrant:
    """Encodes another message with the same codec while it is being encoded."""

    def __init__(self, codecs: Codecs) -> None:
        self.codecs = codecs

    def __index__(self) -> int:
        return self.codecs.encode(Message(number=5, numbers=tuple(range(1000))), 0)[3]


def test_a_codec_may_be_used_while_it_is_used(codecs: Codecs) -> None:
    message = Message(numbers=(1, 2, 3), parts=(Part(number=Reentrant(codecs)), Part(number=6)))
    decoded = codecs.decode(Message, codecs.encode(message, 0), 0)
    assert decoded == Message(numbers=(1, 2, 3), parts=(Part(number=5), Part(number=6)))


@pytest.mark.parametrize("limit", ["elements", "bytes", "depth"])
def test_a_budget_may_be_the_largest_that_an_option_may_be(codecs: Codecs, limit: str) -> None:
    options = CodecOptions(budget=DecodeBudget(**{limit: LARGEST}))
    message = Message(number=1, numbers=(2, 3))
    assert codecs.decode(Message, codecs.encode(message, 0), 0, options) == message
