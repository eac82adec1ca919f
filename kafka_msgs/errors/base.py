"""The base class of all kafka-msgs exceptions, and two exceptions that do not belong to an area.

This module owns the base class, and the format of values in texts. Exceptions are attrs classes, so type checkers see
their attributes. They are built with keyword arguments, except for the code and the text of an ``ApiError``. The text
is built from the attributes on first use.
"""

from __future__ import annotations

import copyreg
import re

from kafka_msgs.deferred_attrs import define

__all__ = ["InternalError", "KafkaMsgsError", "MissingExtraError", "mask_credentials", "shown"]


class KafkaMsgsError(Exception):
    """Base of all exceptions that this library raises on purpose.

    Every fact of an error is an attribute. As with all exceptions, two errors are equal only if they are the same
    object. Instances can be pickled, so a worker process can send a complete error to its driver.
    """

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__} is abstract: an error with facts is an attrs class")

    def __str__(self) -> str:
        return self._text()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._text()!r})"

    def _text(self) -> str:
        raise NotImplementedError

    def __reduce__(self) -> tuple[object, ...]:
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


_SHOWN = 100


def shown(value: object) -> str:
    """Return a value as error texts show it: its repr, truncated to about 100 characters.

    A value without a repr, such as an integer with more digits than Python prints, is shown by its type.
    """
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def mask_credentials(value: object) -> object:
    """Return a value without the user names, passwords and queries of the URLs in its strings."""
    if isinstance(value, str):
        return _QUERY.sub(r"\1***", _USER_INFO.sub("//***@", value)) if "//" in value else value
    if isinstance(value, tuple | list):
        return type(value)(map(mask_credentials, value)) if type(value) in (tuple, list) else value
    return value


_USER_INFO = re.compile(r"//[^/\s]*@")
_QUERY = re.compile(r"(//[^\s?]*\?)\S+")


@define(kw_only=True, slots=False, repr=False)
class MissingExtraError(KafkaMsgsError, ImportError):
    """A feature whose packages are not installed. Attributes: ``feature``, ``extra`` and ``package``."""

    feature: str
    extra: str
    package: str

    def _text(self) -> str:
        return f"{self.feature} needs {self.package}: pip install 'kafka-msgs[{self.extra}]'"


@define(kw_only=True, slots=False, repr=False)
class InternalError(KafkaMsgsError):
    """A bug of the library. Please report it. Attribute: ``reason``."""

    reason: str

    def _text(self) -> str:
        return f"internal error, please report: {self.reason}"
