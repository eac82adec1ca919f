"""What every exception of kafka-msgs shares, and the two that belong to no area.

Owns the base class, and how a text shows a value. An exception is an attrs class, so that a type checker knows its
facts; it is built with keyword arguments, and its text is made from the facts when somebody asks for it.
"""

from __future__ import annotations

import copyreg

from attrs import define

__all__ = ["InternalError", "KafkaMsgsError", "MissingExtraError", "shown"]


class KafkaMsgsError(Exception):
    """Base of everything this library raises on purpose.

    Every fact of an error is an attribute. Two errors are equal only if they are the same object, as with all
    exceptions. Instances survive pickling, so that a worker process can hand its error to the driver whole.
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
    """Return a value as an error's text shows it: its repr, of at most about 100 characters.

    A value without a repr, such as a number with more digits than Python prints, is shown by its type.
    """
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


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
    """The library contradicted itself; always a bug worth reporting. Attribute: ``reason``."""

    reason: str

    def _text(self) -> str:
        return f"internal error, please report: {self.reason}"
