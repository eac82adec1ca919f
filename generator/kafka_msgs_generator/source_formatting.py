"""Lays out Python source within a width: calls, dictionaries and docstrings.

Generated modules are never run through a formatter; these functions already return formatted source.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from kafka_msgs.schema import ZERO_UUID

__all__ = ["WIDTH", "call", "dictionary", "docstring", "literal", "quoted", "sequence"]

WIDTH: Final = 120
"""The maximum line length of generated code."""

_STEP = "    "


def call(head: str, arguments: Sequence[str], indent: int) -> str:
    """Return ``head(arguments)`` on as few lines as fit: one, three, or one an argument.

    >>> print(call("x = f", ["1", "two=2"], 0))
    x = f(1, two=2)
    """
    return _bracketed(f"{head}(", arguments, ")", indent)


def dictionary(entries: Mapping[str, str], indent: int, prefix: str = "") -> str:
    """Return a dict display of ``entries`` (keys are quoted, values are source), laid out behind ``prefix``."""
    items = [f"{quoted(key)}: {value}" for key, value in entries.items()]
    one_line = f"{prefix}{{{', '.join(items)}}}"
    if indent + len(one_line) < WIDTH:
        return one_line
    return _one_a_line(f"{prefix}{{", items, "}", indent)


def sequence(items: Sequence[str], brackets: str, indent: int, prefix: str = "") -> str:
    """Return a list or tuple display of source ``items``; ``brackets`` is the opening and the closing one.

    >>> sequence(["1"], "()", 0)
    '(1,)'
    """
    if brackets == "()" and len(items) == 1:
        return f"{prefix}({items[0]},)"
    one_line = f"{prefix}{brackets[0]}{', '.join(items)}{brackets[1]}"
    if indent + len(one_line) <= WIDTH or not items:
        return one_line
    return _one_a_line(prefix + brackets[0], items, brackets[1], indent)


def docstring(paragraphs: Sequence[str], indent: int) -> str:
    """Return a docstring of ``paragraphs``, wrapped, each line indented; on one line when it fits."""
    pad = " " * indent
    text = [" ".join(paragraph.split()).replace("\\", "\\\\").replace('"""', "'''") for paragraph in paragraphs]
    if len(text) == 1 and len(pad) + len(text[0]) + 6 <= WIDTH and not text[0].endswith('"'):
        return f'{pad}"""{text[0]}"""'
    wrapper = textwrap.TextWrapper(WIDTH - indent, break_long_words=False)
    blocks: list[list[str]] = []
    for part in text:
        wrapper.initial_indent = "" if blocks else '"""'
        blocks.append(wrapper.wrap(part))
    lines = ["\n".join(pad + line for line in block) for block in blocks]
    return "\n\n".join(lines) + f'\n{pad}"""'


def quoted(value: str | bytes) -> str:
    r"""Return a string or bytes literal, in double quotes where nothing in it needs escaping for that.

    >>> print(quoted('say "x"'), quoted("it's"), quoted(b""))
    'say "x"' "it's" b""
    """
    source = repr(value)
    return source if '"' in source else source.replace("'", '"')


def literal(value: object) -> str:
    """Return the source of a default: a constant, the empty tuple, or a uuid.

    >>> literal(UUID(int=5)), literal(()), literal(float("inf"))
    ('UUID(int=0x5)', '()', 'float("inf")')
    """
    if isinstance(value, (str, bytes)):
        return quoted(value)
    if isinstance(value, UUID):
        return "ZERO_UUID" if value == ZERO_UUID else f"UUID(int={value.int:#x})"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    return repr(value)


def _bracketed(opening: str, items: Sequence[str], closing: str, indent: int) -> str:
    joined = ", ".join(items)
    flat = "\n" not in joined
    if flat and indent + len(opening) + len(joined) + len(closing) <= WIDTH:
        return opening + joined + closing
    if flat and indent + len(_STEP) + len(joined) <= WIDTH:
        pad = " " * indent
        return f"{opening}\n{pad}{_STEP}{joined}\n{pad}{closing}"
    return _one_a_line(opening, items, closing, indent)


def _one_a_line(opening: str, items: Sequence[str], closing: str, indent: int) -> str:
    pad = " " * indent
    lines = "".join(f"{pad}{_STEP}{item},\n" for item in items)
    return f"{opening}\n{lines}{pad}{closing}"
