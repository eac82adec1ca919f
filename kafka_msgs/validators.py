"""Checks of options: whole numbers, flags and choices, as calls and as attrs validators.

This module owns the texts of the reasons. The classes and functions with options own the bounds. Unlike Python, it does
not accept a bool as an integer or an integer as a flag.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, TypeAlias

from attrs import Attribute

from kafka_msgs.errors import OptionError
from kafka_msgs.versions import version_number

__all__ = ["LARGEST", "check_choice", "check_flag", "check_int", "int_range", "is_bool", "is_instance", "one_of"]

LARGEST: Final = 2**63 - 1
"""The largest number that an option may have, unless another bound is given: what 64 bits can carry."""

Validator: TypeAlias = Callable[[Any, "Attribute[Any]", Any], None]


def check_int(source: str, option: str, value: object, least: int = 0, most: int = LARGEST) -> None:
    """Raise ``OptionError`` for a value of ``source`` that is not a whole number from ``least`` to ``most``."""
    number = version_number(value)
    if number is None or number < least:
        raise OptionError(source=source, option=option, value=value, reason=f"a whole number from {least} is needed")
    if number > most:
        raise OptionError(source=source, option=option, value=value, reason=f"it is at most {most}")


def check_flag(source: str, option: str, value: object) -> None:
    """Raise ``OptionError`` for a value that is not ``True`` or ``False``."""
    if not isinstance(value, bool):
        raise OptionError(source=source, option=option, value=value, reason="True or False is needed")


def check_choice(source: str, option: str, value: object, choices: Collection[str]) -> None:
    """Raise ``OptionError`` for a value that is not one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise OptionError(source=source, option=option, value=value, reason=f"it is one of {', '.join(choices)}")


def int_range(least: int = 0, most: int = LARGEST) -> Validator:
    """Return the attrs validator that calls ``check_int``. Its source is the name of the class."""
    return lambda owner, attribute, value: check_int(type(owner).__name__, attribute.name, value, least, most)


def is_bool() -> Validator:
    """Return the attrs validator that calls ``check_flag``."""
    return lambda owner, attribute, value: check_flag(type(owner).__name__, attribute.name, value)


def one_of(*choices: str) -> Validator:
    """Return the attrs validator that calls ``check_choice``."""
    return lambda owner, attribute, value: check_choice(type(owner).__name__, attribute.name, value, choices)


def is_instance(cls: type) -> Validator:
    """Return the attrs validator that raises ``OptionError`` for an object of another class than ``cls``."""

    def check(owner: Any, attribute: Attribute[Any], value: object) -> None:
        if not isinstance(value, cls):
            reason = f"a {cls.__name__} is needed"
            raise OptionError(source=type(owner).__name__, option=attribute.name, value=value, reason=reason)

    return check
