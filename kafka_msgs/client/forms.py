"""The two forms of what works over a client: one that blocks and one for asyncio, with one description of each method.

A class of methods (``ConsumerMethods``, ...) is written once, on ``Form``. A method that has to wait is an
``Operation``: it is written as a piece of logic (``Steps``), and each form runs it in its own way. A method that never
waits is a plain one. The public classes join the methods with a form, and mostly have nothing else:

    class Consumer(ConsumerMethods[Client], BlockingForm): ...
    class AsyncConsumer(ConsumerMethods[AsyncClient], AsyncForm): ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from kafka_msgs.client.client import AsyncClient, Client
from kafka_msgs.client.contexts import AsyncContext, BlockingContext
from kafka_msgs.client.servers import CLIENT, Keywords, check_keywords, settings_of
from kafka_msgs.client.waiting import Steps

__all__ = ["AsyncForm", "BlockingForm", "Form", "LastOperation", "Operation"]

C = TypeVar("C", Client, AsyncClient)
P = ParamSpec("P")
T = TypeVar("T")


class Form(Generic[C]):
    """What both forms have: a client, which may be their own."""

    client: C
    _client_class: type[C]
    _owns_client: bool

    def _take_client(self, servers: Any, settings: Mapping[str, Any], keywords: Keywords = CLIENT) -> Any:
        """Take over the client that is given (``C`` or ``Servers``), or make one; return the config of the form.

        Raises ``OptionError`` for an unknown keyword, and for a keyword of a client beside a given client.
        """
        self._owns_client = not isinstance(servers, self._client_class)
        if isinstance(servers, self._client_class):
            check_keywords(settings, keywords, keywords.names)
            self.client = servers
            return keywords.config and keywords.config(**settings)
        config, found = settings_of(servers, settings, keywords)
        own = keywords.config and keywords.config(**found)
        self.client = self._client_class(config)
        return own


class BlockingForm(Form[Client], BlockingContext):
    """The form for programs that block."""

    _client_class = Client

    def _run(self, steps: Steps[T]) -> T:
        if self.client.is_threaded:
            return self.client.network.run(steps, serves=True)  # type: ignore[no-any-return]
        return self.client.run(steps)

    def _do(self, function: Callable[[], T]) -> T:
        return self._run(_calling(function)) if self.client.is_threaded else function()

    def _run_last(self, steps: Steps[T]) -> T:
        try:
            return self._run(steps)
        finally:
            if self._owns_client:
                self.client.close()


class AsyncForm(Form[AsyncClient], AsyncContext):
    """The form for asyncio."""

    _client_class = AsyncClient

    def _run(self, steps: Steps[T]) -> Coroutine[Any, Any, T]:
        return self.client.run(steps)

    def _do(self, function: Callable[[], T]) -> T:
        return function()

    async def _run_last(self, steps: Steps[T]) -> T:
        try:
            return await self.client.run(steps)
        finally:
            if self._owns_client:
                await self.client.close()


class Operation(Generic[P, T]):
    """Makes a piece of logic a method of both forms, with the same arguments: one that blocks, or a coroutine function.

    It is used as a decorator of a method that returns ``Steps[T]``. Where a form blocks, the method returns the ``T``;
    on asyncio it is awaited for the ``T``. Type checkers know both. It is a descriptor, as functions are.
    """

    def __init__(self, logic: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self._logic = logic
        self.__doc__ = logic.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.__name__ = name

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """The signature with the value that callers get, for ``help`` and editors."""
        signature = inspect.signature(self._logic)
        value = str(signature.return_annotation).removeprefix("Steps[").removesuffix("]")
        itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return signature.replace(parameters=[itself, *_parameters(signature)], return_annotation=value)

    @overload
    def __get__(self, form: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, form: BlockingForm, owner: type[Any]) -> Callable[P, T]: ...
    @overload
    def __get__(self, form: AsyncForm, owner: type[Any]) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, form: BlockingForm | AsyncForm | None, owner: type[Any]) -> Any:
        if form is None:
            return self

        @wraps(self, updated=())
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return self(form, *args, **kwargs)

        vars(method)["__signature__"] = self.__signature__.replace(parameters=_parameters(self.__signature__))
        return method

    def __call__(self, form: BlockingForm | AsyncForm, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return form._run(self._logic(form, *args, **kwargs))


class LastOperation(Operation[P, T]):
    """An operation after which a form is not used any more: its client is closed, if it is the form's own."""

    def __call__(self, form: BlockingForm | AsyncForm, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return form._run_last(self._logic(form, *args, **kwargs))


def _calling(function: Callable[[], T]) -> Steps[T]:
    yield from ()
    return function()


def _parameters(signature: inspect.Signature) -> list[inspect.Parameter]:
    """Return the parameters that callers see: all but the first one."""
    return list(signature.parameters.values())[1:]
