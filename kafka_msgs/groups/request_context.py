"""The context of a request to a group coordinator: its sender, its version, and the sender's permissions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from attrs import frozen

from kafka_msgs.enums import AclOperation, ResourceType

__all__ = ["CLUSTER_NAME", "Permission", "RequestContext"]

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of the type ``CLUSTER``."""


class Permission(NamedTuple):
    """Permission for an operation on a resource of that name."""

    operation: AclOperation
    resource: ResourceType
    name: str


def _everything(permission: Permission) -> bool:
    return True


@frozen(kw_only=True)
class RequestContext:
    """The facts about a request that are not in its body.

    ``version`` is the api version of the request. ``client_id`` comes from the request header. ``client_host`` is the
    client address as the broker writes it in its records, such as ``/127.0.0.1``. ``principal`` is the user in Kafka's
    form. ``allows`` returns whether the sender has a permission.
    """

    version: int
    client_id: str = ""
    client_host: str = "/127.0.0.1"
    principal: str = "User:ANONYMOUS"
    allows: Callable[[Permission], bool] = _everything
