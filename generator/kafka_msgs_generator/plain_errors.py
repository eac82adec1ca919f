"""Errors of the commands: messages on standard error without a traceback, exit status 1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs_generator.compiler import InvalidDefinitionsError
from kafka_msgs_generator.output import ForeignFileError

__all__ = ["plain_errors"]


@contextmanager
def plain_errors() -> Iterator[None]:
    """Convert errors to a message without a traceback, and exit with status 1."""
    try:
        yield
    except InvalidDefinitionsError as error:
        for each in error.errors:
            click.echo(f"Error: {each}", err=True)
        raise click.exceptions.Exit(1) from None
    except (KafkaMsgsError, ForeignFileError, OSError) as error:
        raise click.ClickException(str(error)) from None
