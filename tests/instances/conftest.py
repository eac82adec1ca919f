"""Runs tests over both forms of message classes: as attrs creates them, and sealed by the C core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_msgs.schema import field
from tests.support.codecs import message_class
from tests.support.implementations import implementations, name_of

FORMS = {name_of(module): module for module in implementations("kafka_msgs.instances")}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The form of the classes that a test creates."""
    module = FORMS[request.param]
    monkeypatch.setattr("kafka_msgs.instances.sealing._values", module)
    return module


@pytest.fixture
def make(form: Any) -> Callable[..., type[Any]]:
    """A function that creates a message class with three fields."""

    def make_class(name: str = "Made", **more: Any) -> type[Any]:
        fields = {
            "number": field("Number", "int32", default=0),
            "name": field("Name", "string", default="", nullable="0+"),
            "parts": field("Parts", "[]int32", default=()),
        }
        return message_class(name, **fields | more)

    return make_class
