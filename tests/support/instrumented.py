"""Import hook that loads another build of the C core than the installed one.

``make sanitize``, ``make valgrind`` and ``make fuzz`` compile the same sources with instrumentation, outside the
package, and set ``KAFKA_MSGS_TEST_CORE`` to the path of the library. Importing this module (``pytest -p
tests.support.instrumented``) substitutes that library for the extension; the import must precede the first import of
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
    """Finder that loads the extension from a given file."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the extension, or None for any other module."""
        if name != CORE:
            return None
        return spec_from_file_location(name, self.file, loader=ExtensionFileLoader(name, self.file))


def install(file: Path) -> None:
    """Load the C core from ``file`` on import. The file must exist, and the core must not be imported yet."""
    assert file.is_file(), f"there is no build of the C core at {file}"
    assert CORE not in sys.modules, "the C core is imported already"
    sys.meta_path.insert(0, _Finder(file))


install(Path(os.environ["KAFKA_MSGS_TEST_CORE"]))
