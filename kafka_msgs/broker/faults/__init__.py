"""Fault injection: failures that an embedded broker produces on request, with their targets and times. A fault is data.

    >>> from kafka_msgs import ApiKey, ErrorCode
    >>> from kafka_msgs.broker import EmbeddedBroker
    >>> from kafka_msgs.broker.faults import At, Fail, Fault, KillBroker, StartBroker
    >>> with EmbeddedBroker(brokers=2) as broker:
    ...     fault = broker.faults.add(Fault(Fail(ErrorCode.NOT_LEADER_OR_FOLLOWER), api=ApiKey.PRODUCE, times=2))
    ...     broker.run_fault_script([At(500, KillBroker(1)), At(900, StartBroker(1))])

A ``Fault`` selects requests and defines what happens to them: an effect on the request (``Fail``, ``Delay``,
``NeverRespond``, ``Disconnect``), an effect on its response (``DropResponse``, ``TruncateResponse``,
``WrongFrameSize``, ``WrongCorrelationId``, ``SwapResponses``, ``TrickleResponse``), or a change of the cluster: brokers
stop and start (``StopBroker``, ``KillBroker``, ``StartBroker``, ``RestartBroker``), leaders move (``MoveLeader``,
``MoveGroupCoordinator``, ``MoveTransactionCoordinator``, ``MoveController``), a follower lags
(``SetFollowerOffsets``), the clock jumps (``JumpClock``), the disk fills up (``FillDisk``), or everything recovers
(``Heal``).

A script is a sequence of ``At``: changes and faults at given times. ``Chaos`` generates random scripts from a seed.
``FaultInjector.random`` affects a random share of the requests, from a seed.
"""

from kafka_msgs.broker.faults.chaos import Chaos
from kafka_msgs.broker.faults.cluster_changes import (
    Change,
    FillDisk,
    Heal,
    JumpClock,
    KillBroker,
    MoveController,
    MoveGroupCoordinator,
    MoveLeader,
    MoveTransactionCoordinator,
    RestartBroker,
    SetFollowerOffsets,
    StartBroker,
    StopBroker,
)
from kafka_msgs.broker.faults.injector import At, Fault, FaultInjector
from kafka_msgs.broker.faults.request_effects import (
    Delay,
    Disconnect,
    DropResponse,
    Effect,
    Fail,
    NeverRespond,
    SwapResponses,
    TrickleResponse,
    TruncateResponse,
    WrongCorrelationId,
    WrongFrameSize,
)

__all__ = [
    "At",
    "Change",
    "Chaos",
    "Delay",
    "Disconnect",
    "DropResponse",
    "Effect",
    "Fail",
    "Fault",
    "FaultInjector",
    "FillDisk",
    "Heal",
    "JumpClock",
    "KillBroker",
    "MoveController",
    "MoveGroupCoordinator",
    "MoveLeader",
    "MoveTransactionCoordinator",
    "NeverRespond",
    "RestartBroker",
    "SetFollowerOffsets",
    "StartBroker",
    "StopBroker",
    "SwapResponses",
    "TrickleResponse",
    "TruncateResponse",
    "WrongCorrelationId",
    "WrongFrameSize",
]
