"""Writes versions of a table until a test kills it; prints the number of each complete version.

``writer_app.py FORMAT PLACE ROWS``: all rows of version N have N in ``version``. It has a limited number of versions.
"""

from __future__ import annotations

import sys

import pyarrow as pa

from kafka_msgs.tables import get_format

VERSIONS = 200


def main(name: str, place: str, rows_of_table: str) -> None:
    """Repeatedly write half of the rows and delete the other half."""
    form = get_format(name)
    keys = list(range(int(rows_of_table)))
    form.write(pa.table({"key": keys, "day": [key % 3 for key in keys], "version": [0] * len(keys)}), place, ["day"])
    print(0, flush=True)
    for version in range(1, VERSIONS):
        kept = keys[version % 2 :: 2]
        rows = pa.table({"key": kept, "day": [key % 3 for key in kept], "version": [version] * len(kept)})
        form.merge(rows, place, ["key"], pa.table({"key": keys[1 - version % 2 :: 2]}))
        print(version, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
