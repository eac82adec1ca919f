"""The source of generated functions: lines, indentation, and the objects that the source refers to.

The decode and encode emitters share this module. ``build`` compiles the source and registers it in ``linecache``. So
tracebacks and debuggers show the generated lines while the function lives.
"""

from __future__ import annotations

import linecache
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any
from weakref import finalize

__all__ = ["MalformedError", "Source"]


class MalformedError(ValueError):
    """Raised by generated code for any fault. The reference interpreter then finds the exact error."""


class Source:
    """A function's text under construction, with the constants it names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {"MalformedError": MalformedError}
        self._indent = 0
        self._names = 0

    def line(self, text: str) -> None:
        """Add one line at the current indentation."""
        self.lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add ``head`` and indent the lines added inside the block."""
        self.line(head)
        self._indent += 1
        yield
        self._indent -= 1

    def name(self, stem: str) -> str:
        """Return a local name not used before in this function."""
        self._names += 1
        return f"{stem}{self._names}"

    def constant(self, stem: str, value: Any) -> str:
        """Make ``value`` available to the text; return its name, which starts with ``stem``."""
        name, number = stem, 1
        while self.constants.setdefault(name, value) is not value:
            number += 1
            name = f"{stem}_{number}"
        return name

    def struct_method(self, method: str, code: str) -> tuple[str, int]:
        """Name the bound ``method`` (pack, unpack_from) of ``struct.Struct(code)``; return it with the size."""
        compiled = struct.Struct(f">{code}")
        name = f"{method}_{code}".replace("?", "t")
        self.constants.setdefault(name, getattr(compiled, method))
        return name, compiled.size

    def text(self) -> str:
        """Return the source text so far."""
        return "\n".join(self.lines) + "\n"

    def build(self, function: str, filename: str) -> Callable[..., Any]:
        """Compile the text and return the function named ``function``; ``filename`` is a name in angle brackets."""
        text = self.text()
        namespace = dict(self.constants)
        name = _register(filename, text)
        exec(compile(text, name, "exec"), namespace)
        built: FunctionType = namespace[function]
        finalize(built, linecache.cache.pop, name, None).atexit = False
        return built


def _register(filename: str, text: str) -> str:
    """Register the text with ``linecache`` and return its name there, numbered if ``filename`` is already taken."""
    lines = text.splitlines(keepends=True)
    name, number = filename, 1
    while linecache.cache.setdefault(name, (len(text), None, lines, name))[2:3] != (lines,):
        number += 1
        name = f"{filename[:-1]}, {number}>"
    return name
