"""One switch: with the C core all of the library runs in it, without it nothing does."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from kafka_msgs._backend import BACKENDS, CORE, backend, implementation

PACKAGES = ("codec", "values", "records", "columns", "log")
CHOSEN = """
import json, sys
import kafka_msgs, kafka_msgs.columns, kafka_msgs.records
from kafka_msgs.columns import decode, records
from kafka_msgs.log import summary
from kafka_msgs.records import batch, builder
kafka_msgs.OffsetFetchRequest().encode(2)
used = [module._IMPLEMENTATION.__name__ for module in (decode, records, summary, batch, builder)]
print(json.dumps([kafka_msgs.backend(), sorted(set(used)), sorted(name for name in sys.modules if name in NAMES)]))
"""


def chosen(name: str) -> Any:
    """What runs in a process that asks for a backend: its name, the modules in use, and those of C that are loaded."""
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


@pytest.mark.skipif(backend() != "c", reason="the core does not run")
@pytest.mark.parametrize("package", PACKAGES)
def test_both_implementations_offer_the_same(package: str) -> None:
    """What ``native`` exports, ``python`` has under the same name, with the same arguments."""
    native, python = (implementation(f"kafka_msgs.{package}", name) for name in ("c", "python"))
    for name in native.__all__:
        ours, theirs = getattr(native, name), getattr(python, name)
        assert inspect.isclass(ours) == inspect.isclass(theirs)
        if not inspect.isclass(ours):
            assert kinds(ours) == kinds(theirs)


def kinds(function: Any) -> list[Any]:
    """How the first five arguments of a function are given."""
    return [each.kind for each in inspect.signature(function).parameters.values()][:5]
