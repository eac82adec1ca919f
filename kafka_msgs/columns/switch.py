"""Which form of the column code runs: the one that belongs to the backend of the codec.

``KAFKA_MSGS_BACKEND`` chooses as it does for the codec. The C form needs an extension of its own; where only that one
is missing, the pure-Python form runs with the codec's C core under it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Final

from kafka_msgs.codec import backend
from kafka_msgs.columns import python
from kafka_msgs.columns.form import Form

__all__ = ["FORMS", "current_form"]


@cache
def _native() -> Form:
    try:
        form: Form = import_module("kafka_msgs.columns.native_records").FORM
    except ImportError:
        return python.FORM
    return form


FORMS: Final[Mapping[str, Callable[[], Form]]] = {"c": _native, "python": lambda: python.FORM}
"""The forms by the backend that they belong to."""


def current_form() -> Form:
    """Return the form that runs."""
    return FORMS.get(backend(), FORMS["python"])()
