"""The content of a value as an object of a built-in type, and the comparison with a default.

A message may contain instances of subclasses, whose overrides may be wrong: for example a tuple with a wrong
``__len__``, a ``str`` with another ``encode``, or an object that equals everything. Every executor uses the content
stored in the base class, and never the result of an override. It checks the type instead of ``__class__``. So all
executors accept and refuse the same values. Only ``__index__`` and ``__float__`` of objects that are not numbers are
called.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from operator import attrgetter, index
from typing import Any, Final
from uuid import UUID

from kafka_msgs.codec.ops import Op
from kafka_msgs.codec.plan import AbsentField, Step, StructPlan, WireValue
from kafka_msgs.schema import attribute_names

__all__ = [
    "NotExactError",
    "compile_differs",
    "differs_from_default",
    "exact_bytes",
    "exact_items",
    "exact_struct",
    "is_any_of",
    "is_set",
    "leaf_differs_from_default",
    "uuid_bytes",
]

_EVERYTHING: Final = slice(None)
_PLAIN: Final = {bool, int, float, str, bytes, tuple, type(None)}
"""Types that compare by their content. Comparing them does not run Python code if arrays are empty."""
_FLOAT64: Final = struct.Struct(">d")
_OPS: Final = tuple(Op)
_uuid_number: Final = UUID.__dict__["int"].__get__


class NotExactError(ValueError):
    """A value that does not have content of the required type."""


def is_any_of(value: Any, *kinds: type[Any]) -> bool:
    """Return whether a value has one of these types. ``isinstance`` would also trust its ``__class__``."""
    return issubclass(type(value), kinds)


def exact_items(value: Any) -> tuple[Any, ...]:
    """Return the elements of a tuple or a list; raises ``NotExactError``."""
    if type(value) is tuple:
        return value
    if is_any_of(value, tuple):
        return tuple.__getitem__(value, _EVERYTHING)
    if is_any_of(value, list):
        return tuple(list.__getitem__(value, _EVERYTHING))
    raise NotExactError


def exact_bytes(value: Any) -> bytes:
    """Return the content of bytes, of a bytearray or of a memoryview; raises ``NotExactError``."""
    if type(value) is bytes:
        return value
    if is_any_of(value, bytes):
        return bytes.__getitem__(value, _EVERYTHING)
    if is_any_of(value, bytearray, memoryview):
        return bytes(memoryview(value))
    raise NotExactError


def exact_struct(cls: type[Any], value: Any) -> Any:
    """Return an instance of exactly a class with the fields of an instance; raises ``NotExactError``."""
    if type(value) is cls:
        return value
    if not is_any_of(value, cls):
        raise NotExactError
    made = object.__new__(cls)
    for name in attribute_names(cls):
        slot = getattr(cls, name)
        slot.__set__(made, slot.__get__(value))
    return made


def uuid_bytes(value: Any) -> bytes:
    """Return the 16 bytes of a UUID; raises ``NotExactError``."""
    if not is_any_of(value, UUID):
        raise NotExactError
    try:
        return int.to_bytes(_uuid_number(value), 16, "big")
    except (AttributeError, OverflowError, TypeError):
        raise NotExactError from None


def is_set(items: Any) -> bool:
    """Return whether a field whose default is an empty array contains any other value."""
    if is_any_of(items, tuple):
        return tuple.__len__(items) > 0
    return not is_any_of(items, list) or list.__len__(items) > 0


def differs_from_default(value: WireValue, default: Any, item: Any) -> bool:
    """Return whether a value differs from the default of its field, by Kafka's comparison.

    -0.0 equals 0.0, NaN never equals, and [] equals (). A value that the field cannot hold is not its default.
    ``__eq__`` of a message class is never called. So a struct that equals its default, but is another object, costs
    only the comparison of its fields.
    """
    if item is None or default is None:
        return item is not default
    if value.op is Op.STRUCT:
        return item is not default and _struct_differs(value.inner, item)
    if value.op is Op.ARRAY:
        return is_set(item)
    return leaf_differs_from_default(value.op, default, item)


def leaf_differs_from_default(op: int, default: Any, item: Any) -> bool:
    """Return whether a value other than an array or a struct differs from the default of its field.

    Neither the value nor the default is None.
    """
    try:
        return bool(_content(_OPS[op], item) != _content(_OPS[op], default))
    except (NotExactError, struct.error, TypeError):
        return True


def _content(op: Op, item: Any) -> Any:
    """Return the content of a value that is not an array or a struct, as an object of a built-in type."""
    if op is Op.STRING:
        if not is_any_of(item, str):
            raise NotExactError
        return str.__str__(item)
    if op in (Op.BYTES, Op.RECORDS):
        return exact_bytes(item)
    if op is Op.UUID:
        return uuid_bytes(item)
    if op is Op.FLOAT64:
        return _FLOAT64.unpack(_FLOAT64.pack(item))[0]
    if op is Op.BOOL:
        if item is not True and item is not False:
            raise NotExactError
        return item
    return index(item)


def _struct_differs(plan: StructPlan, item: Any) -> bool:
    """Return whether a field of a struct differs from its default. Only a struct with all defaults can be a default."""
    if not is_any_of(item, plan.cls):
        return True
    item = exact_struct(plan.cls, item)
    fields: tuple[Step | AbsentField, ...] = (*plan.steps, *plan.tagged, *plan.absent)
    return is_set(item.unknown_tagged_fields) or any(
        differs_from_default(each.value, each.default, getattr(item, each.attribute)) for each in fields
    )


def compile_differs(field: Step | AbsentField) -> Callable[[Any], bool]:
    """Return ``differs_from_default`` of one field, in a form that is fast for many calls.

    If the values of a struct have exactly the types of the defaults, they are first compared all at once. Then only
    numbers and text are compared.
    """
    slowly = partial(differs_from_default, field.value, field.default)
    if field.value.op is not Op.STRUCT or field.default is None:
        return slowly
    cls, names = field.value.inner.cls, attribute_names(field.value.inner.cls)
    get, defaults = attrgetter(*names), tuple(getattr(field.default, name) for name in names)
    types = tuple(map(type, defaults))
    if len(names) < 2 or not _PLAIN.issuperset(types):
        return slowly

    def struct_differs(item: Any) -> bool:
        if type(item) is cls:
            values = get(item)
            if tuple(map(type, values)) == types and values == defaults:
                return False
        return slowly(item)

    return struct_differs
