"""Exchanges and faults of captures and of a proxy, as rows and as lines.

This module defines the names of the facts, and the part of them on a line of live output.
"""

from __future__ import annotations

from typing import Any

from kafka_msgs.capture import CaptureFault, Exchange
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.cli.render.nested_messages import readable_json
from kafka_msgs.cli.render.output import one_line
from kafka_msgs.cli.render.rows import Row
from kafka_msgs.cli.render.timestamps import iso_of_us

__all__ = ["exchange_facts", "fault_facts", "item_row", "item_text", "message_facts"]


def item_row(item: Item, *, bodies: bool) -> Row:
    """Return an exchange or a fault as a row; ``bodies`` adds the decoded messages to an exchange."""
    if isinstance(item, CaptureFault):
        return Row("fault", fault_facts(item))
    return Row("exchange", exchange_facts(item) | (message_facts(item) if bodies else {}))


def exchange_facts(exchange: Exchange) -> dict[str, Any]:
    """Return the relevant facts of an exchange, without its messages."""
    response = exchange.response
    return {
        "packet": exchange.request.packet,
        "requestAt": exchange.request.time_us,
        "requestTime": iso_of_us(exchange.request.time_us),
        "client": str(exchange.connection.client),
        "server": str(exchange.connection.server),
        "api": exchange.api or exchange.api_key,
        "version": exchange.version,
        "correlationId": exchange.correlation_id,
        "clientId": exchange.client_id,
        "latencyUs": exchange.latency_us,
        "requestSize": exchange.request.size,
        "responseSize": None if response is None else response.size,
        "errors": {error.path: error.name or error.code for error in exchange.errors},
        "problem": "; ".join(problem.reason for problem in exchange.problems) or None,
    }


def message_facts(exchange: Exchange) -> dict[str, Any]:
    """Return the messages with readable forms of their contents; null for a message that is missing or not decoded."""
    bodies: dict[str, Any] = {"request": None, "response": None}
    if exchange.request_json is not None:
        bodies["request"] = readable_json(exchange.request_message, exchange.version)
    if exchange.response_json is not None and exchange.response_message is not None:
        bodies["response"] = readable_json(exchange.response_message, exchange.response_version)
    return bodies


def fault_facts(fault: CaptureFault) -> dict[str, Any]:
    """Return the facts of a fault."""
    return {
        "packet": fault.packet,
        "at": fault.at,
        "time": iso_of_us(fault.at),
        "connection": None if fault.connection is None else fault.connection.ends_of(fault.direction),
        "fault": fault.kind.value,
        "size": fault.size,
        "reason": fault.reason,
    }


def item_text(item: Item) -> str:
    """Return an exchange or a fault as one line: time, client, api and version, latency, sizes, and errors."""
    if isinstance(item, CaptureFault):
        return one_line(f"{_clock(item.at)}  {item.kind.value}: {item}")
    response = item.response
    latency = "no answer" if item.latency_us is None else f"{item.latency_us / 1000:.3f} ms"
    sizes = f"{item.request.size} > {'-' if response is None else response.size} B"
    wrong = [f"{error.path}={error.name or error.code}" for error in item.errors]
    wrong += [problem.reason for problem in item.problems]
    api = f"{item.api or item.api_key} v{item.version}"
    who = f"{item.connection.number:>4}  {item.client_id or '-'}"
    line = f"{_clock(item.request.time_us)} {who:<24} {api:<28} {latency:>12}  {sizes}"
    return one_line("  ".join((line, *wrong)))


def _clock(at: int | None) -> str:
    return (iso_of_us(at) or "")[11:26]
