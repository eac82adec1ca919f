"""Which form of the column code runs: the one that belongs to the backend of the codec.

``KAFKA_MSGS_BACKEND`` chooses for the codec, the records, the columns and the log alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Final

from kafka_msgs._backend import backend
from kafka_msgs.columns import python
from kafka_msgs.columns.form import Form

__all__ = ["FORMS", "current_form"]


@cache
def _native() -> Form:
    form: Form = import_module("kafka_msgs.columns.native_records").FORM
    return form


FORMS: Final[Mapping[str, Callable[[], Form]]] = {"c": _native, "python": lambda: python.FORM}
"""The forms by the backend that they belong to."""


def current_form() -> Form:
    """Return the form that runs."""
    return FORMS.get(backend(), FORMS["python"])()
