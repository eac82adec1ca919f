"""The package without its optional dependencies."""

from __future__ import annotations

import sys

import pytest

import kafka_msgs.spark
from kafka_msgs.errors import MissingExtraError


def test_without_spark_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'kafka-msgs\[spark\]'"):
        _ = kafka_msgs.spark.register


def test_what_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'registre'"):
        kafka_msgs.spark.registre  # type: ignore[attr-defined]  # noqa: B018
