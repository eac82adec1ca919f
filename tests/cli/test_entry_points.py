"""The command as a process: its entry points, and its error if packages are missing."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from kafka_msgs import __version__, backend
from kafka_msgs.messages import RELEASE

WITHOUT = "import sys; sys.modules[{package!r}] = None; from kafka_msgs.cli import main; main()"


def test_python_m_runs_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kafka_msgs", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    code = {"c": "C core", "python": "pure Python"}[backend()]
    assert done.stdout == (
        f"kafka-msgs {__version__} (Apache Kafka {RELEASE}, {code}, CPython {platform.python_version()})\n"
    )


@pytest.mark.parametrize("package", ["click", "rich"])
def test_a_missing_package_is_named_with_the_extra_that_has_it(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(package=package)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr == f"the command line needs {package}: pip install 'kafka-msgs[cli]'\n"


INTERRUPTED = """
import sys
from importlib.abc import MetaPathFinder

class Interrupt(MetaPathFinder):
    def find_spec(self, name, *rest):
        if name == "kafka_msgs.cli.command_group":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from kafka_msgs.cli import main
main()
"""


def test_ctrl_c_during_the_start_ends_the_command_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
