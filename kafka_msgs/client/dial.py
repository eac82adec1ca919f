"""Connecting to broker addresses: name resolution, all IP addresses, backoff after failures.

The addresses of a host are tried as in RFC 8305 (happy eyeballs): families alternate, a new attempt starts every 250 ms
or when one has failed, and the first successful connection wins. The last successful address is tried first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, Generic, Protocol, TypeVar

from attrs import define

from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.dns import is_unknown_host
from kafka_msgs.client.flow import Flow, Future, Wait, sleep_until, wait_for
from kafka_msgs.client.network import Address, Endpoint, Network, connection_failure, is_loopback
from kafka_msgs.errors import ConnectionFailedError, DeadlineError

__all__ = ["Attempt", "Dialer"]

NEXT_ATTEMPT: Final = 0.25
"""Seconds until the next address is also tried (RFC 8305, "Connection Attempt Delay")."""
_MIN_ATTEMPT: Final = 1.0
"""Minimum number of seconds for one address."""

_FIRST_CONTACT: Final = 0.5
"""Seconds to retry failures before the first successful connection."""
_QUESTIONS: Final = {4: 3, 3: 0, 0: 4}
"""ApiVersions versions, each with the one to try after the connection ended. Version 5 names the expected broker."""

log: Final = logging.getLogger("kafka_msgs.client.connection")


class Attempt(Protocol):
    """A connection attempt to one IP address."""

    opening: Future[None]
    """Done when the connection is open or has failed."""

    def close(self) -> None:
        """End the connection."""
        ...


A = TypeVar("A", bound=Attempt)


@define
class _Record:
    """The connection history of one broker address."""

    worked: Endpoint | None = None
    failure: ConnectionFailedError | None = None
    """The last failure, or None after a success."""
    failures: int = 0
    not_before: float = 0.0
    silent_until: float = 0.0
    """The end of the time in which other brokers are preferred, because this one did not answer a request."""
    versions_question: int = 4
    resolving: Future[Sequence[Endpoint]] | None = None


class Dialer:
    """Makes connections, and records successes and failures of each address."""

    def __init__(self, network: Network, config: ClientConfig, random: Random) -> None:
        self._network = network
        self._config = config
        self._random = random
        self._records: dict[Address, _Record] = {}
        self._patience = min(config.connect_timeout, _FIRST_CONTACT)
        self._reached = False
        self._warned = False
        self._failing_since: float | None = None

    def dial(self, address: Address, start: Callable[[Endpoint], A], deadline: float) -> Flow[A]:
        """Return the first successful connection to an address. ``start`` begins a connection to one IP address.

        Raises ``ConnectionFailedError`` and ``DeadlineError``.
        """
        record = self._record(address)
        if record.not_before > self._network.now():
            yield from sleep_until(min(record.not_before, deadline))
        endpoints = yield from self._resolve(address, record, deadline)
        if record.worked is not None and record.worked in endpoints:
            endpoints = [record.worked, *(each for each in endpoints if each != record.worked)]
        seconds = max(_MIN_ATTEMPT, self._config.connect_timeout / len(endpoints))
        race = _Race(self._network, start, endpoints, seconds)
        made = yield from race.run(deadline)
        record.worked = race.winner
        return made

    def succeeded(self, address: Address) -> None:
        """Record that a connection to an address became ready."""
        record = self._record(address)
        if record.failure is not None:
            log.info("%s: connected again", address)
        record.failure, record.failures, record.not_before, record.silent_until = None, 0, 0.0, 0.0
        self._reached = True

    def failed(self, address: Address, error: ConnectionFailedError) -> None:
        """Record a failure. A new failure is logged as a warning; repetitions are not."""
        record = self._record(address)
        log.log(logging.WARNING if record.failure is None else logging.DEBUG, "cannot reach the broker at %s", error)
        now = self._network.now()
        self._failing_since = now if self._failing_since is None else self._failing_since
        pause = min(
            self._config.reconnect_backoff * 2.0 ** min(record.failures, 30), self._config.reconnect_backoff_max
        )
        record.failure, record.failures = error, record.failures + 1
        record.not_before = now + pause * self._random.uniform(0.8, 1.2)

    def unanswered(self, address: Address) -> None:
        """Record that a broker did not answer a request in time. Its other connections may hang as well."""
        self._record(address).silent_until = self._network.now() + self._config.request_timeout

    def is_silent(self, address: Address) -> bool:
        """Return whether a broker did not answer a request within the last ``request_timeout``."""
        record = self._records.get(address)
        return record is not None and record.silent_until > self._network.now()

    def last_failure(self, address: Address | None) -> ConnectionFailedError | None:
        """Return the last failure of an address, or None if the last connection succeeded."""
        record = None if address is None else self._records.get(address)
        return None if record is None else record.failure

    def ready_at(self, address: Address) -> float:
        """Return the earliest time to dial an address again."""
        record = self._records.get(address)
        return 0.0 if record is None else record.not_before

    def is_final(self, error: ConnectionFailedError) -> bool:
        """Return whether an operation should raise a failure instead of retrying.

        Before the first successful connection, transient failures end an operation after 0.5 seconds, because the
        configuration is probably wrong.
        """
        if not error.retriable:
            return True
        since = self._failing_since
        return not self._reached and since is not None and since + self._patience <= self._network.now()

    def versions_question(self, address: Address) -> int:
        """Return the version of the first ApiVersions request to an address."""
        return self._record(address).versions_question

    def step_down(self, address: Address) -> None:
        """Record a connection that ended on ApiVersions: some servers close it for versions that they do not support.

        The next request uses an older version; after the oldest version, the newest one is used again.
        """
        record = self._record(address)
        record.versions_question = _QUESTIONS[record.versions_question]

    def warn_of_credentials(self, address: Address) -> None:
        """Warn once about credentials that are sent unencrypted to another machine."""
        if self._config.tls is None and not self._warned and not is_loopback(address.host):
            self._warned = True
            log.warning("%s: credentials without TLS to another machine (set security.protocol=SASL_SSL)", address)

    def _record(self, address: Address) -> _Record:
        if len(self._records) > 2 * self._config.max_brokers:
            self._records.clear()
        return self._records.setdefault(address, _Record())

    def _resolve(self, address: Address, record: _Record, deadline: float) -> Flow[Sequence[Endpoint]]:
        """Resolve a host name. Callers share one lookup, so slow DNS blocks one thread per name."""
        if self._config.proxy is not None:
            return [(yield from self._through_proxy(self._config.proxy, address, deadline))]
        if record.resolving is None:
            record.resolving = self._network.resolve(address)
        resolving = record.resolving
        try:
            endpoints = yield from wait_for(resolving, deadline, f"the IP address of {address.host}")
        except OSError as error:
            if isinstance(error, DeadlineError):
                raise ConnectionFailedError(
                    address=str(address), step="resolve", reason="the name server does not answer"
                ) from None
            failure = connection_failure(address, "resolve", error)
            failure.retriable = not (is_unknown_host(error) and self._is_of_user(address))
            raise failure from None
        finally:
            if resolving.done and record.resolving is resolving:
                record.resolving = None
        if not endpoints:
            raise ConnectionFailedError(address=str(address), step="resolve", reason="the host name has no address")
        return endpoints

    def _through_proxy(self, url: str, address: Address, deadline: float) -> Flow[Endpoint]:
        """Connect through a proxy, which resolves the name. A socket that arrives too late is closed."""
        from kafka_msgs.client.proxy import connect_through

        connecting = self._network.offload(connect_through, url, address, self._config.connect_timeout)
        try:
            endpoint: Endpoint = yield from wait_for(connecting, deadline, f"a connection to {address}")
        except DeadlineError:
            raise
        except OSError as error:
            raise connection_failure(address, "connect", error) from None
        finally:
            if not connecting.done:
                connecting.add_done_callback(lambda: _close(connecting))
        return endpoint

    def _is_of_user(self, address: Address) -> bool:
        """Return whether an unknown name is probably a user error: the address never worked before."""
        return address in self._config.bootstrap_servers and not self._reached


class _Race(Generic[A]):
    """Connection attempts to the addresses of one host."""

    def __init__(
        self, network: Network, start: Callable[[Endpoint], A], endpoints: Sequence[Endpoint], seconds: float
    ) -> None:
        self._network = network
        self._start = start
        self._waiting = list(reversed(endpoints))
        self._seconds = seconds
        self._running: list[tuple[A, Endpoint, float]] = []
        self._failure: Exception | None = None
        self.winner: Endpoint | None = None

    def run(self, deadline: float) -> Flow[A]:
        """Return the first successful connection. Raises the last failure if there is none, and ``DeadlineError``."""
        made: A | None = None
        next_start = now = self._network.now()
        try:
            while True:
                made = self._settle(now)
                if made is not None:
                    return made
                if self._waiting and (not self._running or now >= next_start):
                    endpoint = self._waiting.pop()
                    self._running.append((self._start(endpoint), endpoint, now + self._seconds))
                    next_start = now + NEXT_ATTEMPT
                    continue
                if not self._running:
                    assert self._failure is not None
                    raise self._failure
                if now >= deadline:
                    raise DeadlineError(waiting_for="a connection", cause=self._failure)
                yield self._next(next_start, deadline)
                now = self._network.now()
        finally:
            for each, _, _ in self._running:
                if each is not made:
                    each.close()

    def _next(self, next_start: float, deadline: float) -> Wait:
        """Return the wait for the next event."""
        times = [deadline, *(limit for _, _, limit in self._running if self._waiting or len(self._running) > 1)]
        if self._waiting:
            times.append(next_start)
        return Wait([attempt.opening for attempt, _, _ in self._running], min(times))

    def _settle(self, now: float) -> A | None:
        """Return a successful attempt, or None. Drop failed and expired attempts."""
        alone = len(self._running) == 1 and not self._waiting
        for item in tuple(self._running):
            attempt, endpoint, limit = item
            failure: Any = attempt.opening.error if attempt.opening.done else None
            if attempt.opening.done and failure is None:
                self.winner = endpoint
                return attempt
            if failure is None and limit <= now and not alone:
                attempt.close()
                failure = ConnectionFailedError(
                    address=str(endpoint.address), step="connect", reason=f"{endpoint} does not answer"
                )
            if failure is not None:
                self._running.remove(item)
                self._failure = failure
        return None


def _close(connecting: Future[Endpoint]) -> None:
    if connecting.error is None and (connected := connecting.result().connected) is not None:
        connected.close()
