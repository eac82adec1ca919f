"""The blocking and asyncio facades over a client: equal methods, equal docstrings, and closing at the end."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
import subprocess
import sys
from typing import Any

import pytest

from kafka_msgs.admin import Admin, AsyncAdmin
from kafka_msgs.client import AsyncClient, AsyncConsumer, AsyncProducer, Client, ClientConfig, Consumer, Producer
from kafka_msgs.errors import OptionError

PAIRS: list[tuple[type[Any], type[Any]]] = [
    (Client, AsyncClient),
    (Consumer, AsyncConsumer),
    (Producer, AsyncProducer),
    (Admin, AsyncAdmin),
]
ALL = [each for pair in PAIRS for each in pair]
SERVERS = "localhost:9092"


def methods(cls: type[Any]) -> dict[str, Any]:
    """Return the public methods of a class."""
    found = {name: getattr(cls, name) for name in dir(cls) if not name.startswith("_")}
    return {name: value for name, value in found.items() if inspect.isroutine(value)}


@pytest.mark.parametrize(("blocking", "on_asyncio"), PAIRS)
def test_both_forms_have_the_same_methods(blocking: type[Any], on_asyncio: type[Any]) -> None:
    parameters = [
        {name: str(inspect.signature(each).parameters) for name, each in methods(cls).items()}
        for cls in (blocking, on_asyncio)
    ]
    assert parameters[0] == parameters[1]


@pytest.mark.parametrize("cls", ALL)
def test_every_method_says_what_it_does_and_returns(cls: type[Any]) -> None:
    text = pydoc.plain(pydoc.render_doc(cls))
    for name, method in methods(cls).items():
        signature = inspect.signature(method)
        assert next(iter(signature.parameters)) == "self", name
        assert signature.return_annotation is not inspect.Signature.empty, name
        assert inspect.getdoc(method), name
        assert f" {name}{str(signature)[:5]}" in text, name
        assert "Steps" not in str(signature).replace("Steps[T]", ""), name


def test_a_method_of_an_object_has_the_signature_without_it() -> None:
    with Consumer(SERVERS) as consumer:
        assert list(inspect.signature(consumer.poll).parameters) == ["timeout", "max_records"]
        assert consumer.poll.__name__ == "poll"
        assert str(consumer.poll.__doc__).startswith("Return records")


def test_a_method_can_be_called_on_its_class_as_any_function_can() -> None:
    call: Any = Consumer.poll
    with Consumer(SERVERS) as consumer:
        assert call(consumer, 0.0) == consumer.poll(0.0) == []


class Counting(Client):
    """A client that counts its ``close`` calls."""

    closed = 0

    def close(self) -> None:
        """Count the call."""
        super().close()
        self.closed += 1


@pytest.mark.parametrize("form", [Consumer, Producer, Admin])
def test_a_client_that_was_given_stays_open(form: type[Any]) -> None:
    with Counting(SERVERS) as client:
        with form(client) as user:
            assert user.client is client
        assert client.closed == 0
    assert client.closed == 1


@pytest.mark.parametrize("form", [Consumer, Producer])
def test_a_client_of_its_own_is_closed_even_if_the_end_fails(form: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    user = form(SERVERS)
    closed: list[bool] = []

    def fail(steps: Any) -> None:
        steps.close()
        raise ValueError("no")

    monkeypatch.setattr(user.client, "run", fail)
    monkeypatch.setattr(user.client, "close", lambda: closed.append(True))
    with pytest.raises(ValueError, match="no"):
        user.close()
    assert closed == [True]


@pytest.mark.parametrize("form", [AsyncConsumer, AsyncProducer, AsyncAdmin])
def test_on_asyncio_too(form: type[Any]) -> None:
    async def main() -> None:
        async with AsyncClient(SERVERS) as client:
            async with form(client) as user:
                assert user.client is client
            assert not client.network._closed
        async with form(SERVERS) as user:
            client = user.client
        assert client.network._closed

    asyncio.run(main())


@pytest.mark.parametrize("form", [Client, Consumer, Producer, Admin])
def test_keywords_go_before_what_the_servers_say(form: type[Any]) -> None:
    for servers in (ClientConfig(bootstrap_servers=SERVERS, client_id="a"), {"bootstrap.servers": SERVERS}):
        with form(servers, client_id="b", timeout=2.5) as user:
            core = user.core if form is Client else user.client.core
            assert (core.config.client_id, core.config.timeout) == ("b", 2.5)


def test_a_wrong_keyword_is_refused() -> None:
    with pytest.raises(OptionError, match="timeout"):
        Consumer(SERVERS, timeout=-1)
    with pytest.raises(OptionError, match="did you mean group_id"):
        Consumer(SERVERS, group="g")  # type: ignore[call-arg]


def test_the_clients_import_only_the_modules_that_they_need() -> None:
    """Modules with many imports of their own are imported at the first use, if at all."""
    code = """
import attrs, sys
from kafka_msgs.client import Client, Consumer, Producer
print(*{"argparse", "asyncio", "crc32c", "email", "importlib.metadata", "ssl", "zipfile"} & sys.modules.keys())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "\n"
