"""Arrow without pandas, for commands that run a job in their own process.

Owns what the import of Arrow costs a command. The first array or number that Arrow makes imports pandas, wherever that
is installed, to know its objects when it sees them. No job has such objects, and the import takes longer than a run
that goes on from an earlier one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final

__all__ = ["import_arrow_without_pandas"]

_LEFT_OUT: Final = "pandas"


def import_arrow_without_pandas() -> None:
    """Import Arrow, and let it find no pandas, unless that is imported already.

    What needs pandas later, such as ``to_pandas``, imports it then. Without Arrow, nothing is done.
    """
    if _LEFT_OUT in sys.modules or find_spec("pyarrow") is None:
        return
    import pyarrow as pa

    with _refused():
        pa.scalar(0)


class _Refusing:
    """A finder of modules that says of one that it does not exist."""

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
