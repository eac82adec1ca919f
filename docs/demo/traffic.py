"""Section: the traffic between clients and a broker, as tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from attrs import frozen

from docs.demo.presenter import Stage, columns, shorten
from docs.demo.recordings import Exchange, about
from kafka_msgs import ErrorCode, Struct, fields
from kafka_msgs.wire import RequestFrame, ResponseFrame, request_header_version, response_header_version

__all__ = ["show"]

_STORY = ("billing-console", "payments-transactional")
_CLIENT_WIDTH = 15


@frozen
class _Row:
    """A decoded exchange; ``errors`` are the names of the non-zero error codes in the response."""

    pair: Exchange
    client: str
    api: str
    errors: tuple[str, ...]


def show(stage: Stage) -> None:
    """Decode every recorded exchange, show some and count all."""
    made = about(stage.names["recordings"] / "client_traffic.jsonl")
    clients = ", ".join(f"{name} {version}" for name, version in made["clients"].items())
    stage.section(
        "Decode what clients and broker said",
        f"The recording holds what {clients} and a broker of Kafka {made['kafka']} said on {made['date']}, idle "
        "repetition left out. A response does not say what it answers; its request does.",
    )
    stage.run(
        """
        from kafka_msgs.wire import decode_request, decode_response
        requests = [decode_request(pair.request.payload) for pair in pairs]
        responses = [
            decode_response(pair.response.payload, pair.api_key, pair.api_version) for pair in pairs
        ]
        """
    )
    names = stage.names
    rows = [_row(*each) for each in zip(names["pairs"], names["requests"], names["responses"], strict=True)]
    _story(stage, rows)
    _totals(stage, rows)
    _back(stage)


def _row(pair: Exchange, request: RequestFrame, response: ResponseFrame) -> _Row:
    client = request.header.client_id or ""
    return _Row(pair, client, request.message.INFO.name.removesuffix("Request"), tuple(_errors(response.message)))


def _errors(item: Struct) -> Iterator[str]:
    """Yield the names of the errors in a message, including nested ones. An unknown code is its number."""
    for info in fields(type(item)):
        value: Any = getattr(item, info.attribute)
        if info.name.endswith("ErrorCode") and value:
            code = ErrorCode.from_code(value)
            yield code.name if code is not None else str(value)
        for each in value if info.is_array and value else (value,):
            if isinstance(each, Struct):
                yield from _errors(each)


def _story(stage: Stage, rows: list[_Row]) -> None:
    stage.say(
        "A consumer of the Java client joins a group, reads, commits and leaves; a producer of librdkafka runs two "
        "transactions. The first exchange of each kind, with the versions of message and headers, and sizes in bytes:"
    )
    numbers = ("ms", "conn", "v", "sent", "answer")
    shown = columns("ms", "conn", "client", "API", "v", "hdr", "sent", "answer", "errors", numbers=numbers)
    seen: set[tuple[object, ...]] = set()
    for row in rows:
        kind = row.client, row.api, row.errors
        if row.client in _STORY and kind not in seen:
            seen.add(kind)
            shown.add_row(*_cells(row))
    stage.table(shown)


def _cells(row: _Row) -> Iterator[str]:
    request, response = row.pair.request, row.pair.response
    key, version = row.pair.api_key, row.pair.api_version
    yield from (f"{request.ms:.0f}", str(request.connection), shorten(row.client, _CLIENT_WIDTH), row.api, str(version))
    yield f"{request_header_version(key, version)},{response_header_version(key, version)}"
    yield from (str(len(request.data)), str(len(response.data)), " ".join(row.errors))


def _totals(stage: Stage, rows: list[_Row]) -> None:
    apis: defaultdict[tuple[int, str], list[_Row]] = defaultdict(list)
    for row in rows:
        apis[row.pair.api_key, row.api].append(row)
    stage.names["apis"] = apis
    stage.say(f"All {len(rows)} exchanges, by API:")
    numbers = ("key", "count", "sent", "answer")
    shown = columns("key", "API", "versions", "count", "sent", "answer", "errors", numbers=numbers)
    for (key, api), group in sorted(apis.items()):
        versions = sorted({row.pair.api_version for row in group})
        shown.add_row(str(key), api, ", ".join(map(str, versions)), str(len(group)), *_sums(group))
    shown.add_section()
    shown.add_row("", f"{len(apis)} APIs", "", str(len(rows)), *_sums(rows)[:2], "")
    stage.table(shown)


def _sums(rows: list[_Row]) -> list[str]:
    errors = Counter(error for row in rows for error in row.errors)
    return [
        f"{sum(len(row.pair.request.data) for row in rows):,}",
        f"{sum(len(row.pair.response.data) for row in rows):,}",
        " ".join(f"{count} {name}" for name, count in errors.items()),
    ]


def _back(stage: Stage) -> None:
    stage.say(
        "Nothing is lost: every frame is encoded again from its values. A decoded frame holds the bytes that it came "
        "from; ``evolve`` drops them."
    )
    stage.run(
        """
        from attrs import evolve
        same = 0
        for pair, request, response in zip(pairs, requests, responses):
            same += evolve(request).encode() == pair.request.payload
            same += evolve(response).encode() == pair.response.payload
        """
    )
    stage.say(f"{stage.names['same']} of {2 * len(stage.names['pairs'])} frames came out byte for byte.")
