"""A writer of a table may be killed at any time: the last complete version stays readable."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_msgs.tables import FORMAT_NAMES, get_format

APPLICATION = Path(__file__).parent / "writer_app.py"
KILLS = 2
ROWS = 2000
VERSIONS_BEFORE = 3


def killed_writer(name: str, place: Path, delay: float) -> int:
    """Start a writer, kill it shortly after some versions are complete, and return the last version that it printed."""
    command = [sys.executable, str(APPLICATION), name, str(place), str(ROWS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        named = [writer.stdout.readline() for _ in range(VERSIONS_BEFORE)]
        time.sleep(delay)
        writer.kill()
        return int([*named, *writer.stdout][-1])


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_a_killed_writer_leaves_the_last_version(name: str, tmp_path: Path) -> None:
    form, place, dice = get_format(name), tmp_path / "table", random.Random(name)
    for _ in range(KILLS):
        named = killed_writer(name, place, dice.uniform(0, 0.1))
        rows = form.read(str(place)).read_all()
        (version,) = pc.unique(rows["version"]).to_pylist()
        assert version in (named, named + 1)
        assert rows.num_rows == (ROWS // 2 if version else ROWS)
        form.append(pa.table({"key": [ROWS], "day": [5], "version": [version]}), str(place))
        assert form.read(str(place)).read_all().num_rows == rows.num_rows + 1
