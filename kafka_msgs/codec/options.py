"""Options for decoding and encoding: limits, views instead of copies, and the handling of text that is not UTF-8."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from attrs import Attribute, field, frozen

from kafka_msgs.errors import OptionError

__all__ = ["DEFAULT_BUDGET", "DEFAULT_OPTIONS", "Buffer", "CodecOptions", "DecodeBudget", "as_bytes"]

_HANDLERS: Final = ("strict", "surrogateescape", "replace")

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Input of decoding. ``bytes`` is read in place. The other types are copied once."""


def as_bytes(buffer: Buffer) -> bytes:
    """Return the bytes of any buffer, without a copy of ``bytes``. Raises ``TypeError`` for other objects."""
    return buffer if isinstance(buffer, bytes) else bytes(memoryview(buffer))


def _natural(budget: object, attribute: Attribute[int], value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        reason = "a whole number from 0 is needed"
        raise OptionError(source="DecodeBudget", option=attribute.name, value=value, reason=reason)


def _budget(options: object, attribute: Attribute[DecodeBudget], value: object) -> None:
    if not isinstance(value, DecodeBudget):
        raise OptionError(source="CodecOptions", option=attribute.name, value=value, reason="a DecodeBudget is needed")


def _flag(options: object, attribute: Attribute[bool], value: object) -> None:
    if not isinstance(value, bool):
        raise OptionError(source="CodecOptions", option=attribute.name, value=value, reason="True or False is needed")


def _handler(options: object, attribute: Attribute[str], value: object) -> None:
    if value not in _HANDLERS:
        reason = f"it is one of {', '.join(_HANDLERS)}"
        raise OptionError(source="CodecOptions", option=attribute.name, value=value, reason=reason)


@frozen(kw_only=True)
class DecodeBudget:
    """How much one decode call may create. Above the budget ``BudgetExceededError`` is raised.

    ``elements`` counts array elements and unknown tagged fields. ``bytes`` counts the content of strings, bytes,
    records and unknown tagged fields. ``depth`` counts the levels of structs and arrays. Counts and lengths are always
    checked against the bytes that are left. The budget also limits how much larger than its input a decoded message can
    be. Raises ``OptionError`` for a value that is not a whole number from 0.
    """

    elements: int = field(default=4_000_000, validator=_natural)
    bytes: int = field(default=256 * 1024 * 1024, validator=_natural)
    depth: int = field(default=64, validator=_natural)


DEFAULT_BUDGET: Final = DecodeBudget()
"""The default budget of decoding."""


@frozen(kw_only=True)
class CodecOptions:
    """Options that change what a codec accepts or returns.

    ``budget`` limits decoding. With ``memoryview_records`` the fields of type records, and bytes fields marked
    zero-copy in the definition, are decoded as a ``memoryview`` of the input and not as ``bytes``. ``utf8_errors`` is
    the error handler for strings, for decoding and encoding. ``strict`` refuses bytes that are not UTF-8.
    ``surrogateescape`` keeps all bytes and writes them back. ``replace`` loses such bytes, as Kafka's own classes do.
    Raises ``OptionError``.
    """

    budget: DecodeBudget = field(default=DEFAULT_BUDGET, validator=_budget)
    memoryview_records: bool = field(default=False, validator=_flag)
    utf8_errors: Literal["strict", "surrogateescape", "replace"] = field(default="strict", validator=_handler)


DEFAULT_OPTIONS: Final = CodecOptions()
"""The default options."""
