"""CRC-32C by the extension of the package ``crc32c``, without the modules of its ``__init__``.

The package imports 60 modules of the standard library for its own version and its command, which take 50 ms. If a
release has its extension elsewhere, the package is imported as usual.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, Final

__all__ = ["crc32c"]

_PACKAGE: Final = "crc32c"


def _extension() -> Any:
    package = find_spec(_PACKAGE)
    places = None if package is None else package.submodule_search_locations
    spec = PathFinder.find_spec("_crc32c", places) if places else None
    if _PACKAGE in sys.modules or spec is None or spec.loader is None:
        return import_module(_PACKAGE)
    extension = module_from_spec(spec)
    spec.loader.exec_module(extension)
    return extension


crc32c: Final[Callable[..., int]] = _extension().crc32c
"""Return the CRC-32C of bytes, continued from a checksum of the bytes before them, which may follow as an argument."""
