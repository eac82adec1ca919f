"""Pages that commands write: a file appears whole or not at all, and only its owner can read it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TextIO, cast

import click

__all__ = ["new_page"]


@contextmanager
def new_page(path: Path) -> Iterator[TextIO]:
    """Yield a text file that replaces ``path`` at the end, unless an error occurs. Raises ``click.ClickException``."""
    try:
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                yield cast("TextIO", file)
                file.flush()
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None
