"""Request dispatch, with the APIs and versions of the cluster and of each Kafka release, and failed handlers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from kafka_msgs.broker.broker_interface import BrokerInterface
from kafka_msgs.broker.config import BrokerConfig
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import OptionError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.versions import NONE, VersionRange

__all__ = ["ApiDispatcher"]


def versions_of_release(release: str) -> Mapping[int, VersionRange]:
    """Return the versions by API key; an API that the release does not support is ``NONE``.

    ``release`` is, for example, ``"3.7"``; a third number is ignored. Raises ``OptionError`` for an unknown release.
    """
    name = ".".join(release.split(".")[:2])
    table = _table()
    if name not in table:
        reason = f"known are {', '.join(table)}"
        raise OptionError(source="BrokerConfig", option="release", value=release, reason=reason)
    return table[name]


def releases() -> tuple[str, ...]:
    """Return the supported releases, oldest first."""
    return tuple(_table())


@cache
def _table() -> dict[str, Mapping[int, VersionRange]]:
    text = (files("kafka_msgs.broker") / "releases.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines()[1:])
    return {release: defaultdict(lambda: NONE, map(_entry, apis.split())) for release, apis in rows}


def _entry(text: str) -> tuple[int, VersionRange]:
    api_key, _, versions = text.partition(":")
    return int(api_key), VersionRange.parse(versions)


class ApiDispatcher:
    """The handlers by API key, the supported versions of each API, and the versions listed in ApiVersions responses.

    ``config.release`` limits the listed versions to a Kafka release. The default None selects the latest release
    without its unstable versions. Raises ``OptionError`` for an unknown release.
    """

    def __init__(self, handlers: Iterable[ApiHandler[Any]], config: BrokerConfig) -> None:
        self._handlers: dict[int, ApiHandler[Any]] = {each.request.INFO.api_key or 0: each for each in handlers}
        all_of_them = {key: handler.request.INFO.versions for key, handler in self._handlers.items()}
        pinned = versions_of_release(config.release or releases()[-1])
        self._answered: Mapping[int, VersionRange] = {
            key: shared
            for key, versions in sorted(all_of_them.items())
            if not (shared := versions.intersect(pinned[key])).empty
        }
        self.offered: Mapping[int, VersionRange] = {
            key: versions
            for key, versions in self._answered.items()
            if (flag := self._handlers[key].advertised_with) is None or getattr(config, flag)
        }

    def answers(self, api_key: int, version: int) -> bool:
        """Return whether the cluster supports an API at a version."""
        return api_key in self._answered and version in self._answered[api_key]

    def handler(self, api_key: int) -> ApiHandler[Any]:
        """Return the handler of a supported API."""
        return self._handlers[api_key]

    def run(self, cluster: BrokerInterface, call: ServerCall[Any]) -> None:
        """Pass a call to its handler.

        An ``ApiError`` becomes an error response. Any other exception is a bug in the broker: it is added to
        ``Cluster.errors`` and the client receives UNKNOWN_SERVER_ERROR. A client that must still authenticate is
        disconnected, as in Kafka.
        """
        handler = self._handlers[call.api_key]
        if not handler.allowed_unauthenticated and not call.session.is_authenticated(cluster.now):
            call.disconnect()
            return
        call.exempt, call.began_at = handler.exempt, cluster.stopwatch()
        try:
            handler.run(call)
        except ApiError as error:
            call.fail(error.error, error.message)
        except Exception as error:
            cluster.record_error(error)
            if not call.responded:
                call.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
        finally:
            call.ended_at = cluster.stopwatch()
