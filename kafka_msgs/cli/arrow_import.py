"""Arrow without pandas, for commands that run a job in their own process.

This module shortens the import of Arrow. The first array or number that Arrow creates imports pandas, if it is
installed, to recognize its objects. No job has such objects, and the import takes longer than a run that resumes an
earlier one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from kafka_msgs.errors import MissingExtraError

__all__ = ["import_arrow_without_pandas", "require_arrow"]

_LEFT_OUT: Final = "pandas"


def import_arrow_without_pandas() -> None:
    """Import Arrow and hide pandas from it, unless pandas is imported already.

    Functions that need pandas, such as ``to_pandas``, import it later. Without Arrow, this function does nothing.
    """
    if _LEFT_OUT in sys.modules or find_spec("pyarrow") is None:
        return
    import pyarrow as pa

    with _refused():
        pa.scalar(0)


def require_arrow(feature: str) -> None:
    """Import Arrow without pandas for a feature; raises ``MissingExtraError`` if Arrow is not installed."""
    try:
        import_arrow_without_pandas()
        import_module("pyarrow")
    except ImportError as error:
        raise MissingExtraError(feature=feature, extra="local", package="pyarrow") from error


class _Refusing:
    """A module finder that reports one module as missing."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == _LEFT_OUT:
            raise ModuleNotFoundError(f"{name} is left out", name=name)


@contextmanager
def _refused() -> Iterator[None]:
    finder = _Refusing()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
