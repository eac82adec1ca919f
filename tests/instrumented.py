"""Makes Python load another build of the C core than the installed one.

``make sanitize`` and ``make fuzz`` compile the same source with instruments in it, outside the package, and name the
file in ``KAFKA_MSGS_TEST_SPEEDUPS``. Importing this module (``pytest -p tests.instrumented``) puts that file in the
place of the extension; it must come before the first import of ``kafka_msgs``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

__all__ = ["install"]

_NAME: Final = "kafka_msgs.codec._speedups"


class _Finder:
    """Finds one extension module in one file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the extension, and of nothing else."""
        if name != _NAME:
            return None
        return spec_from_file_location(name, self.path, loader=ExtensionFileLoader(name, self.path))


def install(path: str) -> None:
    """Load the C core from ``path`` when it is imported; it must be there, and not be imported yet."""
    assert Path(path).is_file(), f"there is no build of the C core at {path}"
    assert _NAME not in sys.modules, "the C core is imported already"
    sys.meta_path.insert(0, _Finder(path))


install(os.environ["KAFKA_MSGS_TEST_SPEEDUPS"])
