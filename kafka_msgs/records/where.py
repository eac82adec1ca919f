"""Filter expressions over decoded records: ``value.amount > 10 AND key LIKE 'a%'``.

The grammar is a part of SQL's, with SQL's logic of three values. An expression is parsed once, to functions; it cannot
call anything else. ``where_values`` defines how values are compared.

    expression  = term {OR term};  term = factor {AND factor};  factor = {NOT} (predicate | "(" expression ")")
    predicate   = operand [comparison]
    comparison  = ("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") operand
                | [NOT] IN "(" operand {"," operand} ")" | [NOT] LIKE text | [NOT] CONTAINS operand
                | [NOT] BETWEEN operand AND operand | IS [NOT] NULL
    operand     = path | number | 'text' | TRUE | FALSE | NULL
    path        = column {"." name}          names may be quoted: headers."trace-id"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from attrs import frozen

from kafka_msgs.errors import ExpressionError
from kafka_msgs.records.where_values import COMPARISONS, contains, equals, like, milliseconds

__all__ = ["COLUMNS", "UNDECODABLE", "Resolve", "Where", "parse_where", "resolve_fields"]

Resolve: TypeAlias = Callable[[tuple[str, ...]], Any]
"""Returns the value of a path in a record, None if it has none, or ``UNDECODABLE``."""
_Test: TypeAlias = Callable[[Resolve], Any]
"""Returns a value, which for a predicate is True, False or, if it is unknown, None."""

UNDECODABLE: Final = object()
"""A field of a key or a value that cannot be decoded: it is unknown whether it is null, as is any other condition."""
COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
"""The first names of paths. Only the last three have names below them."""
_FLAT: Final = COLUMNS[:4]
_MAX_CHARACTERS: Final = 10_000
_MAX_DEPTH: Final = 50
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<number>[+-]?(?:\d{1,80}(?:\.\d{0,80})?|\.\d{1,80})(?:[eE][+-]?\d{1,3})?)
    |(?P<text>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")+")|(?P<word>[^\W\d]\w*)|(?P<sign><>|[<>=!]=|[<>=().,])|(?P<end>$))""",
    re.VERBOSE | re.ASCII,
)
_NAMES: Final = ("word", "quoted")
_CONSTANTS: Final[Mapping[str, Any]] = {"TRUE": True, "FALSE": False, "NULL": None}
_KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "IN", "LIKE", "CONTAINS", "BETWEEN", "IS", *_CONSTANTS})


class _Token(NamedTuple):
    kind: str
    text: str
    position: int

    @property
    def keyword(self) -> str:
        """The token in upper case, unless it is quoted."""
        return self.text.upper() if self.kind in ("word", "sign") else ""


class _Operand(NamedTuple):
    """A path, or a constant with an empty path."""

    path: tuple[str, ...]
    constant: Any
    position: int

    def value(self, resolve: Resolve) -> Any:
        return resolve(self.path) if self.path else self.constant


@frozen
class Where:
    """A parsed expression. ``columns`` are the first names of its paths."""

    text: str
    columns: frozenset[str]
    _test: _Test

    def __reduce__(self) -> tuple[Any, ...]:
        return parse_where, (self.text,)

    def matches(self, resolve: Resolve) -> bool:
        """Return whether the expression is true for a record, so neither false nor unknown."""
        return self._test(resolve) is True


def parse_where(text: str) -> Where:
    """Return the parsed expression. Raises ``ExpressionError`` with the position of a mistake."""
    if len(text) > _MAX_CHARACTERS:
        reason = f"it has more than {_MAX_CHARACTERS:,} characters"
        raise ExpressionError(expression=text[:100], position=_MAX_CHARACTERS, reason=reason)
    parser = _Parser(text)
    test = parser.expression(0)
    if parser.next.kind != "end":
        parser.fail("AND, OR or the end of the expression is expected")
    return Where(text, frozenset(parser.columns), test)


class _Parser:
    """A recursive descent over the tokens of an expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._index = 0
        self.columns: set[str] = set()

    def _split(self) -> list[_Token]:
        tokens, at = list[_Token](), 0
        while not tokens or tokens[-1].kind != "end":
            match = _TOKEN.match(self._text, at)
            if match is None:
                rest = self._text[at:]
                self.fail("no name, number, text or operator", at + len(rest) - len(rest.lstrip()))
            kind = str(match.lastgroup)
            tokens.append(_Token(kind, match[kind], match.start(kind)))
            at = match.end()
        return tokens

    @property
    def next(self) -> _Token:
        """The token at the current position."""
        return self._tokens[self._index]

    def fail(self, reason: str, position: int | None = None) -> NoReturn:
        """Raise the error for the current position or another one."""
        raise ExpressionError(
            expression=self._text, position=self.next.position if position is None else position, reason=reason
        )

    def _take(self, *words: str) -> bool:
        """Skip the words if they come next."""
        there = [token.keyword for token in self._tokens[self._index : self._index + len(words)]]
        found = there == list(words)
        self._index += len(words) if found else 0
        return found

    def _need(self, word: str) -> None:
        if not self._take(word):
            self.fail(f"{word} is expected")

    def expression(self, depth: int) -> _Test:
        """Parse terms between ``OR``."""
        return self._joined("OR", True, lambda: self._joined("AND", False, lambda: self._factor(depth)))

    def _joined(self, word: str, decisive: bool, parse: Callable[[], _Test]) -> _Test:
        """Parse parts between ``AND`` or ``OR``: one part with the ``decisive`` result decides, else an unknown one."""
        tests = [parse()]
        while self._take(word):
            tests.append(parse())

        def joined(resolve: Resolve) -> bool | None:
            is_known = True
            for test in tests:
                result: bool | None = test(resolve)
                if result is decisive:
                    return decisive
                is_known = is_known and isinstance(result, bool)
            return not decisive if is_known else None

        return tests[0] if len(tests) == 1 else joined

    def _factor(self, depth: int) -> _Test:
        if depth == _MAX_DEPTH:
            self.fail(f"it is nested more than {_MAX_DEPTH} levels deep")
        if self._take("NOT"):
            return _negated(self._factor(depth + 1))
        if not self._take("("):
            return self._predicate()
        test = self.expression(depth + 1)
        self._need(")")
        return test

    def _predicate(self) -> _Test:
        left = self._operand()
        if (sign := self.next.keyword) in COMPARISONS:
            self._index += 1
            return self._comparison(COMPARISONS[sign], left, self._operand())
        if self._take("IS"):
            is_negated = self._take("NOT")
            self._need("NULL")
            return _negated(_null_test(left)) if is_negated else _null_test(left)
        is_negated = self._take("NOT")
        for word, parse in (
            ("IN", self._in), ("LIKE", self._like), ("CONTAINS", self._contains), ("BETWEEN", self._between)
        ):  # fmt: skip
            if self._take(word):
                return _negated(parse(left)) if is_negated else parse(left)
        if is_negated:
            self.fail("IN, LIKE, CONTAINS or BETWEEN is expected after NOT")
        if not left.path and not isinstance(left.constant, bool | None):
            self.fail("an operator is expected")
        return lambda resolve: value if isinstance(value := left.value(resolve), bool) else None

    def _comparison(self, compare: Callable[[Any, Any], bool | None], left: _Operand, right: _Operand) -> _Test:
        left, right = self._with_time(left, right), self._with_time(right, left)
        return lambda resolve: compare(left.value(resolve), right.value(resolve))

    def _in(self, left: _Operand) -> _Test:
        self._need("(")
        tests = [self._comparison(equals, left, self._operand())]
        while self._take(","):
            tests.append(self._comparison(equals, left, self._operand()))
        self._need(")")

        def is_in(resolve: Resolve) -> bool | None:
            results = [test(resolve) for test in tests]
            return True if True in results else None if None in results else False

        return is_in

    def _like(self, left: _Operand) -> _Test:
        token = self.next
        if token.kind != "text":
            self.fail("a pattern in quotes is expected after LIKE")
        self._index += 1
        matches = like(_unquoted(token))
        return lambda resolve: matches(left.value(resolve))

    def _contains(self, left: _Operand) -> _Test:
        right = self._operand()
        return lambda resolve: contains(left.value(resolve), right.value(resolve))

    def _between(self, left: _Operand) -> _Test:
        low = self._comparison(COMPARISONS[">="], left, self._operand())
        self._need("AND")
        high = self._comparison(COMPARISONS["<="], left, self._operand())

        def is_between(resolve: Resolve) -> bool | None:
            results = low(resolve), high(resolve)
            return False if False in results else None if None in results else True

        return is_between

    def _with_time(self, operand: _Operand, other: _Operand) -> _Operand:
        """Return a text that is compared with ``timestamp`` as its milliseconds."""
        if other.path != ("timestamp",) or not isinstance(operand.constant, str):
            return operand
        try:
            return operand._replace(constant=milliseconds(operand.constant))
        except ValueError:
            self.fail("a time is expected, such as '2026-01-31T12:00:00Z'", operand.position)

    def _operand(self) -> _Operand:
        token = self.next
        if token.kind == "number":
            self._index += 1
            number = int(token.text) if token.text.lstrip("+-").isdigit() else Decimal(token.text)
            return _Operand((), number, token.position)
        if token.kind == "text":
            self._index += 1
            return _Operand((), _unquoted(token), token.position)
        if token.keyword in _CONSTANTS:
            self._index += 1
            return _Operand((), _CONSTANTS[token.keyword], token.position)
        return _Operand(self._path(), None, token.position)

    def _path(self) -> tuple[str, ...]:
        if self.next.kind not in _NAMES or self.next.keyword in _KEYWORDS:
            self.fail("a column, a number or a text in quotes is expected")
        names = [_unquoted(self.next)]
        if names[0] not in COLUMNS:
            self.fail(f"a path begins with {', '.join(COLUMNS[:-1])} or {COLUMNS[-1]}")
        self._index += 1
        while self._take("."):
            if self.next.kind not in _NAMES:
                self.fail("a name is expected after the point")
            if names[0] in _FLAT:
                self.fail(f"{names[0]} has no fields")
            names.append(_unquoted(self.next))
            self._index += 1
        if names == ["headers"]:
            self.fail('a name is expected: headers.name or headers."name"')
        self.columns.add(names[0])
        return tuple(names)


def _unquoted(token: _Token) -> str:
    if token.kind == "word":
        return token.text
    quote = token.text[0]
    return token.text[1:-1].replace(quote * 2, quote)


def _null_test(operand: _Operand) -> _Test:
    def is_null(resolve: Resolve) -> bool | None:
        value = operand.value(resolve)
        return None if value is UNDECODABLE else value is None

    return is_null


def _negated(test: _Test) -> _Test:
    def negated(resolve: Resolve) -> bool | None:
        result = test(resolve)
        return not result if isinstance(result, bool) else None

    return negated


def resolve_fields(value: Any, names: Sequence[str]) -> Any:
    """Return a nested field of a decoded value, or None if the value has no such field."""
    if value is UNDECODABLE:
        return value
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
