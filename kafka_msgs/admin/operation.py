"""``Operation``: one body of logic as a method of both shells, the one that blocks and the one for asyncio.

The logic is a function from a ``ClientCore`` and its arguments to ``Steps``. As an attribute of ``Admin`` it is a
method that blocks, as one of ``AsyncAdmin`` a coroutine function, with the same arguments. Type checkers know both.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

if TYPE_CHECKING:
    from kafka_msgs.client.client import AsyncClient, Client
    from kafka_msgs.client.core import ClientCore
    from kafka_msgs.client.waiting import Steps

__all__ = ["Operation"]

P = ParamSpec("P")
T = TypeVar("T")


class Blocking(Protocol):
    """A shell that blocks."""

    client: Client


class Async(Protocol):
    """A shell for asyncio."""

    client: AsyncClient


class Operation(Generic[P, T]):
    """A descriptor that runs a piece of logic with the client of the shell that it is called on."""

    def __init__(self, logic: Callable[Concatenate[ClientCore, P], Steps[T]]) -> None:
        self.logic = logic
        self.__name__ = logic.__name__
        self.__doc__ = logic.__doc__

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """The signature without the core, for ``help`` and editors."""
        signature = inspect.signature(self.logic)
        value = str(signature.return_annotation).removeprefix("Steps[").removesuffix("]")
        return signature.replace(parameters=tuple(signature.parameters.values())[1:], return_annotation=value)

    @overload
    def __get__(self, shell: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, shell: Blocking, owner: type[Any]) -> Callable[P, T]: ...
    @overload
    def __get__(self, shell: Async, owner: type[Any]) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, shell: Blocking | Async | None, owner: type[Any]) -> Any:
        if shell is None:
            return self
        client = shell.client

        @wraps(self.logic)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.run(self.logic(client.core, *args, **kwargs))

        vars(method)["__signature__"] = self.__signature__
        return method
