"""Gives a suite other fixtures than those that start its own brokers. What a plugin registers here wins everywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Final

import pytest

BROKER: Final[dict[str, Any]] = json.loads(os.environ["KAFKA_MSGS_SUITE_BROKER"])
"""Where the cluster is: ``listeners`` by name, and files of ``certificates``."""

_REPLACED: Final[dict[str, Callable[[Any], object]]] = {}


def replaces(name: str) -> Callable[[Callable[[Any], object]], Callable[[Any], object]]:
    """Let the function, which is given pytest's request, make the value of all fixtures of this name."""

    def register(make: Callable[[Any], object]) -> Callable[[Any], object]:
        _REPLACED[name] = make
        return make

    return register


def port(listener: str) -> int:
    """The port of the first broker's listener."""
    return int(BROKER["listeners"][listener].split(",")[0].rpartition(":")[2])


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> object:
    """Answer for the fixtures that are replaced; pytest runs the others itself."""
    make = _REPLACED.get(fixturedef.argname)
    if make is None:
        return None
    value = make(request)
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
    return value
