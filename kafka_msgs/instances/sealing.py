"""Sealing: detects message classes whose instances consist only of their unmodified field values.

The core creates, compares and frees the instances of sealed classes itself. Only this module decides about sealing in
Python, and only ``_core/values.c`` relies on it in C. Unsealed classes keep their own methods, and are only slower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any, Final

import attrs

from kafka_msgs._backend import backend_module
from kafka_msgs.deferred_attrs import MADE_INIT, DeferredAttribute, attrs_is_known

__all__ = ["is_still_sealed", "seal"]

_METHODS: Final = ("__new__", "__eq__", "__ne__", "__hash__", "__setattr__", "__delattr__", "__reduce__")
_HOOKS: Final = ("__attrs_pre_init__", "__attrs_post_init__", "__del__", "__getattr__")
_STORAGE: Final = ("__dict__", "__weakref__")
_SPECIAL: Final = frozenset(_METHODS + _HOOKS + _STORAGE)
_Factory: Final[Any] = attrs.Factory
_values: Final = backend_module("kafka_msgs.instances")


def seal(cls: type[Any], fields: Callable[[], tuple[tuple[str, Any], ...]]) -> bool:
    """Seal a new class if it is eligible, and return whether it is; ``fields`` returns the names and defaults."""
    setattr(cls, MADE_INIT, _init_by_attrs(cls))
    sealed = cls._sealed = _is_plain(cls)
    if sealed:
        _values.seal(cls, fields())
    return sealed


def is_still_sealed(cls: type[Any]) -> bool:
    """Return whether a sealed class is still eligible after a change. If not, unseal it so that its methods apply."""
    # The lookup gives the class a version tag, which the core remembers. A class sealed by a test alone stays sealed.
    sealed = bool(getattr(cls, "_sealed", True))
    if sealed and "_sealed" in vars(cls) and not _is_plain(cls):
        cls._sealed = sealed = False
        cls.__copy__ = cls.__deepcopy__ = None
    return sealed


def _init_by_attrs(cls: type[Any]) -> Any:
    """Return the class's own ``__init__`` if attrs created it, or None.

    attrs reports that since 25.4 (``attrs.inspect``). With earlier releases only deferred classes are sealed.
    """
    properties: Any = vars(cls).get("__attrs_props__")
    made = properties is not None and not isinstance(properties, DeferredAttribute) and properties.added_init
    return vars(cls).get("__init__") if made else None


def _is_plain(cls: type[Any]) -> bool:
    """Return whether instances of a class consist only of their field values.

    This is true for generated classes. A subclass may have a ``__dict__``, weak references, overridden methods, or
    fields that check and convert. A class without additional fields gains nothing.
    """
    own = vars(cls)
    return (
        attrs_is_known()
        and "__attrs_attrs__" in own
        and bool(own.get("__slots__"))
        and _has_init_by_attrs(own)
        and not any(map(_is_special, cls.__mro__[:-1], repeat(_methods_of_base(cls))))
        and (isinstance(own["__attrs_attrs__"], DeferredAttribute) or all(map(_is_plain_field, own["__attrs_attrs__"])))
    )


def _has_init_by_attrs(own: Mapping[str, Any]) -> bool:
    init = own.get("__init__")
    return isinstance(init, DeferredAttribute) or (init is not None and init is own.get(MADE_INIT))


def _methods_of_base(cls: type[Any]) -> Mapping[str, Any]:
    """Return the attributes of ``Struct``, the first attrs class."""
    for base in reversed(cls.__mro__):
        if "__attrs_attrs__" in vars(base):
            break
    return vars(base)


def _is_special(cls: type[Any], expected: Mapping[str, Any]) -> bool:
    """Return whether a class itself has methods or storage other than the expected ones."""
    own = vars(cls)
    return not _SPECIAL.isdisjoint(own) and any(own[name] is not expected.get(name) for name in _SPECIAL if name in own)


def _is_plain_field(field: attrs.Attribute[Any]) -> bool:
    return (
        field.init
        and field.kw_only
        and field.alias == field.name
        and field.validator is None
        and field.converter is None
        and field.default is not attrs.NOTHING
        and not isinstance(field.default, _Factory)
    )
