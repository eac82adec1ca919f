"""Rendering of this package's templates. Only this module uses Jinja2."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from kafka_msgs.errors import MissingExtraError

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render"]


def render(template: str, **values: object) -> str:
    """Return the text of ``template``; raise ``MissingExtraError`` if Jinja2 is not installed."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError(feature="the generator", extra="generator", package="Jinja2") from None
    return jinja2.Environment(
        loader=jinja2.PackageLoader("kafka_msgs_generator"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
