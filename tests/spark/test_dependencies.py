"""The code shipped to executors runs there without any other package except Arrow."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from kafka_msgs.spark.dependencies import _archives

PROGRAM = """\
import sys
sys.path.insert(0, sys.argv[1])
import kafka_msgs.records, kafka_msgs.log.log_directory, cramjam
assert kafka_msgs.__file__.startswith(sys.argv[1]), kafka_msgs.__file__
print(kafka_msgs.backend())
"""


def test_shipped_packages_need_none_that_is_installed(tmp_path: Path) -> None:
    for name, archive in _archives().items():
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(tmp_path / name)
    # Isolated and without site-packages, as on an executor without installed packages.
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("c", "python")
