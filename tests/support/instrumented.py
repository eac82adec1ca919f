"""Makes Python load another build of the C cores than the installed one.

``make sanitize`` and ``make fuzz`` compile the same sources with instruments in them, outside the package, into a
folder with one library for each package that has a core, and name the folder in ``KAFKA_MSGS_TEST_SPEEDUPS``. Importing
this module (``pytest -p tests.support.instrumented``) puts those libraries in the place of the extensions; it must come
before the first import of ``kafka_msgs``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

__all__ = ["install"]


class _Finder:
    """Finds extension modules in certain files."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of an extension, and of nothing else."""
        file = self.files.get(name)
        return None if file is None else spec_from_file_location(name, file, loader=ExtensionFileLoader(name, file))


def install(folder: Path) -> None:
    """Load the C cores from ``folder`` when they are imported; they must be there, and not be imported yet."""
    files = {f"kafka_msgs.{file.stem}._speedups": str(file) for file in folder.glob("*.so")}
    assert files, f"there is no build of a C core in {folder}"
    assert not files.keys() & sys.modules.keys(), "a C core is imported already"
    sys.meta_path.insert(0, _Finder(files))


install(Path(os.environ["KAFKA_MSGS_TEST_SPEEDUPS"]))
