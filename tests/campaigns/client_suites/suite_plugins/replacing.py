"""Replaces the fixtures of a suite that start its own brokers. Replacements apply everywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Final

import pytest

BROKER: Final[dict[str, Any]] = json.loads(os.environ["KAFKA_MSGS_SUITE_BROKER"])
"""The address of the cluster: ``listeners`` by name, and files of ``certificates``."""

_REPLACED: Final[dict[str, Callable[[Any], object]]] = {}


def replaces(name: str) -> Callable[[Callable[[Any], object]], Callable[[Any], object]]:
    """Register a function of pytest's request that creates the value of all fixtures with this name."""

    def register(make: Callable[[Any], object]) -> Callable[[Any], object]:
        _REPLACED[name] = make
        return make

    return register


def port(listener: str) -> int:
    """Return the port of the first broker's listener."""
    return int(BROKER["listeners"][listener].split(",")[0].rpartition(":")[2])


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> object:
    """Set up replaced fixtures; pytest sets up all others."""
    make = _REPLACED.get(fixturedef.argname)
    if make is None:
        return None
    value = make(request)
    fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
    return value
