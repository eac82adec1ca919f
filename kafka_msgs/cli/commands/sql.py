"""``kafka-msgs sql``: SQL queries over log directories, executed by DuckDB."""

from __future__ import annotations

import click

from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.progress import progress_over
from kafka_msgs.cli.sql import SqlQuery

__all__ = ["sql_command"]


@click.command("sql")
@click.argument("query")
@listing_option
def sql_command(query: str, output_format: str) -> None:
    """Answer QUERY, a SELECT statement in the SQL of DuckDB, from the files of brokers.

    log('DIR') is a table with a row for each record in a log directory, or in the directory of one partition, with the
    columns of the source kafka-log of Spark. DuckDB reserves the word offset: write "offset", with the quotes, or
    l.offset for log('DIR') l. What is damaged is a row with the reason in _error. Nothing is written, and the
    query reads no file but those of the log directories. Bytes are shown as text where they are UTF-8.
    """
    question = SqlQuery(query)
    with progress_over([file for path in question.paths for file in question.files(path)]) as progress:
        columns, rows = question.execute(progress)
        print_listing(output_format, columns, rows)
