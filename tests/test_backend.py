"""The backend switch: the C core runs either everything or nothing."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs._backend import BACKENDS, CORE, backend, backend_module

PACKAGES = ("codec", "instances", "records", "columns", "log")
CHOSEN = """
import json, sys
import kafka_msgs, kafka_msgs.columns, kafka_msgs.records
from kafka_msgs.columns import decode, record_tables
from kafka_msgs.log import summary
from kafka_msgs.records import batch, builder
kafka_msgs.OffsetFetchRequest().encode(2)
used = [module._IMPLEMENTATION.__name__ for module in (decode, record_tables, summary, batch, builder)]
print(json.dumps([kafka_msgs.backend(), sorted(set(used)), sorted(name for name in sys.modules if name in NAMES)]))
"""


def chosen(name: str) -> Any:
    """Return the backend's name, the modules in use, and the loaded C modules of a process with the given setting."""
    names = [CORE, *(f"kafka_msgs.{package}.native" for package in PACKAGES)]
    done = subprocess.run(
        [sys.executable, "-c", f"NAMES = {names!r}\n{CHOSEN}"],
        env=os.environ | {"KAFKA_MSGS_BACKEND": name},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", BACKENDS)
def test_one_choice_holds_for_every_package(name: str) -> None:
    module = "native" if name == "c" else "python"
    loaded = [CORE, *(f"kafka_msgs.{package}.native" for package in PACKAGES)] if name == "c" else []
    used = [f"kafka_msgs.{package}.{module}" for package in ("columns", "log", "records")]
    assert chosen(name) == [name, used, sorted(loaded)]


DAMAGED = """
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import spec_from_file_location
from pathlib import Path

class Finder:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, *arguments):
        if name != "kafka_msgs._core.extension":
            return self.finder.find_spec(name, *arguments)
        if sys.argv[1] == "absent":
            return None
        damaged = Path(sys.argv[1]) / f"extension{EXTENSION_SUFFIXES[0]}"
        damaged.write_bytes(b"not a library")
        return spec_from_file_location(name, damaged)

sys.meta_path[:] = map(Finder, sys.meta_path)
"""


def with_core(state: str, wanted: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process whose C core is absent, or a damaged file in the directory ``state``."""
    return subprocess.run(
        [sys.executable, "-c", DAMAGED + code, state],
        env=os.environ | {"KAFKA_MSGS_BACKEND": wanted},
        capture_output=True,
        text=True,
        timeout=60,
    )


USE = "import kafka_msgs\nprint(kafka_msgs.backend(), len(kafka_msgs.OffsetFetchRequest().encode(2)))\n"


def test_a_core_that_cannot_be_loaded_is_reported(tmp_path: Path) -> None:
    done = with_core(str(tmp_path), "auto", USE)
    assert done.stdout == "python 6\n"
    assert "RuntimeWarning: the C core cannot be loaded, so the slower Python code runs: " in done.stderr
    assert "extension" in done.stderr.partition("runs: ")[2]


def test_a_core_that_cannot_be_loaded_is_an_error_if_it_was_requested(tmp_path: Path) -> None:
    done = with_core(str(tmp_path), "c", USE)
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("ImportError: ")


def test_an_absent_core_is_not_reported() -> None:
    done = with_core("absent", "auto", USE)
    assert (done.stdout, done.stderr) == ("python 6\n", "")


@pytest.mark.parametrize("state", ["damaged", "absent"])
def test_python_does_not_look_at_the_core(tmp_path: Path, state: str) -> None:
    done = with_core(str(tmp_path) if state == "damaged" else state, "python", USE)
    assert (done.stdout, done.stderr) == ("python 6\n", "")


@pytest.mark.skipif(backend() != "c", reason="the core does not run")
@pytest.mark.parametrize("package", PACKAGES)
def test_both_implementations_offer_the_same(package: str) -> None:
    """``python`` exports every name that ``native`` exports, with the same parameters."""
    native, python = (backend_module(f"kafka_msgs.{package}", name) for name in ("c", "python"))
    for name in native.__all__:
        ours, theirs = getattr(native, name), getattr(python, name)
        assert inspect.isclass(ours) == inspect.isclass(theirs)
        if not inspect.isclass(ours):
            assert kinds(ours) == kinds(theirs)


def kinds(function: Any) -> list[Any]:
    """Return the kinds of a function's first five parameters."""
    return [each.kind for each in inspect.signature(function).parameters.values()][:5]
