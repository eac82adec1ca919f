"""Pack the sample that comes with the package: ``python -m tests.recorders.pack_sample``.

The sample is the recorded log directory with groups of every type, without the output of Kafka's own tool. The archive
contains no times and no owners: packing the same files again gives identical bytes, for the same release of zlib.
"""

from __future__ import annotations

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from kafka_msgs import samples
from tests.support.recordings import GROUP_LOGS

__all__ = ["main", "pack"]

_NOT_KAFKAS = ("dump.txt",)


def pack(path: Path) -> None:
    """Write the archive to ``path``."""
    found = sorted(each for each in GROUP_LOGS.rglob("*") if each.is_file() and each.name not in _NOT_KAFKAS)
    with ZipFile(path, "w") as archive:
        for each in found:
            info = ZipInfo(each.relative_to(GROUP_LOGS).as_posix())
            info.external_attr = 0o644 << 16
            archive.writestr(info, each.read_bytes(), ZIP_DEFLATED, 9)


def main() -> None:
    """Write the archive to its path in the package."""
    pack(Path(samples.__file__).with_name(samples.LOG_DIRECTORY))


if __name__ == "__main__":
    main()
