"""No public signature or field of the client packages has the type ``Any``, which disables type checks of callers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from kafka_msgs import admin, client
from kafka_msgs.client import config, consumer, hooks, producer, streams
from kafka_msgs.client.consumer import config as consumer_config
from kafka_msgs.client.producer import config as producer_config

MODULES = [client, consumer, producer, streams, admin, config, hooks, consumer_config, producer_config]
SPECIAL = {"__init__", "__enter__", "__aenter__", "__iter__", "__aiter__", "__getitem__", "__await__"}
PRIVATE = {"parse_consumer_properties", "parse_producer_properties", "CONSUMER", "PRODUCER", "HookCaller"}
"""Names for the other modules of the client."""


def annotations_of_class(cls: type) -> Iterator[tuple[str, str]]:
    """Yield the annotations of the public fields and methods of a class and of its bases in the library."""
    for base in cls.__mro__:
        if not base.__module__.startswith("kafka_msgs"):
            continue
        for name, annotation in vars(base).get("__annotations__", {}).items():
            if not name.startswith("_"):
                yield f"{base.__name__}.{name}", str(annotation)
        for name, member in vars(base).items():
            function = getattr(getattr(member, "fget", member), "__func__", getattr(member, "fget", member))
            if inspect.isfunction(function) and (name in SPECIAL or not name.startswith("_")):
                yield from (
                    (f"{base.__name__}.{name}({key})", str(each)) for key, each in function.__annotations__.items()
                )


def annotations_of(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield the annotations of all public names of a module."""
    for name in set(module.__all__) - PRIVATE:
        value: Any = getattr(module, name)
        if inspect.isclass(value):
            yield from annotations_of_class(value)
        elif inspect.isfunction(value):
            yield from ((f"{name}({key})", str(each)) for key, each in value.__annotations__.items())
        elif not isinstance(value, dict):
            yield name, str(value)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_no_public_type_is_any(module: ModuleType) -> None:
    found = dict(annotations_of(module))
    assert found
    assert [name for name, annotation in found.items() if re.search(r"\bAny\b", annotation)] == []
