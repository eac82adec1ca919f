"""Who sent a request to a group coordinator, and at which version."""

from __future__ import annotations

from attrs import frozen

__all__ = ["RequestContext"]


@frozen(kw_only=True)
class RequestContext:
    """The facts about a request that are not in its body.

    ``version`` is the version of the api that the request was sent at. ``client_id`` comes from the request header.
    ``client_host`` is the address of the client as the broker writes it in its records, such as ``/127.0.0.1``.
    ``principal`` is the user in Kafka's form. ``may_create_topics`` tells whether it may
    create the internal topics of a streams group.
    """

    version: int
    client_id: str = ""
    client_host: str = "/127.0.0.1"
    principal: str = "User:ANONYMOUS"
    may_create_topics: bool = True
