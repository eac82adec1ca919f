"""Makes Python load another build of the C core than the installed one.

``make sanitize``, ``make valgrind`` and ``make fuzz`` compile the same sources with instruments in them, outside the
package, and name the library in ``KAFKA_MSGS_TEST_CORE``. Importing this module (``pytest -p
tests.support.instrumented``) puts that library in the place of the extension; it must come before the first import of
``kafka_msgs``.
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


CORE: Final = "kafka_msgs._core.extension"


class _Finder:
    """Finds the extension in a certain file."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the extension, and of nothing else."""
        if name != CORE:
            return None
        return spec_from_file_location(name, self.file, loader=ExtensionFileLoader(name, self.file))


def install(file: Path) -> None:
    """Load the C core from ``file`` when it is imported; it must be there, and not be imported yet."""
    assert file.is_file(), f"there is no build of the C core at {file}"
    assert CORE not in sys.modules, "the C core is imported already"
    sys.meta_path.insert(0, _Finder(file))


install(Path(os.environ["KAFKA_MSGS_TEST_CORE"]))
