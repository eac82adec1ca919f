"""Daemon threads for blocking work, so that DNS, token endpoints and password hashing never delay heartbeats.

Threads of ``concurrent.futures`` would delay the exit of the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from kafka_msgs.client.flow import Future
from kafka_msgs.errors import ClientBrokenError

__all__ = ["call_in_thread"]


def call_in_thread(
    function: Callable[..., Any], arguments: tuple[Any, ...], post: Callable[[Callable[[], object]], object]
) -> Future[Any]:
    """Call a function in a new thread, and return its result. ``post`` runs a function in the thread of the flows."""
    pending: Future[Any] = Future()

    def work() -> None:
        try:
            finish = partial(pending.resolve, function(*arguments))
        except BaseException as failure:
            error = failure if isinstance(failure, Exception) else ClientBrokenError(cause=failure)
            finish = partial(pending.fail, error)
        try:
            post(finish)
        except Exception:
            return  # the client was closed meanwhile, so the result is not needed

    threading.Thread(target=work, name="kafka-msgs-helper", daemon=True).start()
    return pending
