"""The sample in the package equals the recorded log directory."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from kafka_msgs import samples
from kafka_msgs.errors import JobPathError
from kafka_msgs.log.partition_discovery import partitions_in
from tests.recorders import pack_sample
from tests.support.recordings import GROUP_LOGS


def contents(directory: Path) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file() and path.name != "dump.txt")
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


def test_the_sample_has_the_recorded_files(tmp_path: Path) -> None:
    written = samples.write_sample(tmp_path / "new" / "logs")
    assert contents(tmp_path / "new" / "logs") == contents(GROUP_LOGS)
    assert written == sorted(each.path for each in partitions_in([tmp_path / "new" / "logs"]))


def test_the_archive_is_made_the_same_again(tmp_path: Path) -> None:
    pack_sample.pack(tmp_path / "again.zip")
    packed = Path(samples.__file__).with_name(samples.LOG_DIRECTORY)
    with ZipFile(tmp_path / "again.zip") as again, ZipFile(packed) as shipped:
        assert [(each.filename, each.CRC, each.date_time) for each in again.infolist()] == [
            (each.filename, each.CRC, each.date_time) for each in shipped.infolist()
        ]
    assert packed.stat().st_size < 200_000


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    with pytest.raises(JobPathError, match="already exists"):
        samples.write_sample(tmp_path)
    with pytest.raises(JobPathError, match="already exists"):
        samples.write_sample(tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
