"""``MessageCatalog``: a set of message classes with lookups by API key and by name.

The release's catalog is the default of every function with a ``catalog`` argument. With a catalog of other classes,
such as classes compiled from the definitions of an older release, you can read the traffic of that release. Drafts are
not in a catalog unless you add them: a draft and a shipped message may have the same API key and differ on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Final, Literal, overload

from kafka_msgs.errors import UnknownMessageError, UnknownNameError
from kafka_msgs.message import Message, Request, Response
from kafka_msgs.schema import Kind
from kafka_msgs.suggestions import similar_names

__all__ = ["CLIENTS", "MessageCatalog", "iter_message_classes", "message_by_name", "message_class", "release_catalog"]

CLIENTS: Final = "clients"
"""The origin of requests and responses, the headers and the consumer protocol: Kafka's artifact ``kafka-clients``."""

_Number = tuple[str, str, int]
"""Origin, kind and api key."""


class MessageCatalog:
    """Message classes by API key and by name; immutable.

    ``numbers`` maps (origin, kind, API key) to names. ``names`` lists all names, and ``load`` returns the class of a
    name. ``fallback`` is used for an API key, a name, or a version of a message that this catalog does not have. This
    combines classes of several releases, each with separate versions.
    """

    def __init__(
        self,
        numbers: Mapping[_Number, str],
        names: Collection[str],
        load: Callable[[str], type[Message]],
        *,
        fallback: MessageCatalog | None = None,
    ) -> None:
        self._numbers = numbers
        self._own = names
        self._load = load
        self._fallback = fallback

    @classmethod
    def of_package(cls, package: ModuleType, *, fallback: MessageCatalog | None = None) -> MessageCatalog:
        """Return the catalog of a generated package. Classes are imported lazily.

        Draft messages can only be looked up by name.
        """

        def load(name: str) -> type[Message]:
            found: type[Message] = getattr(package, name)
            return found

        return cls(package.API_KEYS, package.__all__, load, fallback=fallback)

    @classmethod
    def of(
        cls, classes: Iterable[type[Message]], *, origin: str = CLIENTS, fallback: MessageCatalog | None = None
    ) -> MessageCatalog:
        """Return the catalog of classes of one origin, such as the result of ``compile_schemas``.

        If two classes have the same name, or the same kind and API key, the later one wins.
        """
        named = {each.INFO.name: each for each in classes}
        numbers: dict[_Number, str] = {
            (origin, each.INFO.kind, each.INFO.api_key): name
            for name, each in named.items()
            if each.INFO.api_key is not None
        }
        return cls(numbers, named, named.__getitem__, fallback=fallback)

    @overload
    def message_class(
        self, api_key: int, kind: Literal["request"], version: int | None = None, *, origin: str = CLIENTS
    ) -> type[Request[Response]]: ...

    @overload
    def message_class(
        self, api_key: int, kind: Literal["response"], version: int | None = None, *, origin: str = CLIENTS
    ) -> type[Response]: ...

    @overload
    def message_class(
        self, api_key: int, kind: Kind, version: int | None = None, *, origin: str = CLIENTS
    ) -> type[Message]: ...

    def message_class(
        self, api_key: int, kind: Kind, version: int | None = None, *, origin: str = CLIENTS
    ) -> type[Message]:
        """Return the class with an API key, like ``find``. Raises ``UnknownMessageError`` if no such class exists."""
        found = self.find(api_key, kind, version, origin=origin)
        if found is None:
            raise UnknownMessageError(api_key=api_key, kind=kind, origin=origin)
        return found

    @overload
    def find(
        self, api_key: int, kind: Literal["request"], version: int | None = None, *, origin: str = CLIENTS
    ) -> type[Request[Response]] | None: ...

    @overload
    def find(
        self, api_key: int, kind: Literal["response"], version: int | None = None, *, origin: str = CLIENTS
    ) -> type[Response] | None: ...

    @overload
    def find(
        self, api_key: int, kind: Kind, version: int | None = None, *, origin: str = CLIENTS
    ) -> type[Message] | None: ...

    def find(
        self, api_key: int, kind: Kind, version: int | None = None, *, origin: str = CLIENTS
    ) -> type[Message] | None:
        """Return the class with an API key, such as 9 and ``"request"``, or None if no class has it.

        ``kind`` is the type of the definition. Requests and responses have the origin ``clients``. The numbers of
        ``metadata``, ``coordinator-key`` and ``coordinator-value`` messages have a meaning only within their origin,
        such as ``metadata``, ``storage`` or ``group-coordinator``. With ``version``, a class that has this version is
        preferred.
        """
        name = self._numbers.get((origin, kind, api_key))
        own = None if name is None else self._load(name)
        if own and _has(own, version):
            return own
        other = None if self._fallback is None else self._fallback.find(api_key, kind, version, origin=origin)
        return own if own and not (other and _has(other, version)) else other

    def versions(self, api_key: int, kind: str) -> tuple[int, ...]:
        """Return all versions of the request or response with an API key, in this catalog and its fallback."""
        name = self._numbers.get((CLIENTS, kind, api_key))
        own = () if name is None else self._load(name).INFO.versions
        return tuple(sorted({*own, *(self._fallback.versions(api_key, kind) if self._fallback else ())}))

    def by_name(self, name: str) -> type[Message]:
        """Return the class with a name such as ``OffsetFetchRequest``; raises ``UnknownNameError``."""
        if name in self._own:
            return self._load(name)
        if self._fallback is not None and name in self._fallback.names():
            return self._fallback.by_name(name)
        raise UnknownNameError(name=name, near=similar_names(name, self.names()))

    def names(self) -> frozenset[str]:
        """Return the names of all messages, including the fallback's messages."""
        return frozenset(self._own) | (self._fallback.names() if self._fallback else frozenset())

    def __iter__(self) -> Iterator[type[Message]]:
        """Yield every class, by name. If the fallback has the same name, the class of this catalog is yielded."""
        return (self.by_name(name) for name in sorted(self.names()))


def _has(cls: type[Message], version: int | None) -> bool:
    return version is None or version in cls.INFO.versions


@cache
def release_catalog() -> MessageCatalog:
    """Return the catalog of the release: all of ``kafka_msgs.messages``. Classes are imported lazily."""
    from kafka_msgs import messages

    return MessageCatalog.of_package(messages)


@overload
def message_class(api_key: int, kind: Literal["request"], origin: str = CLIENTS) -> type[Request[Response]]: ...


@overload
def message_class(api_key: int, kind: Literal["response"], origin: str = CLIENTS) -> type[Response]: ...


@overload
def message_class(api_key: int, kind: Kind, origin: str = CLIENTS) -> type[Message]: ...


def message_class(api_key: int, kind: Kind, origin: str = CLIENTS) -> type[Message]:
    """Return the release's class with an API key; see ``MessageCatalog.message_class``."""
    return release_catalog().message_class(api_key, kind, origin=origin)


def message_by_name(name: str) -> type[Message]:
    """Return the release's class with a name such as ``OffsetFetchRequest``; raises ``UnknownNameError``."""
    return release_catalog().by_name(name)


def iter_message_classes() -> Iterator[type[Message]]:
    """Yield every message class of the release, by name; this imports all of their modules."""
    return iter(release_catalog())
