"""The path of the field that the interpreter is at. Errors and annotated dumps show it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Path"]


class Path:
    """The current path in a message, such as ``groups[2].topics``."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    @contextmanager
    def at(self, part: str) -> Iterator[None]:
        """Add ``part`` to the path during the block. After an error the path stays at the error."""
        self.parts.append(part)
        yield
        self.parts.pop()

    def __str__(self) -> str:
        return "".join(self.parts).removeprefix(".")
