"""Arrow without pandas and NumPy, for commands that run a job in their own process.

This module shortens the import of Arrow. Arrow imports NumPy and pandas, if they are installed, to recognize their
objects: NumPy at once, pandas when it creates the first number or array, and again when it converts the first timestamp
to Python. To group rows, it imports its datasets with all filesystems. No job has such objects or uses datasets, and
the imports take longer than a run that resumes an earlier one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from kafka_msgs.errors import MissingExtraError

__all__ = ["import_arrow_without_pandas", "own_process", "require_arrow"]

_left_out: Final = {"pandas"}


def own_process() -> None:
    """Also hide NumPy and Arrow's datasets, in a process that only runs one command: Arrow cannot import them later."""
    _left_out.update(("numpy", "pyarrow.dataset"))


def import_arrow_without_pandas() -> None:
    """Import Arrow and hide pandas from it, unless pandas is imported already.

    Functions that need pandas, such as ``to_pandas``, import it later, except after ``own_process``. Without Arrow,
    this function does nothing.
    """
    hidden = _left_out - sys.modules.keys()
    if "pandas" not in hidden or find_spec("pyarrow") is None:
        return
    with _refused(hidden):
        import pyarrow as pa
        import pyarrow.acero  # for groups of rows; imports the datasets
        import pyarrow.compute  # imports NumPy again

        pa.scalar(0)
        pa.scalar(0, pa.timestamp("us", tz="UTC")).as_py()


def require_arrow(feature: str) -> None:
    """Import Arrow without pandas for a feature; raises ``MissingExtraError`` if Arrow is not installed."""
    try:
        import_arrow_without_pandas()
        import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError(feature=feature, extra="local", package="pyarrow") from error


class _Refusing:
    """A module finder that reports some modules as missing."""

    def __init__(self, hidden: Set[str]) -> None:
        self._hidden = hidden

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in self._hidden:
            raise ModuleNotFoundError(f"{name} is left out", name=name)


@contextmanager
def _refused(hidden: Set[str]) -> Iterator[None]:
    finder = _Refusing(hidden)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
