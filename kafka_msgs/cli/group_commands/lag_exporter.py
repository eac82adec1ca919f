"""The exporter of ``kafka-msgs lag --listen``: lags of a cluster as Prometheus metrics over HTTP.

A refresh queries the cluster at a fixed interval; requests return its result. They never query the cluster, so many
scrapers cost no more than one. After a failed refresh, the metrics of groups are absent, not old.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

import click
from attrs import define

from kafka_msgs.broker.endpoints.http_server import HttpServer
from kafka_msgs.broker.endpoints.routes import HttpRequest, HttpResponse, Route, Router, TextResponse
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.report.model import Metric, Sample, metric
from kafka_msgs.report.prometheus import metrics_text
from kafka_msgs.report.sections.lag_metrics import lag_metrics

__all__ = ["LagExporter", "serve"]

_LOG: Final = logging.getLogger(__name__)
_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_MISSED: Final = 3
"""The number of intervals after which an exporter without a new result is unhealthy."""

Rows = Sequence[dict[str, Any]]


@define
class LagExporter:
    """The result of the last refresh.

    ``collect`` returns rows, and the problems of parts that failed. ``interval`` is in seconds, and ``cluster`` is the
    label of all metrics of groups.
    """

    collect: Callable[[], tuple[Rows, Sequence[str]]]
    cluster: str
    interval: float
    _groups: str = ""
    _failure: str | None = "the first refresh has not finished"
    _problems: tuple[str, ...] = ()
    _failures: int = 0
    _took: float | None = None
    _succeeded_at: float | None = None
    _due: float = float("inf")

    def refresh(self) -> None:
        """Query the cluster. A failure becomes the state of the exporter and a log record."""
        started = time.monotonic()
        try:
            rows, problems = self.collect()
        except (KafkaMsgsError, click.ClickException) as error:
            reason = error.message if isinstance(error, click.ClickException) else str(error)
            self._groups, self._failure, self._problems = "", reason or type(error).__name__, ()
            self._failures += 1
            _LOG.warning("the refresh failed: %s", self._failure)
        else:
            self._groups = metrics_text(lag_metrics(rows), {"cluster": self.cluster})
            self._failure, self._problems, self._succeeded_at = None, tuple(problems), time.time()
            for problem in problems:
                _LOG.warning("the refresh is incomplete: %s", problem)
        now = time.monotonic()
        self._took, self._due = now - started, now + _MISSED * self.interval

    @property
    def failure(self) -> str | None:
        """The reason why the exporter is unhealthy, or None."""
        if self._failure is None and time.monotonic() > self._due:
            return f"no refresh has finished for {_MISSED} intervals"
        return self._failure

    def routes(self) -> list[Route]:
        """Return the paths of the exporter."""
        return [Route("GET", "/metrics", self._metrics), Route("GET", "/healthz", self._health)]

    def _metrics(self, request: HttpRequest) -> HttpResponse:
        return TextResponse(metrics_text(self._own()) + self._groups, content_type=_CONTENT_TYPE)

    def _health(self, request: HttpRequest) -> HttpResponse:
        failure = self.failure
        value = {"healthy": failure is None, "reason": failure, "problems": list(self._problems)}
        return HttpResponse(value, HTTPStatus.OK if failure is None else HTTPStatus.SERVICE_UNAVAILABLE)

    def _own(self) -> list[Metric]:
        values = {
            "up": int(self.failure is None),
            "problems": len(self._problems),
            "failed_refreshes_total": self._failures,
            "refresh_seconds": self._took,
            "last_refresh_timestamp_seconds": self._succeeded_at,
        }
        labels = {"cluster": self.cluster}
        return [
            metric(f"kafka_msgs_exporter_{name}", [Sample(labels, value)])
            for name, value in values.items()
            if value is not None
        ]


def serve(exporter: LagExporter, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve the exporter until the process receives SIGINT or SIGTERM. ``started`` receives its URL.

    Raises ``BrokerStartError`` if the address is unavailable, and ``MissingExtraError``.
    """
    with suppress(asyncio.CancelledError):
        asyncio.run(_serve(exporter, host, port, started))


async def _serve(exporter: LagExporter, host: str, port: int, started: Callable[[str], None]) -> None:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        # An exception from a signal handler could interrupt any callback, such as the end of a connection.
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    server = HttpServer(host, port, Router(exporter.routes(), _report_bug).respond)
    try:
        started(server.url)
        due = time.monotonic()
        while True:
            await asyncio.to_thread(exporter.refresh)
            due = max(due + exporter.interval, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
    finally:
        await server.close()


def _report_bug(error: Exception) -> None:
    _LOG.error("a request failed: %r", error)
