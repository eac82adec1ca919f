"""Columns without pyarrow."""

from __future__ import annotations

import importlib
import sys

import pytest

from kafka_msgs.errors import MissingExtraError


def test_without_pyarrow_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("kafka_msgs.columns")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'kafka-msgs\[arrow\]'"):
        importlib.import_module("kafka_msgs.columns")
