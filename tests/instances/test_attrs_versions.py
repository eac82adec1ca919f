"""The attrs releases for which classes are deferred and sealed, and message classes with any other attrs release."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import attrs

from kafka_msgs.deferred_attrs import attrs_is_known

ROOT = Path(__file__).parents[2]
OLDEST, NEWEST = "24.1", "26.1"
"""Tested releases: 24.1.0, 24.3.0, 25.3.0, 25.4.0 and 26.1.0. Run tests/instances with a later release, then raise
this."""

OTHER_ATTRS = """
import warnings
import attrs

frozen = attrs.frozen

def with_more(*args, **options):
    def decorate(cls):
        made = frozen(**options)(cls)
        made.__attrs_more__ = 1
        return made
    return decorate(*args) if args else decorate

attrs.frozen = with_more
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from kafka_msgs import HeartbeatRequest, OffsetFetchRequest
print(*(each.message for each in caught))
message = HeartbeatRequest(group_id="g", generation_id=3)
assert not HeartbeatRequest._sealed
assert HeartbeatRequest.__attrs_more__ == 1
assert HeartbeatRequest.decode(message.encode(4), 4) == message
assert attrs.evolve(message, generation_id=4) != message
assert len(attrs.fields(HeartbeatRequest)) == 5
"""


def release(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")[:2]))


def test_the_installed_attrs_is_one_that_was_tested() -> None:
    assert release(OLDEST) <= release(version("attrs")) <= release(NEWEST)
    assert attrs_is_known()


def test_older_releases_are_not_installed_with_the_library() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"attrs>={OLDEST}" in project["dependencies"]


def test_an_attrs_that_adds_something_else_makes_plain_classes_and_warns() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OTHER_ATTRS], cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("attrs adds __attrs_more__ to classes, which kafka-msgs was not tested with")


def test_what_attrs_documents_is_what_sealing_asks_for() -> None:
    @attrs.frozen
    class Made:
        pass

    @attrs.frozen
    class Own:
        def __init__(self) -> None:
            pass

    if hasattr(attrs, "inspect"):  # since 25.4
        assert (attrs.inspect(Made).added_init, attrs.inspect(Own).added_init) == (True, False)
        assert isinstance(attrs.inspect(Made), attrs.ClassProps)
