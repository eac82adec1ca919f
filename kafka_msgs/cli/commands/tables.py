"""``kafka-msgs tables``: the committed tables of a job's output, and their files, on any filesystem."""

from __future__ import annotations

import click

from kafka_msgs.cli.render.console import console, table
from kafka_msgs.cli.render.output import echo
from kafka_msgs.errors import JobPathError

__all__ = ["tables_command"]


@click.command("tables")
@click.argument("out", metavar="OUT")
@click.option("--files", "name", metavar="TABLE", help="Print the files of this table, one per line.")
@click.option("--conf", metavar="NAME=VALUE", multiple=True, help="A filesystem option, such as fs.s3a.endpoint=HOST.")
def tables_command(out: str, name: str | None, conf: tuple[str, ...]) -> None:
    """List the tables of the latest commit in OUT, the output of a pipeline job.

    OUT is a directory, or a URI such as s3://. On a local disk, OUT/current has the same files.

    Example: kafka-msgs tables s3://bucket/offsets --files offsets
    """
    from kafka_msgs.filesystems.options import FilesystemOptions
    from kafka_msgs.filesystems.storage import Storage
    from kafka_msgs.tables.commit_log import CommitLog

    options = dict(each.partition("=")[::2] for each in conf)
    storage = Storage.at(out, FilesystemOptions.from_mapping(options, "tables"))
    head = CommitLog(storage).head()
    if head is None:
        raise JobPathError(path=str(storage), reason="there is no commit in it")
    names = [each for each in head.tables if not each.startswith("_")]
    if name is None:
        shown = table("table", "files", "rows", "bytes")
        for each in names:
            files = head.tables[each].values()
            sums = (len(files), sum(file.rows for file in files), sum(file.size for file in files))
            shown.add_row(each, *(f"{number:,}" for number in sums))
        console().print(shown)
        return
    if name not in names:
        raise JobPathError(path=str(storage), reason=f"it has no table {name}; it has {', '.join(names)}")
    for file in head.tables[name].values():
        echo(f"{storage}/{file.path}")
