"""``kafka-msgs sql``: SQL queries over log directories, executed by DuckDB."""

from __future__ import annotations

import click

from kafka_msgs.cli.output_options import isolation_option, listing_option
from kafka_msgs.cli.record_commands.where_option import parse_where_option, where_option
from kafka_msgs.cli.registry_options import payload_schemas, registry_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.progress import progress_over
from kafka_msgs.cli.sql import SqlQuery
from kafka_msgs.log.transaction_index import IsolationLevel

__all__ = ["sql_command"]


@click.command("sql")
@click.argument("query")
@isolation_option
@where_option
@registry_option
@listing_option
def sql_command(
    query: str, isolation: IsolationLevel, where: str | None, registry: str | None, output_format: str
) -> None:
    """Run QUERY, a SELECT statement in DuckDB's SQL, on log directories.

    log('DIR') is a table with a row for each record in a log directory or a partition directory, and the columns of
    the Spark source kafka-log. DuckDB reserves the word offset: write "offset" with the quotes, or l.offset for
    log('DIR') l. Corrupt records are rows with the reason in _error. The query writes nothing, and reads only files
    of the log directories. UTF-8 bytes are shown as text. With --where, the tables have only the records for which
    the expression is true, besides the rows of corrupt records.

    Example: kafka-msgs sql "SELECT topic, count(*) FROM log('kafka-logs') GROUP BY topic"
    """
    question = SqlQuery(query, isolation, parse_where_option(where, payload_schemas(registry)))
    with progress_over([file for path in question.paths for file in question.files(path)]) as progress:
        columns, rows = question.execute(progress)
        print_listing(output_format, columns, rows)
