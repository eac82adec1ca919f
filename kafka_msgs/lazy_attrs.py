"""``frozen`` for generated classes: that of attrs, whose work on a class is done when something needs it.

attrs writes and compiles methods for each class. That took most of the time of loading a generated module, and few of
the methods are ever called. So ``frozen`` here makes the class with its slots and no more. The first access to what
attrs would have added, such as ``attrs.fields``, ``inspect.signature`` or a call of ``__init__``, lets attrs make it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from types import new_class
from typing import Any, Final

import attrs

__all__ = ["Later", "frozen"]

_PROPERTIES: Final = ("__attrs_props__",) if hasattr(attrs, "ClassProps") else ()
_ADDED: Final = ("__attrs_attrs__", "__getstate__", "__init__", "__setstate__", *_PROPERTIES)
"""What attrs makes for each class. What else it adds is the same for all classes, and inherited."""

_FIELD: Final = type(attrs.field())
_NOT_COPIED: Final = ("__dict__", "__weakref__")

_completing: Final = RLock()


def frozen(**options: Any) -> Callable[[type[Any]], type[Any]]:
    """Decorate a class as ``attrs.frozen`` does with the same options.

    The class must consist of constants, and of annotated attributes that ``attrs.field`` made. Its base must be a class
    that attrs made with the same options, or derive from one.
    """

    def decorate(cls: type[Any]) -> type[Any]:
        body = {name: value for name, value in vars(cls).items() if name not in _NOT_COPIED}
        rest = _Rest(cls.__base__, body | {"__qualname__": cls.__qualname__}, options)
        changed = {"__slots__": tuple(rest.metadata)} | {name: Later(rest, name) for name in _ADDED}
        own = {name: value for name, value in rest.body.items() if name not in rest.metadata}
        rest.cls = _new_class(cls, own | changed)
        return rest.cls

    return decorate


def _new_class(like: type[Any], body: dict[str, Any]) -> type[Any]:
    return new_class(like.__name__, like.__bases__, exec_body=lambda namespace: namespace.update(body))


class _Rest:
    """What attrs has still to do: the class, its base, its body as written, the options, the metadata of its fields."""

    __slots__ = ("base", "body", "cls", "made", "metadata", "options")

    cls: type[Any]

    def __init__(self, base: Any, body: dict[str, Any], options: dict[str, Any]) -> None:
        self.base = base
        self.body = body
        self.options = options
        self.metadata = {name: value.metadata for name, value in body.items() if type(value) is _FIELD}
        self.made: dict[str, Any] = {}

    def attribute(self, name: str) -> Any:
        """Return what attrs makes under a name. The first call completes the class."""
        with _completing:
            if not self.made:
                completed = vars(attrs.frozen(**self.options)(_new_class(self.cls, self.body)))
                self.made = {each: completed[each] for each in _ADDED}
                for each, value in self.made.items():
                    if isinstance(vars(self.cls).get(each), Later):
                        setattr(self.cls, each, value)
        return self.made[name]


class Later:
    """Stands for an attribute of a class that attrs has not made yet."""

    __slots__ = ("name", "rest")

    def __init__(self, rest: _Rest, name: str) -> None:
        self.rest = rest
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        made = self.rest.attribute(self.name)
        bind = getattr(type(made), "__get__", None)
        return made if bind is None else bind(made, instance, owner)
