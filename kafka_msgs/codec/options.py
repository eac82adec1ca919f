"""What a caller may choose about decoding and encoding: limits, copies, and how strict text is."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from attrs import Attribute, field, frozen

from kafka_msgs.errors import OptionError

__all__ = ["DEFAULT_BUDGET", "DEFAULT_OPTIONS", "Buffer", "CodecOptions", "DecodeBudget", "as_bytes"]

_HANDLERS: Final = ("strict", "surrogateescape", "replace")

Buffer: TypeAlias = bytes | bytearray | memoryview
"""What can be decoded. ``bytes`` is read in place; the others are copied once."""


def as_bytes(buffer: Buffer) -> bytes:
    """Return the bytes of any buffer, ``bytes`` as they are; ``TypeError`` for what is no buffer."""
    return buffer if isinstance(buffer, bytes) else bytes(memoryview(buffer))


def _natural(budget: object, attribute: Attribute[int], value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        reason = "a whole number from 0 is needed"
        raise OptionError(source="DecodeBudget", option=attribute.name, value=value, reason=reason)


def _budget(options: object, attribute: Attribute[DecodeBudget], value: object) -> None:
    if not isinstance(value, DecodeBudget):
        raise OptionError(source="CodecOptions", option=attribute.name, value=value, reason="a DecodeBudget is needed")


def _handler(options: object, attribute: Attribute[str], value: object) -> None:
    if value not in _HANDLERS:
        reason = f"it is one of {', '.join(_HANDLERS)}"
        raise OptionError(source="CodecOptions", option=attribute.name, value=value, reason=reason)


@frozen(kw_only=True)
class DecodeBudget:
    """How much one decode call may create; beyond it ``BudgetExceededError`` is raised.

    ``elements`` counts array elements and unknown tagged fields, ``bytes`` the content of strings, bytes, records and
    unknown tagged fields, ``depth`` the levels of structs and arrays. Counts and lengths are checked against the bytes
    that are left in any case; a budget bounds how much larger than its input a decoded message may grow. Raises
    ``OptionError`` for what is not a whole number from 0.
    """

    elements: int = field(default=4_000_000, validator=_natural)
    bytes: int = field(default=256 * 1024 * 1024, validator=_natural)
    depth: int = field(default=64, validator=_natural)


DEFAULT_BUDGET: Final = DecodeBudget()
"""The budget of every decoding that is given no other."""


@frozen(kw_only=True)
class CodecOptions:
    """Choices that change what a codec accepts or returns.

    ``budget`` limits decoding. With ``memoryview_records`` the fields of type records, and bytes fields marked
    zero-copy in the definition, are decoded as ``memoryview`` of the input instead of ``bytes``. ``utf8_errors`` is
    the error handler for strings, both ways: ``strict`` refuses what is not UTF-8, ``surrogateescape`` keeps any bytes
    and writes them back, ``replace`` does as Kafka's own classes do and loses them. Raises ``OptionError``.
    """

    budget: DecodeBudget = field(default=DEFAULT_BUDGET, validator=_budget)
    memoryview_records: bool = False
    utf8_errors: Literal["strict", "surrogateescape", "replace"] = field(default="strict", validator=_handler)


DEFAULT_OPTIONS: Final = CodecOptions()
"""The options of every call that is given no others."""
