"""The context of a request to a group coordinator: its sender and its version."""

from __future__ import annotations

from attrs import frozen

__all__ = ["RequestContext"]


@frozen(kw_only=True)
class RequestContext:
    """The facts about a request that are not in its body.

    ``version`` is the api version of the request. ``client_id`` comes from the request header. ``client_host`` is the
    client address as the broker writes it in its records, such as ``/127.0.0.1``. ``principal`` is the user in Kafka's
    form. The broker checks the permissions of the sender before it calls the coordinator, as Kafka does.
    """

    version: int
    client_id: str = ""
    client_host: str = "/127.0.0.1"
    principal: str = "User:ANONYMOUS"
