"""CPython 3.13 without the GIL never frees a class."""

from __future__ import annotations

import sys
import sysconfig
from typing import Final

import pytest

__all__ = ["if_classes_are_collected"]

_IMMORTAL: Final = sys.version_info[:2] == (3, 13) and bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

if_classes_are_collected: Final = pytest.mark.skipif(
    _IMMORTAL, reason="CPython 3.13 without the GIL makes classes immortal once a thread has started"
)
