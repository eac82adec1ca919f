"""Deferred attrs classes for generated classes and errors: attrs processes a class only when it is needed.

attrs generates and compiles methods for each class. This would take most of the time of loading the library and its
messages, although few of the methods are ever called. ``frozen`` creates a generated class with only its slots, and
``define`` leaves an error class unchanged. The first access to an attribute that attrs would have added, such as
through ``attrs.fields``, ``inspect.signature`` or a call of ``__init__``, makes attrs process the class. Until then, a
``Field`` stands for a field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from warnings import warn

import attrs

from kafka_msgs.fork_locks import fork_lock

__all__ = [
    "MADE_INIT",
    "METADATA_KEY",
    "DeferredAttribute",
    "Field",
    "attrs_is_known",
    "define",
    "frozen",
    "frozen_base",
]

_PROPERTIES: Final = ("__attrs_props__",) if hasattr(attrs, "ClassProps") else ()
_DEFINED: Final = ("__attrs_attrs__", "__init__", *_PROPERTIES)
"""The attributes that attrs creates for each error class."""

_ADDED: Final = (*_DEFINED, "__getstate__", "__setstate__")
"""The attributes that attrs creates for each class with slots."""

_INHERITED: Final = ("__delattr__", "__match_args__", "__replace__", "__setattr__", "__slots__")
"""Other attrs attributes, which a class inherits or, with keyword-only arguments, does not need."""

MADE_INIT: Final = "_made_init"
"""The class attribute with the ``__init__`` from attrs, which reveals if another ``__init__`` was set later."""

METADATA_KEY: Final = "kafka_msgs"
"""The metadata key of a field's description."""

_NOT_COPIED: Final = ("__dict__", "__weakref__")

_completing: Final = fork_lock()


class Field:
    """A field of a deferred class: a description, which starts with the default and becomes the metadata.

    To attrs it acts as the result of ``attrs.field``, which it creates on first access.
    """

    __slots__ = ("_made", "description")

    _made: Any

    def __init__(self, description: tuple[Any, ...]) -> None:
        self.description = description

    def made(self) -> Any:
        """Return the attrs field, which is created once."""
        try:
            return self._made
        except AttributeError:
            self._made = attrs.field(default=self.description[0], metadata={METADATA_KEY: self.description})
            return self._made

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.made())

    def __getattr__(self, name: str) -> Any:
        if name == "_made":
            raise AttributeError(name)
        return getattr(self.made(), name)


class _DeferredClass:
    """The pending input of attrs: the class, its base, its body as written, its fields, the options."""

    __slots__ = ("base", "body", "cls", "fields", "made", "options")

    cls: type[Any]

    def __init__(self, base: Any, body: dict[str, Any], options: dict[str, Any]) -> None:
        self.base = base
        self.body = body
        self.options = options
        self.fields = {name: value for name, value in body.items() if type(value) is Field}
        self.made: dict[str, Any] = {}

    def attribute(self, name: str) -> Any:
        """Return the attrs attribute with a name. The first call completes the class."""
        with _completing:
            if not self.made:
                body = self.body | {each: value.made() for each, value in self.fields.items()}
                completed = vars(attrs.frozen(**self.options)(_new_class(self.cls, body)))
                self.made = {each: completed[each] for each in _ADDED}
                setattr(self.cls, MADE_INIT, self.made["__init__"])
                for each, value in self.made.items():
                    if isinstance(vars(self.cls).get(each), DeferredAttribute):
                        setattr(self.cls, each, value)
        return self.made[name]


class _DeferredErrorClass:
    """An error class that attrs will complete later, and the options."""

    __slots__ = ("cls", "options")

    def __init__(self, cls: type[Any], options: dict[str, Any]) -> None:
        self.cls = cls
        self.options = options

    def attribute(self, name: str) -> Any:
        """Return the attrs attribute with a name. The first call completes the class."""
        with _completing:
            if isinstance(vars(self.cls)[name], DeferredAttribute):
                attrs.define(init=isinstance(vars(self.cls)["__init__"], DeferredAttribute), **self.options)(self.cls)
        return vars(self.cls)[name]


class DeferredAttribute:
    """A placeholder for an attribute of a class that attrs will build later."""

    __slots__ = ("name", "rest")

    def __init__(self, rest: _DeferredClass | _DeferredErrorClass, name: str) -> None:
        self.rest = rest
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        made = self.rest.attribute(self.name)
        bind = getattr(type(made), "__get__", None)
        return made if bind is None else bind(made, instance, owner)


_unknown: Final[set[str]] = set()


def attrs_is_known() -> bool:
    """Return whether attrs adds only the attributes to classes that this module supports."""
    return not _unknown


def _new_class(like: type[Any], body: dict[str, Any]) -> type[Any]:
    return type(like.__name__, like.__bases__, body)


if TYPE_CHECKING:
    from attrs import define, frozen
    from attrs import frozen as frozen_base
else:

    def frozen_base(**options: Any) -> Callable[[type[Any]], type[Any]]:
        """Decorate the base of ``frozen`` classes like ``attrs.frozen``.

        If attrs adds an unknown attribute to it, as a release later than the tested ones may do, ``frozen`` becomes
        ``attrs.frozen`` and a warning is raised.
        """

        def decorate(cls: type[Any]) -> type[Any]:
            made = attrs.frozen(**options)(cls)
            _unknown.update(vars(made).keys() - vars(cls).keys() - {*_ADDED, *_INHERITED})
            if _unknown:
                reason = f"attrs adds {', '.join(sorted(_unknown))} to classes, which kafka-msgs was not tested with"
                warn(f"{reason}: message classes are plain attrs classes, and slower", RuntimeWarning, stacklevel=2)
            return made

        return decorate

    def frozen(**options: Any) -> Callable[[type[Any]], type[Any]]:
        """Decorate a class like ``attrs.frozen`` with the same options.

        The class must consist of constants, and of annotated attributes that are a ``Field``. Its base must be an attrs
        class with the same options, or derive from one.
        """
        if _unknown:
            return attrs.frozen(**options)

        def decorate(cls: type[Any]) -> type[Any]:
            body = {name: value for name, value in vars(cls).items() if name not in _NOT_COPIED}
            body["__qualname__"] = cls.__qualname__
            rest = _DeferredClass(cls.__base__, body, options)
            own = {name: value for name, value in body.items() if name not in rest.fields}
            own["__slots__"] = tuple(rest.fields)
            for name in _ADDED:
                own[name] = DeferredAttribute(rest, name)
            rest.cls = _new_class(cls, own)
            return rest.cls

        return decorate

    def define(**options: Any) -> Callable[[type[Any]], type[Any]]:
        """Decorate a class without slots like ``attrs.define`` with the same options."""

        def decorate(cls: type[Any]) -> type[Any]:
            definition = _DeferredErrorClass(cls, options)
            for name in _DEFINED:
                setattr(cls, name, DeferredAttribute(definition, name))
            return cls

        return decorate
