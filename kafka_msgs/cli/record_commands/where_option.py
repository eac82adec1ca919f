"""The option ``--where``: an expression over decoded records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kafka_msgs.registry.record_filter import RecordFilter
    from kafka_msgs.registry.schemas import SchemaResolver

__all__ = ["parse_where_option", "where_option"]

where_option = click.option(
    "--where",
    metavar="EXPRESSION",
    help="Only records for which this is true, such as \"value.amount > 10 and headers.source = 'web'\": comparisons, "
    "LIKE, IN, CONTAINS, BETWEEN, IS NULL, AND, OR and NOT over topic, partition, offset, timestamp, key, value and "
    "headers. Fields come from the registry's schemas, or from JSON.",
)


def parse_where_option(expression: str | None, schemas: SchemaResolver | None) -> RecordFilter | None:
    """Return the filter of the option, or None without it. Raises ``click.BadParameter``."""
    if expression is None:
        return None
    from kafka_msgs.errors import ExpressionError
    from kafka_msgs.registry.record_filter import RecordFilter

    try:
        return RecordFilter(expression, schemas)
    except ExpressionError as error:
        raise click.BadParameter(str(error), param_hint="--where") from None
