"""The patching interpreter: it reads a partial plan, and copies the bytes of the message with the edits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafka_msgs.codec.options import CodecOptions
from kafka_msgs.codec.plan import Plan, Step, WireValue
from kafka_msgs.codec.reference.decoder import Decoder
from kafka_msgs.codec.reference.encoder import Encoder
from kafka_msgs.primitives import write_uvarint

__all__ = ["EditErrorFinder", "Patcher"]


class Patcher(Decoder):
    """Copies a message to ``out`` with the changes. ``copied`` is the position to resume copying from.

    ``edits`` are functions from value to value, by their numbers. A function that returns its argument changes nothing.
    """

    def __init__(
        self, plan: Plan, data: bytes, offset: int, options: CodecOptions, edits: Sequence[Callable[[Any], Any]]
    ) -> None:
        super().__init__(plan, data, offset, options)
        self.whole = data
        self.edits = edits
        self.editing: Step | None = None
        self.out: list[bytes] = []
        self.copied = 0
        self.size_at = 0

    def patched(self) -> bytes:
        """Return all of the data with the changes; the same object if nothing changed."""
        self.message()
        return b"".join((*self.out, self.whole[self.copied :])) if self.out else self.whole

    def field(self, step: Step) -> Any:
        self.editing = None if step.edit is None else step
        result = super().field(step)
        self.editing = None
        return result

    def value(self, value: WireValue) -> Any:
        step = self.editing
        if step is None or step.edit is None or (step.each and value is step.value):
            return super().value(value)
        self.editing = None
        start = self.position
        old = super().value(value)
        new = self.edited(step.edit, start, old)
        if new is not old:
            self.replace(start, self.encoded(value, new))
        self.editing = step
        return old

    def edited(self, number: int, start: int, old: Any) -> Any:
        """Return the edited value that starts at a byte."""
        return self.edits[number](old)

    def encoded(self, value: WireValue, new: Any) -> bytes:
        encoder = Encoder(self.plan, self.options)
        encoder.path.parts = list(self.path.parts)
        encoder.value(value, new)
        return bytes(encoder.out)

    def replace(self, start: int, new: bytes) -> None:
        """Write ``new`` instead of the bytes from ``start`` to the current position."""
        self.out += (self.whole[self.copied : start], new)
        self.copied = self.position

    def uvarint(self) -> int:
        self.size_at = self.position
        return super().uvarint()

    def tagged_value(self, step: Step, size: int) -> Any:
        """Read a tagged field. If its content changes, its size changes too."""
        size_at, outer, copied = self.size_at, self.out, self.copied
        self.out, self.copied = [], self.position
        result = super().tagged_value(step, size)
        content, changed = b"".join((*self.out, self.whole[self.copied : self.position])), bool(self.out)
        self.out, self.copied = outer, copied
        if changed:
            self.replace(size_at, write_uvarint(len(content)) + content)
        return result


class EditErrorFinder(Patcher):
    """Replaces the value at a byte, and finds the error of the new value without calling any edit again."""

    def __init__(self, plan: Plan, data: bytes, offset: int, options: CodecOptions, at: int, refused: Any) -> None:
        super().__init__(plan, data, offset, options, ())
        self.at = at
        self.refused = refused

    def edited(self, number: int, start: int, old: Any) -> Any:
        return self.refused if start == self.at else old
