"""Request handlers. Each module handles a family of APIs and has a table ``HANDLERS``.

``MODULES`` lists all of them. A module may also have a function ``attach(cluster)``, which runs when a cluster is
created and registers, for example, listeners.
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
    "kafka_msgs.broker.handlers.delegation_tokens",
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
"""The handler modules, by their full names."""

_LOADED: Final = tuple(import_module(name) for name in MODULES)
"""Imported with this package, so that the first cluster starts as fast as later ones."""


def handler_modules() -> tuple[ModuleType, ...]:
    """Return the handler modules."""
    return _LOADED


def all_handlers() -> Iterator[ApiHandler[Any]]:
    """Yield all handlers."""
    for module in handler_modules():
        yield from module.HANDLERS
