"""Remote control of an embedded broker over HTTP, for tests in any language.

``docs/reference/remote-control.md`` describes the paths. Each request runs between two requests of Kafka clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from itertools import count, starmap
from typing import Any, Final, TypeVar

from attrs import asdict, frozen

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.broker import faults
from kafka_msgs.broker.client_metrics import PushedMetrics
from kafka_msgs.broker.clock import ManualClock
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.broker.endpoints.routes import HttpError, HttpRequest, HttpResponse, Route
from kafka_msgs.broker.faults import At, Change, Effect, Fault
from kafka_msgs.broker.object_parsing import check_names, parse_kind, parse_object, to_plain
from kafka_msgs.broker.request_log import LoggedRequest, RequestLog
from kafka_msgs.broker.server import BrokerServer
from kafka_msgs.codec.json_form import to_json
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import ClientMetricsError, OptionError, RequestRefusedError
from kafka_msgs.log.writers.small_files import uuid_text
from kafka_msgs.suggestions import no_such

__all__ = ["RemoteControl"]

T = TypeVar("T")

_KINDS: Final = {name: getattr(faults, name) for name in faults.__all__ if name not in ("Change", "Effect")}
_CHANGES: Final[dict[str, type[Change]]] = {name: each for name, each in _KINDS.items() if issubclass(each, Change)}
_EFFECTS: Final[dict[str, type[Effect]]] = {name: each for name, each in _KINDS.items() if issubclass(each, Effect)}
_KIND: Final = "kind"
_ADVANCE: Final = "advance_ms"
_SET: Final = "now_ms"
_MAX_REQUESTS: Final = 10_000
_DONE: Final = HttpResponse(status=HTTPStatus.NO_CONTENT)


class RemoteControl:
    """The handlers of a broker's control paths."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._faults: dict[int, Fault] = {}
        self._numbers = count(1)
        self._log: RequestLog | None = None

    def routes(self) -> Iterator[Route]:
        """Yield the routes."""
        yield Route("GET", "/", lambda _: self._run(_state))
        yield Route("GET", "/problems", lambda _: self._run(lambda cluster: [repr(each) for each in cluster.errors]))
        yield Route("POST", "/changes", self._change)
        yield Route("GET", "/faults", lambda _: list(starmap(_shown_fault, self._faults.items())))
        yield Route("POST", "/faults", self._add_fault)
        yield Route("DELETE", "/faults", self._clear_faults)
        yield Route("GET", "/faults/{number}", lambda request: _shown_fault(*self._fault(request)))
        yield Route("DELETE", "/faults/{number}", self._remove_fault)
        yield Route("POST", "/scripts", self._play)
        yield Route("GET", "/clock", self._clock)
        yield Route("POST", "/clock", self._move_clock)
        yield Route("GET", "/requests", self._list_requests)
        yield Route("POST", "/requests", self._log_requests)
        yield Route("DELETE", "/requests", self._stop_log)
        yield Route("GET", "/metrics", self._list_metrics)

    def _run(self, work: Callable[[Cluster], T]) -> T:
        """Call ``work`` with the cluster. A change that the cluster refuses is a conflict."""
        try:
            return self._server.run(work)
        except (OptionError, RequestRefusedError) as error:
            raise HttpError(HTTPStatus.CONFLICT, {"error": str(error)}) from None

    # Brokers and leaders

    def _change(self, request: HttpRequest) -> HttpResponse:
        change = parse_kind(_CHANGES, request.json, "change", _KIND)
        self._run(change.apply)
        return _DONE

    # Faults

    def _add_fault(self, request: HttpRequest) -> HttpResponse:
        fault = _parse_fault(request.json, "fault")
        number = next(self._numbers)
        self._faults[number] = self._run(lambda cluster: cluster.faults.add(fault))
        return HttpResponse(_shown_fault(number, fault), HTTPStatus.CREATED)

    def _remove_fault(self, request: HttpRequest) -> HttpResponse:
        number, fault = self._fault(request)
        del self._faults[number]
        self._run(lambda cluster: cluster.faults.remove(fault))
        return _DONE

    def _clear_faults(self, request: HttpRequest) -> HttpResponse:
        self._faults.clear()
        self._run(lambda cluster: cluster.faults.clear())
        return _DONE

    def _fault(self, request: HttpRequest) -> tuple[int, Fault]:
        text = request.path["number"]
        number = int(text) if text.isdecimal() and text.isascii() else 0
        if number not in self._faults:
            raise HttpError(HTTPStatus.NOT_FOUND, {"error": f"there is no fault {text}"})
        return number, self._faults[number]

    def _play(self, request: HttpRequest) -> HttpResponse:
        script = [_parse_line(each, f"script[{index}]") for index, each in enumerate(_list_of(request.json, "script"))]
        self._run(lambda cluster: cluster.faults.play(script))
        return _DONE

    # Time

    def _clock(self, request: HttpRequest) -> object:
        now = self._run(lambda cluster: cluster.now)
        return {_SET: now, "manual": isinstance(self._server.clock, ManualClock)}

    def _move_clock(self, request: HttpRequest) -> object:
        clock = self._server.clock
        if not isinstance(clock, ManualClock):
            reason = "the broker follows the system clock: start it with --clock manual, or send the change JumpClock"
            raise HttpError(HTTPStatus.CONFLICT, {"error": reason})
        move, ms = _one_of(request.json, {_ADVANCE: clock.advance, _SET: clock.set})
        move(ms)
        return self._clock(request)

    # Client metrics and requests

    def _list_metrics(self, request: HttpRequest) -> object:
        try:
            return [_shown_push(each) for each in self._run(lambda cluster: list(cluster.client_metrics))]
        except ClientMetricsError as error:
            raise HttpError(HTTPStatus.CONFLICT, {"error": str(error)}) from None

    def _log_requests(self, request: HttpRequest) -> HttpResponse:
        self._stop_log(request)
        self._log = RequestLog(self._run, _MAX_REQUESTS)
        return _DONE

    def _stop_log(self, request: HttpRequest) -> HttpResponse:
        log, self._log = self._log, None
        if log is not None:
            log.stop()
        return _DONE

    def _list_requests(self, request: HttpRequest) -> object:
        if self._log is None:
            raise HttpError(HTTPStatus.CONFLICT, {"error": "no requests are logged: send POST /requests first"})
        query: dict[str, Any] = request.query
        if "broker_id" in query:
            query["broker_id"] = _whole(query["broker_id"], "query", "broker_id")
        criteria = asdict(parse_object(_Query, query, "query"))
        return {"dropped": self._log.dropped, "requests": list(map(_shown_request, self._log.find(**criteria)))}


def _shown_push(pushed: PushedMetrics) -> object:
    names = ("broker_id", "client_id", "received_at", "is_last")
    return {
        **{name: getattr(pushed, name) for name in names},
        "client_instance_id": uuid_text(pushed.client_instance_id),
        "metrics": [asdict(each) for each in pushed.metrics],
    }


def _state(cluster: Cluster) -> object:
    return {
        "cluster_id": cluster.cluster_id,
        "controller": cluster.controller_id,
        "brokers": [
            {
                "id": broker.id,
                "running": broker.running,
                "listeners": {name: f"{host}:{port}" for name, (host, port) in broker.advertised.items()},
            }
            for broker in cluster.brokers.values()
        ],
        "topics": {
            topic.name: [
                {"leader": each.leader, "replicas": list(each.replicas), "isr": list(each.isr)}
                for each in topic.partitions
            ]
            for topic in cluster.image.topics.values()
        },
    }


@frozen(kw_only=True)
class _Criteria:
    """The attributes of a fault, except its effect."""

    api: str | None = None
    broker: int | None = None
    client_id: str | None = None
    topic: str | None = None
    after: int = 0
    times: int | None = 1


@frozen(kw_only=True)
class _Query:
    """The query parameters of logged requests."""

    api: str | None = None
    client_id: str | None = None
    topic: str | None = None
    broker_id: int | None = None
    error: ErrorCode | None = None


def _parse_fault(data: object, place: str) -> Fault:
    """Return the fault in a table, which has the attributes of ``Fault``, except ``matches``."""
    table = dict(data) if isinstance(data, Mapping) else {}
    if ("effect" in table) == ("change" in table):
        raise OptionError(source=place, option="effect", value=None, reason="one of effect and change is needed")
    key = "effect" if "effect" in table else "change"
    kinds: Mapping[str, Callable[..., Effect | Change]] = _EFFECTS if key == "effect" else _CHANGES
    effect = parse_kind(kinds, table.pop(key), f"{place}.{key}", _KIND)
    criteria = asdict(parse_object(_Criteria, table, place))
    api = criteria.pop("api")
    return Fault(effect, api=None if api is None else _parse_api(api, place), **criteria)


def _parse_api(name: str, place: str) -> ApiKey:
    """Return the API with a name such as ``OffsetCommit`` or ``OFFSET_COMMIT``."""
    wanted = name.replace("_", "").upper()
    for each in ApiKey:
        if each.name.replace("_", "") == wanted:
            return each
    raise OptionError(source=place, option="api", value=name, reason=no_such("API", name, ApiKey.__members__))


def _parse_line(data: object, place: str) -> At:
    """Return the line of a script: a table with ``ms``, and either ``fault`` or ``change``."""
    if not isinstance(data, Mapping):
        raise OptionError(source=place, option="line", value=data, reason="a table is needed")
    check_names(data, ("ms", "fault", "change"), place)
    ms = _whole(data.get("ms"), place, "ms")
    if "fault" in data and "change" not in data:
        return At(ms, _parse_fault(data["fault"], f"{place}.fault"))
    return At(ms, parse_kind(_CHANGES, data.get("change"), f"{place}.change", _KIND))


def _list_of(data: object, place: str) -> list[Any]:
    if not isinstance(data, list):
        raise OptionError(source=place, option="body", value=None, reason="a list is needed")
    return data


def _one_of(data: object, choices: Mapping[str, Callable[[int], None]]) -> tuple[Callable[[int], None], int]:
    """Return the function for the only entry of a table, and its value."""
    if not isinstance(data, Mapping) or len(data) != 1:
        raise OptionError(source="clock", option="body", value=None, reason=f"one of {', '.join(choices)} is needed")
    check_names(data, choices, "clock")
    ((name, value),) = data.items()
    return choices[name], _whole(value, "clock", name)


def _whole(value: object, place: str, option: str) -> int:
    if isinstance(value, str) and value.isdecimal() and value.isascii():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise OptionError(source=place, option=option, value=value, reason="a whole number is needed")
    return value


def _shown_fault(number: int, fault: Fault) -> object:
    key = "effect" if type(fault.effect).__name__ in _EFFECTS else "change"
    criteria = {name: getattr(fault, name) for name in ("broker", "client_id", "topic", "after", "times", "hits")}
    api = None if fault.api is None else _api_name(fault.api)
    effect = {_KIND: type(fault.effect).__name__, **to_plain(fault.effect)}
    return {"number": number, key: effect, "api": api, **criteria}


def _api_name(key: int) -> str:
    return ApiKey(key).name.title().replace("_", "")


def _shown_request(logged: LoggedRequest) -> object:
    response = logged.response
    names = ("broker_id", "connection", "client_id", "api", "version", "received_at", "took_ms")
    return {
        **{name: getattr(logged, name) for name in names},
        "topics": list(logged.topics),
        "errors": [error.name for error in logged.errors],
        "request": to_json(logged.request, logged.version),
        "response": None if response is None else to_json(response, logged.version),
    }
