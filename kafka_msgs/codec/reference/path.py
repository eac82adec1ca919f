"""The path of the interpreter's current field, as shown in errors and annotated dumps."""

from __future__ import annotations

from typing import Self

__all__ = ["Path"]


class Path:
    """The current path in a message, such as ``groups[2].topics``."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def at(self, part: str) -> Self:
        """Add ``part`` to the path during a ``with`` block. After an error the path stays at the error."""
        self.parts.append(part)
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: object, *_: object) -> None:
        if exc_type is None:
            self.parts.pop()

    def __str__(self) -> str:
        return "".join(self.parts).removeprefix(".")
