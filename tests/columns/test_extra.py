"""Columns without pyarrow, and which form runs where."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

from kafka_msgs.errors import MissingExtraError
from tests.support.columns import FORMS


def test_without_pyarrow_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("kafka_msgs.columns")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'kafka-msgs\[arrow\]'"):
        importlib.import_module("kafka_msgs.columns")


def run(backend: str) -> str:
    """What a process says that was told which backend to use."""
    code = (
        "import sys; from kafka_msgs.columns.switch import current_form;"
        "print(current_form().decoder.__module__, 'kafka_msgs._core.extension' in sys.modules)"
    )
    environment = os.environ | {"KAFKA_MSGS_BACKEND": backend}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_form_is_the_one_of_the_backend_and_no_other_is_loaded() -> None:
    assert run("python") == run("reference") == "kafka_msgs.columns.python False"
    if "c" in FORMS:
        assert run("c") == run("auto") == "kafka_msgs.columns.native True"
