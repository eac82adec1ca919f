"""Parser for Kafka's properties files, in the format of ``java.util.Properties``, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kafka_msgs.errors import OptionError

__all__ = ["parse_properties_text", "read_properties"]

_BLANK: Final = " \t\f"
_LINE_ENDS: Final = re.compile(r"\r\n|\r|\n")
_KEY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SURROGATES: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties in a file (UTF-8). Raises ``OptionError`` if it cannot be read."""
    try:
        return parse_properties_text(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or _reason(error)
        raise OptionError(source="client", option="properties", value=str(path), reason=reason) from None


def parse_properties_text(text: str) -> dict[str, str]:
    """Return the properties in a text. The last value of a name wins. Raises ``ValueError`` for an invalid escape."""
    properties = {}
    for line in _logical_lines(text):
        key, value = _KEY.fullmatch(line).groups()  # type: ignore[union-attr]
        properties[_unescape(key)] = _unescape(value)
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments and blank lines, and join lines that a backslash continues."""
    parts: list[str] = []
    for line in _LINE_ENDS.split(text):
        line = line.lstrip(_BLANK)
        if not parts and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        continues = backslashes % 2 == 1
        parts.append(line[:-1] if continues else line)
        if not continues:
            yield "".join(parts)
            parts = []
    if any(parts):
        yield "".join(parts)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_replacement, text)
    return _SURROGATES.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), plain)


def _replacement(escape: re.Match[str]) -> str:
    letter: str = escape[1]
    if len(letter) > 1:
        return chr(int(letter[1:], 16))
    if letter == "u":
        raise ValueError(r"malformed \u escape")
    return _LETTERS.get(letter, letter)


def _reason(error: Exception) -> str:
    """Return the reason without any file contents, which may contain secrets."""
    return "the file is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
