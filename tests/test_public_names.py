"""The packages' exports and the output of ``dir``."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import kafka_msgs
from kafka_msgs import messages
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.messages import API_KEYS, ORIGINS, RELEASE

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "package", ["kafka_msgs", "kafka_msgs.errors", "kafka_msgs.log", "kafka_msgs.testing", "kafka_msgs.admin"]
)
def test_every_exported_name_is_there_and_shown(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module.__all__) <= set(dir(module))
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_dir_shows_messages_and_lazy_names_and_loads_no_message() -> None:
    code = (
        "import kafka_msgs, sys\nnames = dir(kafka_msgs)\n"
        "print('OffsetFetchRequest' in names, 'compile_schema' in names, 'MessageCatalog' in names,"
        " sum(name.startswith('kafka_msgs.messages.') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True", "1"]  # the one module is the index


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'kafka_msgs' has no attribute 'OffsetFetch'"):
        _ = kafka_msgs.OffsetFetch  # type: ignore[attr-defined]


def test_a_generated_package_says_what_it_holds() -> None:
    assert API_KEYS["clients", "request", 9] == "OffsetFetchRequest"
    assert ORIGINS["OffsetFetchRequest"] == "clients"
    assert RELEASE is not None
    assert set(ORIGINS) == set(messages.__all__)


def test_a_catalog_of_the_package_is_the_release() -> None:
    made = MessageCatalog.of_package(messages)
    assert made.names() == release_catalog().names()
    assert made.message_class(9, "request") is messages.OffsetFetchRequest
