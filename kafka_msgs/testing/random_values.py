"""Random values of the generated classes from a seeded generator, for test campaigns with many thousands of messages.

This module does not need an extra. The seed reproduces a failing value. ``strategies`` can also shrink a failing value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

from attrs import frozen

from kafka_msgs.primitive_types import PRIMITIVES, Kind, Op
from kafka_msgs.schema import FieldInfo, MessageStruct, Struct
from kafka_msgs.testing import edge_values

__all__ = ["random_message"]

_M = TypeVar("_M", bound=MessageStruct)
_Maker: TypeAlias = Callable[[Random], Any]

_NULL = _DEFAULT = 0.25
_EDGE: Final = 0.4
_LONG: Final = 0.002
_MANY: Final = 0.01
_TAGGED: Final = 0.15
_ALPHABET: Final = "abcXYZ019._- \tß日語🦜"


@frozen
class _Options:
    unknown_tags: bool
    max_elements: int


def random_message(cls: type[_M], version: int, rng: Random, *, unknown_tags: bool = True, max_elements: int = 3) -> _M:
    """Return a value of ``cls`` that can be encoded at ``version``.

    Fields that the version lacks have their defaults. Arrays have up to ``max_elements`` elements (in rare cases,
    arrays of simple values have 130). ``unknown_tags`` allows undeclared tagged fields in flexible versions. The same
    state of ``rng`` gives the same value. Raises ``UnsupportedVersionError``.
    """
    edge_values.check_version(cls, version)
    options = _Options(unknown_tags, max_elements)
    message: _M = _struct_maker(cls, version, version in cls.INFO.flexible, options)(rng)
    return message


_MAKERS: dict[tuple[Any, ...], _Maker] = {}


def _struct_maker(cls: type[Struct], version: int, flexible: bool, options: _Options) -> _Maker:
    key = (cls, version, flexible, options)
    if key not in _MAKERS:
        _MAKERS[key] = _new_struct_maker(cls, version, flexible, options)
    return _MAKERS[key]


def _new_struct_maker(cls: type[Struct], version: int, flexible: bool, options: _Options) -> _Maker:
    makers = [
        (info.attribute, _field_maker(info, version, flexible, options))
        for info in edge_values.present_fields(cls, version)
    ]
    if flexible and options.unknown_tags:
        makers.append(("unknown_tagged_fields", _unknown_tags_maker(edge_values.declared_tags(cls))))

    def make(rng: Random) -> Struct:
        return cls(**{attribute: maker(rng) for attribute, maker in makers})

    return make


def _field_maker(info: FieldInfo, version: int, flexible: bool, options: _Options) -> _Maker:
    if info.struct is not None:
        maker = _struct_maker(info.struct, version, flexible, options)
    else:
        op = PRIMITIVES[info.element_type]
        maker = _MAKERS_BY_KIND[op.kind](op)
    if info.is_array:
        maker = _array_maker(maker, options.max_elements, many=info.struct is None)
    if version in info.nullable:
        maker = _sometimes(_NULL, None, maker)
    if version in info.tagged and edge_values.default_is_allowed(info, version):
        maker = _sometimes(_DEFAULT, info.default, maker)
    return maker


def _sometimes(chance: float, constant: Any, otherwise: _Maker) -> _Maker:
    return lambda rng: constant if rng.random() < chance else otherwise(rng)


def _array_maker(element: _Maker, max_elements: int, *, many: bool) -> _Maker:
    def make(rng: Random) -> tuple[Any, ...]:
        count = 130 if many and max_elements and rng.random() < _MANY else rng.randint(0, max_elements)
        return tuple([element(rng) for _ in range(count)])

    return make


def _edged(edges: Sequence[Any], rare: Sequence[Any], ordinary: _Maker) -> _Maker:
    """Generate an ordinary value, often one of ``edges``, and seldom one of ``rare``."""

    def make(rng: Random) -> Any:
        chance = rng.random()
        if rare and chance < _LONG:
            return rng.choice(rare)
        return rng.choice(edges) if chance < _EDGE else ordinary(rng)

    return make


_bytes_maker = _edged(edge_values.BYTES, edge_values.LONG_BYTES, lambda rng: rng.randbytes(rng.randrange(12)))
_text_maker = _edged(
    edge_values.STRINGS, edge_values.LONG_STRINGS, lambda rng: "".join(rng.choices(_ALPHABET, k=rng.randrange(12)))
)

_MAKERS_BY_KIND: Final[dict[Kind, Callable[[Op], _Maker]]] = {
    Kind.BOOLEAN: lambda op: lambda rng: rng.random() < 0.5,
    Kind.INTEGER: lambda op: _edged(edge_values.integers(op), (), lambda rng: rng.randint(*op.bounds)),
    Kind.FLOAT: lambda op: _edged(edge_values.FLOATS, (), lambda rng: rng.uniform(-1e6, 1e6)),
    Kind.UUID: lambda op: _edged(edge_values.UUIDS, (), lambda rng: UUID(int=rng.getrandbits(128))),
    Kind.TEXT: lambda op: _text_maker,
    Kind.BINARY: lambda op: _bytes_maker,
}


def _unknown_tags_maker(declared: frozenset[int]) -> _Maker:
    def make(rng: Random) -> tuple[tuple[int, bytes], ...]:
        if rng.random() > _TAGGED:
            return ()
        tags = {
            rng.choice((rng.randrange(16), rng.randrange(edge_values.MAX_TAG), edge_values.MAX_TAG)) for _ in range(3)
        }
        return tuple((tag, _bytes_maker(rng)) for tag in sorted(tags - declared))

    return make
