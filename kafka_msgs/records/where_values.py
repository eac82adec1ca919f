"""Comparison of the values in filter expressions, as SQL compares them: a comparison with null is unknown (None).

Numbers in texts are numbers if they are compared with a number, because JSON forms have large numbers and decimals as
text. Values of other different types are not comparable, so the result is unknown.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

__all__ = ["COMPARISONS", "contains", "equals", "like", "milliseconds"]

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_NUMBER: Final = re.compile(r"[+-]?(?:\d{1,80}(?:\.\d{0,80})?|\.\d{1,80})(?:[eE][+-]?\d{1,3})?", re.ASCII)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _pair(left: Any, right: Any) -> tuple[Any, Any] | None:
    """Return two values in one type, or None if they are not comparable."""
    if isinstance(left, str) and _is_number(right):
        left = Decimal(left) if _NUMBER.fullmatch(left) else None
    elif isinstance(right, str) and _is_number(left):
        right = Decimal(right) if _NUMBER.fullmatch(right) else None
    if _is_number(left) and _is_number(right):
        is_float = {type(left), type(right)} == {float, Decimal}
        return (float(left), float(right)) if is_float else (left, right)
    same = (isinstance(left, str) and isinstance(right, str)) or (isinstance(left, bool) and isinstance(right, bool))
    return (left, right) if same else None


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    def compared(left: Any, right: Any) -> bool | None:
        pair = _pair(left, right)
        return None if pair is None else compare(*pair)

    return compared


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<>": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
COMPARISONS: Final = {sign: _comparison(compare) for sign, compare in _OPERATORS.items()}
"""The comparison functions by operator. They return None for null, and for values that are not comparable."""
equals: Final = COMPARISONS["="]


def contains(whole: Any, part: Any) -> bool | None:
    """Return whether a text contains a text, or a list an item; None for null and for other values."""
    if not isinstance(part, str | bool) and not _is_number(part):
        return None
    if isinstance(whole, list):
        return any(equals(each, part) for each in whole)
    return part in whole if isinstance(whole, str) and isinstance(part, str) else None


def like(pattern: str) -> Callable[[Any], bool | None]:
    """Return the function that matches texts with SQL's ``LIKE``: ``%`` is any text, ``_`` any character.

    The work is at most the length of the text times the length of the pattern.
    """
    parts = [_part(each) for each in pattern.split("%")]
    first, last = parts[0], parts[-1]

    def matches(value: Any) -> bool | None:
        if not isinstance(value, str):
            return None
        if len(parts) == 1:
            return first.fullmatch(value) is not None
        head = first.match(value)
        if head is None:
            return False
        at = head.end()
        for part in parts[1:-1]:
            found = part.search(value, at)
            if found is None:
                return False
            at = found.end()
        tail = len(value) - len(pattern.rpartition("%")[2])
        return tail >= at and last.fullmatch(value, tail) is not None

    return matches


def _part(text: str) -> re.Pattern[str]:
    return re.compile(".".join(map(re.escape, text.split("_"))), re.DOTALL)


def milliseconds(text: str) -> int:
    """Return a time in ISO 8601 as milliseconds since the epoch, in UTC without a zone. Raises ``ValueError``."""
    moment = datetime.fromisoformat(text)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return (moment - _EPOCH) // timedelta(milliseconds=1)
