"""The Jinja2 environment of pages and plots. It escapes all text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from kafka_msgs.errors import MissingExtraError

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["environment"]


@cache
def environment() -> Environment:
    """Return the environment of the templates; raises ``MissingExtraError`` without Jinja2."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise MissingExtraError(feature="a report", extra="report", package="jinja2") from error
    return Environment(
        loader=PackageLoader("kafka_msgs.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
