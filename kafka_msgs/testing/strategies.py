"""Hypothesis strategies for the generated classes, derived from their schema (extra ``testing``).

    @given(messages(OffsetFetchRequest, version=2))
    def test_my_proxy_forwards(request): ...

A strategy generates values that can be encoded at its version. It tries edge values first: nulls, empty arrays, the
ends of the integer types, text that is not ASCII, lengths at which the encoding of a length grows, and unknown tags.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeVar
from uuid import UUID

from attrs import frozen

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.primitive_types import PRIMITIVES, Kind, Op
from kafka_msgs.schema import FieldInfo, MessageStruct, Struct
from kafka_msgs.testing import edge_values

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.testing.strategies", extra="testing", package="hypothesis") from error

__all__ = ["messages", "struct"]

_M = TypeVar("_M", bound=MessageStruct)
_S = TypeVar("_S", bound=Struct)


@frozen
class _Options:
    unknown_tags: bool
    max_elements: int


def messages(cls: type[_M], version: int, *, unknown_tags: bool = True, max_elements: int = 3) -> SearchStrategy[_M]:
    """Return a strategy for values of a message class that can be encoded at ``version``.

    Fields that the version lacks have their defaults. Arrays have up to ``max_elements`` elements. ``unknown_tags``
    allows undeclared tagged fields in flexible versions. NaN is excluded, because a value with NaN does not equal
    itself. Raises ``UnsupportedVersionError``.
    """
    edge_values.check_version(cls, version)
    flexible = version in cls.INFO.flexible
    return struct(cls, version, flexible=flexible, unknown_tags=unknown_tags, max_elements=max_elements)


def struct(
    cls: type[_S], version: int, *, flexible: bool, unknown_tags: bool = True, max_elements: int = 3
) -> SearchStrategy[_S]:
    """Return a strategy for values of a nested class inside its message at ``version``.

    ``flexible`` specifies whether the message is flexible at that version, which the nested class does not define. The
    other arguments are the same as for ``messages``.
    """
    strategy: SearchStrategy[_S] = _struct(cls, version, flexible, _Options(unknown_tags, max_elements))
    return strategy


_STRATEGIES: dict[tuple[Any, ...], SearchStrategy[Any]] = {}


def _struct(cls: type[Struct], version: int, flexible: bool, options: _Options) -> SearchStrategy[Any]:
    key = (cls, version, flexible, options)
    if key not in _STRATEGIES:
        _STRATEGIES[key] = _new_struct(cls, version, flexible, options)
    return _STRATEGIES[key]


def _new_struct(cls: type[Struct], version: int, flexible: bool, options: _Options) -> SearchStrategy[Any]:
    attributes = {
        info.attribute: _field(info, version, flexible, options) for info in edge_values.present_fields(cls, version)
    }
    if flexible and options.unknown_tags:
        attributes["unknown_tagged_fields"] = _unknown_tags(edge_values.declared_tags(cls))
    return st.builds(cls, **attributes)


def _field(info: FieldInfo, version: int, flexible: bool, options: _Options) -> SearchStrategy[Any]:
    if info.struct is not None:
        strategy = _struct(info.struct, version, flexible, options)
    else:
        strategy = _primitive(PRIMITIVES[info.element_type])
    if info.is_array:
        strategy = st.lists(strategy, max_size=options.max_elements).map(tuple)
    if version in info.nullable:
        strategy = st.none() | strategy
    if version in info.tagged and edge_values.default_is_allowed(info, version):
        strategy = st.just(info.default) | strategy
    return strategy


@cache
def _primitive(op: Op) -> SearchStrategy[Any]:
    if op.kind is Kind.INTEGER:
        return st.integers(*op.bounds) | st.sampled_from(edge_values.integers(op))
    return _BY_KIND[op.kind]


def _with_rare(ordinary: SearchStrategy[Any], edges: tuple[Any, ...], rare: tuple[Any, ...]) -> SearchStrategy[Any]:
    """Generate edge values often and long ones seldom, because a long value is about 100 times slower."""
    return ordinary | st.sampled_from(edges * 20 + rare)


_BYTES: Final = _with_rare(st.binary(max_size=12), edge_values.BYTES, edge_values.LONG_BYTES)

_BY_KIND: Final[dict[Kind, SearchStrategy[Any]]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.FLOAT: st.floats(allow_nan=False) | st.sampled_from(edge_values.FLOATS),
    Kind.UUID: st.integers(0, 2**128 - 1).map(lambda number: UUID(int=number)) | st.sampled_from(edge_values.UUIDS),
    Kind.TEXT: _with_rare(st.text(max_size=12), edge_values.STRINGS, edge_values.LONG_STRINGS),
    Kind.BINARY: _BYTES,
}


def _unknown_tags(declared: frozenset[int]) -> SearchStrategy[tuple[tuple[int, bytes], ...]]:
    tags = (st.integers(0, 20) | st.integers(0, edge_values.MAX_TAG)).filter(lambda tag: tag not in declared)
    some = st.dictionaries(tags, _BYTES, max_size=3).map(lambda tagged: tuple(sorted(tagged.items())))
    return st.just(()) | st.just(()) | some
