"""Options for decoding and encoding: limits, views instead of copies, and the handling of text that is not UTF-8."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from attrs import field, frozen

from kafka_msgs.validators import int_range, is_bool, is_instance, one_of

__all__ = ["DEFAULT_BUDGET", "DEFAULT_OPTIONS", "Buffer", "CodecOptions", "DecodeBudget", "buffer_bytes"]

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Input of decoding. ``bytes`` is read in place. The other types are copied once."""


def buffer_bytes(buffer: Buffer) -> bytes:
    """Return the bytes of any buffer, without a copy of ``bytes``. Raises ``TypeError`` for other objects."""
    return buffer if isinstance(buffer, bytes) else bytes(memoryview(buffer))


@frozen(kw_only=True)
class DecodeBudget:
    """The limits of one decode call. Exceeding the budget raises ``BudgetExceededError``.

    ``elements`` counts array elements and unknown tagged fields. ``bytes`` counts the content of strings, bytes,
    records and unknown tagged fields. ``depth`` counts the levels of structs and arrays. Counts and lengths are always
    checked against the remaining bytes. The budget additionally limits how much larger than its input a decoded message
    can be. Raises ``OptionError`` for a value that is not a non-negative integer.
    """

    elements: int = field(default=4_000_000, validator=int_range())
    bytes: int = field(default=256 * 1024 * 1024, validator=int_range())
    depth: int = field(default=64, validator=int_range())


DEFAULT_BUDGET: Final = DecodeBudget()
"""The default budget of decoding."""


@frozen(kw_only=True)
class CodecOptions:
    """Options that change what a codec accepts or returns.

    ``budget`` limits decoding. With ``memoryview_records`` the fields of type records, and bytes fields marked
    zero-copy in the definition, are decoded as a ``memoryview`` of the input instead of ``bytes``. ``utf8_errors`` is
    the error handler for strings, for decoding and encoding. ``strict`` refuses bytes that are not UTF-8.
    ``surrogateescape`` preserves all bytes. ``replace`` replaces such bytes, as Kafka's own classes do.
    Raises ``OptionError``.
    """

    budget: DecodeBudget = field(default=DEFAULT_BUDGET, validator=is_instance(DecodeBudget))
    memoryview_records: bool = field(default=False, validator=is_bool())
    utf8_errors: Literal["strict", "surrogateescape", "replace"] = field(
        default="strict", validator=one_of("strict", "surrogateescape", "replace")
    )


DEFAULT_OPTIONS: Final = CodecOptions()
"""The default options."""
