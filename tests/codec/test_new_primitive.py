"""Adding a primitive type takes one row in the table and a regenerated header, shown with ``uint8``."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.skip_reasons import not_run

ROOT = Path(__file__).parents[2]
TABLE = "kafka_msgs/primitive_types.py"
ROW_BEFORE = '    INT8 = (Kind.INTEGER, "b", "int8")\n'
ROW = '    UINT8 = (Kind.INTEGER, "B", "int16")\n'
PROGRAM = ROOT / "tests" / "support" / "uint8_program.py"
WRITE_HEADER = """
from pathlib import Path
from kafka_msgs_generator.c_header import ops_header
Path("kafka_msgs/_core/ops.h").write_text(ops_header())
"""


def run(project: Path, *command: object, **environment: str) -> str:
    """Run a command on the copy only, and return its output."""
    paths = os.pathsep.join((str(project), str(project / "generator")))
    done = subprocess.run(
        list(map(str, command)),
        cwd=project,
        env=os.environ | {"PYTHONPATH": paths} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the tree, add the row, and generate the header."""
    copy = tmp_path_factory.mktemp("uint8")
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "kafka_msgs", copy / "kafka_msgs", ignore=ignored)
    shutil.copytree(ROOT / "generator", copy / "generator", ignore=ignored)
    text = (copy / TABLE).read_text()
    assert text.count(ROW_BEFORE) == 1
    (copy / TABLE).write_text(text.replace(ROW_BEFORE, ROW_BEFORE + ROW))
    run(copy, sys.executable, "-c", WRITE_HEADER, KAFKA_MSGS_BACKEND="python")
    return copy


def test_it_works_in_python(project: Path) -> None:
    assert run(project, sys.executable, PROGRAM, KAFKA_MSGS_BACKEND="python").split() == ["python", "reference"]


def test_it_works_in_c(project: Path) -> None:
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None or sys.platform != "linux":
        not_run("no C compiler here whose options are known")
    library = project / "kafka_msgs" / "_core" / f"extension{sysconfig.get_config_var('EXT_SUFFIX')}"
    sources = sorted((project / "kafka_msgs" / "_core").glob("*.c"))
    include = sysconfig.get_path("include")
    run(project, *compiler, "-shared", "-fPIC", "-O0", f"-I{include}", *sources, "-o", library)
    found = run(project, sys.executable, PROGRAM, KAFKA_MSGS_BACKEND="c").split()
    assert found == ["python", "reference", "c"]
