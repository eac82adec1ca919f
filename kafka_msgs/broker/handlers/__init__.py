"""The handlers of requests. Each module here has a family of apis, and a table ``HANDLERS``.

``MODULES`` is the one list of all of them. A module may also have ``attach(cluster)``, which is called when a cluster
is made: it adds listeners and the like.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from kafka_msgs.broker.server_call import ApiHandler

__all__ = ["MODULES", "all_handlers", "handler_modules"]

MODULES: Final = (
    "kafka_msgs.broker.handlers.acls",
    "kafka_msgs.broker.handlers.api_versions",
    "kafka_msgs.broker.handlers.client_quotas",
    "kafka_msgs.broker.handlers.cluster",
    "kafka_msgs.broker.handlers.configs",
    "kafka_msgs.broker.handlers.fetch",
    "kafka_msgs.broker.handlers.find_coordinator",
    "kafka_msgs.broker.handlers.group_offsets",
    "kafka_msgs.broker.handlers.groups",
    "kafka_msgs.broker.handlers.log_dirs",
    "kafka_msgs.broker.handlers.metadata",
    "kafka_msgs.broker.handlers.list_offsets",
    "kafka_msgs.broker.handlers.produce",
    "kafka_msgs.broker.handlers.reassignments",
    "kafka_msgs.broker.handlers.sasl",
    "kafka_msgs.broker.handlers.scram_credentials",
    "kafka_msgs.broker.handlers.share_acknowledgements",
    "kafka_msgs.broker.handlers.share_fetch",
    "kafka_msgs.broker.handlers.share_offsets",
    "kafka_msgs.broker.handlers.share_state",
    "kafka_msgs.broker.handlers.streams_groups",
    "kafka_msgs.broker.handlers.telemetry",
    "kafka_msgs.broker.handlers.topics",
    "kafka_msgs.broker.handlers.transaction_markers",
    "kafka_msgs.broker.handlers.transactions",
)
"""The modules with handlers, by their full names."""

_LOADED: Final = tuple(import_module(name) for name in MODULES)
"""They are imported with this package, so that the first cluster is ready as soon as later ones."""


def handler_modules() -> tuple[ModuleType, ...]:
    """Return the modules with handlers."""
    return _LOADED


def all_handlers() -> Iterator[ApiHandler[Any]]:
    """Yield all handlers."""
    for module in handler_modules():
        yield from module.HANDLERS
