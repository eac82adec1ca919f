"""The interface of the cluster for request handlers and coordinators, and the offsets that a follower shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from attrs import frozen

from kafka_msgs.broker.client_metrics import ClientMetrics
from kafka_msgs.broker.client_session import ClientSession, VirtualBroker
from kafka_msgs.broker.cluster_services import ClusterServices
from kafka_msgs.broker.controller.image import PartitionKey
from kafka_msgs.broker.log_manager import LogManager
from kafka_msgs.broker.storage import PartitionLog, VerificationGuard
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.config import ForcedTarget
from kafka_msgs.versions import VersionRange

if TYPE_CHECKING:
    from kafka_msgs.broker.security.tokens import TokenValidator

__all__ = ["LEADER_VIEW", "Authorizer", "BrokerInterface", "FollowerView", "TransactionJoiner"]


@frozen
class FollowerView:
    """The first offset of a follower, and the offset after its last one. None is the offset of the leader."""

    start: int | None = None
    end: int | None = None

    def start_of(self, log: PartitionLog) -> int:
        """Return the log start offset."""
        return log.log_start_offset if self.start is None else max(self.start, log.log_start_offset)

    def limit(self, offset: int) -> int:
        """Return the high watermark or the last stable offset of the follower, from the offset of the leader."""
        return offset if self.end is None else min(self.end, offset)

    def check(self, log: PartitionLog, offset: int) -> None:
        """Raise ``RequestRefusedError`` with OFFSET_OUT_OF_RANGE for an offset that the follower does not have."""
        if not self.start_of(log) <= offset <= self.limit(log.log_end_offset):
            raise RequestRefusedError(ErrorCode.OFFSET_OUT_OF_RANGE)


LEADER_VIEW = FollowerView()
"""The view of the leader, and of a follower without faults."""


Authorizer: TypeAlias = Callable[[ClientSession, AclOperation, ResourceType, str], bool]
"""Return whether a client session may perform an operation on the resource with this type and name."""


class TransactionJoiner(Protocol):
    """Ensures that a partition is in the transaction of a producer before its records are appended."""

    def __call__(
        self,
        cluster: BrokerInterface,
        log: PartitionLog,
        transactional_id: str,
        producer: tuple[int, int],
        sequence: int,
        *,
        adds: bool,
        abortable: bool,
    ) -> VerificationGuard | None: ...


class BrokerInterface(ClusterServices, Protocol):
    """The brokers of a cluster, their logs and their rules. ``Cluster`` documents them."""

    cluster_id: str
    controller_id: int
    brokers: dict[int, VirtualBroker]
    log_manager: LogManager
    follower_views: dict[tuple[int, PartitionKey], FollowerView]
    client_metrics: ClientMetrics
    forced_targets: dict[str, ForcedTarget]
    authorizer: Authorizer | None
    transaction_joiner: TransactionJoiner | None
    stopwatch: Callable[[], int]
    response_observers: list[Callable[[Any, Any], None]]

    @property
    def sasl_mechanisms(self) -> tuple[str, ...]: ...

    @property
    def token_validator(self) -> TokenValidator: ...

    @property
    def offered_versions(self) -> Mapping[int, VersionRange]: ...

    def log_dir_path(self, broker_id: int) -> Path | None: ...

    def run_handler(self, call: Any, /) -> None: ...

    def record_error(self, error: Exception) -> None: ...

    def kill_broker(self, broker_id: int) -> None: ...
