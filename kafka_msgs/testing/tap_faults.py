"""Faults of the embedded broker's vocabulary in front of a real cluster: an addon of the proxy.

Effects on requests and responses are the values of ``kafka_msgs.broker.faults``. Changes of the cluster, such as moved
leaders, are impossible in a proxy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from attrs import frozen

from kafka_msgs.broker.faults import (
    Delay,
    Disconnect,
    DropResponse,
    Effect,
    Fail,
    Fault,
    NeverRespond,
    SwapResponses,
    TrickleResponse,
    TruncateResponse,
    WrongCorrelationId,
    WrongFrameSize,
)
from kafka_msgs.broker.faults.request_effects import ResponseEffect
from kafka_msgs.broker.server_call import MangledResponse
from kafka_msgs.catalog import iter_message_classes
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import OptionError
from kafka_msgs.tap import Addon, TapExchange
from kafka_msgs.wire import join_frames

__all__ = ["FaultAddon", "parse_fault"]

_Damage = Callable[[bytes], MangledResponse]


@frozen
class _Session:
    """The connection of a call. A proxy does not know the id of its broker."""

    broker_id: int | None = None


@frozen
class _Call:
    """The attributes of a call that criteria of a fault use."""

    api_key: int
    client_id: str | None
    session: _Session = _Session()


class FaultAddon(Addon):
    """An addon that applies faults. If several faults match a request, the first one applies.

    Raises ``OptionError`` for a change of the cluster, and for the criteria ``broker`` and ``matches``.
    """

    def __init__(self, faults: Sequence[Fault]) -> None:
        for fault in faults:
            if not isinstance(fault.effect, Effect) or fault.broker is not None or fault.matches is not None:
                reason = "a proxy applies effects on requests and responses, by API and client id"
                raise OptionError(source="FaultAddon", option="faults", value=fault, reason=reason)
        self.faults = tuple(faults)
        self._damages = any(hasattr(fault.effect, "damage") for fault in faults)
        self._next: dict[int, _Damage] = {}

    def wants(self, hook: Literal["request", "response"], api_key: int) -> bool:
        """Return whether a fault may affect the next request of an API, or any response."""
        if hook == "response":
            return self._damages
        return any(not fault.over and fault.api in (None, api_key) for fault in self.faults)

    def closed(self, connection: Any) -> None:
        """Forget a response that waits for the next one of its connection."""
        self._next.pop(connection.number, None)

    def request(self, exchange: TapExchange) -> None:
        """Apply the first fault that matches a request."""
        call: Any = _Call(exchange.api_key, exchange.client_id)
        for fault in self.faults:
            if fault.hit(call):
                _begin(cast("Effect", fault.effect), exchange)
                return

    def response(self, exchange: TapExchange) -> None:
        """Damage a response, if its request was hit or the response before it waits for this one."""
        damage = self._next.pop(exchange.connection.number, None) or exchange.state.get("damage")
        if damage is None or exchange.response_payload is None:
            return
        mangled: MangledResponse = damage(join_frames(exchange.response_payload))
        exchange.send_bytes(mangled.pieces, interval=mangled.interval_ms / 1000)
        if mangled.then is not None:
            self._next[exchange.connection.number] = mangled.then
        if mangled.closes:
            exchange.close(reset=mangled.resets)


def _begin(effect: Effect, exchange: TapExchange) -> None:
    if isinstance(effect, Fail):
        exchange.fail(effect.error, effect.message)
    elif isinstance(effect, Delay):
        exchange.delay(effect.ms / 1000)
    elif isinstance(effect, NeverRespond):
        exchange.drop()
    elif isinstance(effect, Disconnect):
        exchange.close(reset=effect.reset)
    elif isinstance(effect, ResponseEffect):
        exchange.state["damage"] = effect.damage


def _error(text: str) -> Fail:
    return Fail(ErrorCode[text])


def _trickle(text: str) -> TrickleResponse:
    size, _, every_ms = text.partition("/")
    return TrickleResponse(size=int(size), every_ms=int(every_ms))


_EFFECTS: Final[Mapping[str, Callable[[str], Effect]]] = {
    "fail": _error,
    "delay": lambda text: Delay(int(text)),
    "never-respond": lambda text: _without(text, NeverRespond()),
    "disconnect": lambda text: _without(text, Disconnect()),
    "drop-response": lambda text: _without(text, DropResponse()),
    "truncate-response": lambda text: TruncateResponse(int(text)),
    "wrong-frame-size": lambda text: WrongFrameSize(int(text)),
    "wrong-correlation-id": lambda text: WrongCorrelationId(int(text or 1)),
    "swap-responses": lambda text: _without(text, SwapResponses()),
    "trickle-response": _trickle,
}


def _without(text: str, effect: Effect) -> Effect:
    if text:
        raise ValueError(f"{text!r} after an effect without a value")
    return effect


def parse_fault(text: str) -> Fault:
    """Return the fault of a text such as ``fail:NOT_LEADER_OR_FOLLOWER,api=Produce,client=billing,times=2``.

    ``fail`` takes an error name, ``delay`` milliseconds, ``truncate-response`` and ``wrong-frame-size`` bytes, and
    ``trickle-response`` bytes and milliseconds, as in ``10/50``. ``api`` is a name or a key, ``after`` a number of
    requests to skip, and ``times`` a number of requests or ``all``. Raises ``ValueError``.
    """
    first, *rest = text.split(",")
    name, _, value = first.partition(":")
    make = _EFFECTS.get(name)
    if make is None:
        raise ValueError(f"{name!r} is not one of {', '.join(_EFFECTS)}")
    try:
        effect = make(value)
    except (KeyError, ValueError, OptionError) as error:
        raise ValueError(f"{first!r}: {error}") from None
    return Fault(effect, **dict(map(_criterion, rest)))


def _criterion(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    if name == "api":
        return "api", _api_key(value)
    if name == "client" and value:
        return "client_id", value
    if name == "after" and value.isdecimal():
        return "after", int(value)
    if name == "times" and (value == "all" or value.isdecimal()):
        return "times", None if value == "all" else int(value)
    raise ValueError(f"{text!r} is not api=NAME, client=ID, after=NUMBER or times=NUMBER")


def _api_key(text: str) -> int:
    if text.isdecimal():
        return int(text)
    for cls in iter_message_classes():
        if cls.INFO.kind == "request" and cls.INFO.name.lower() == f"{text.lower()}request":
            assert cls.INFO.api_key is not None
            return cls.INFO.api_key
    raise ValueError(f"{text!r} is not an API")
