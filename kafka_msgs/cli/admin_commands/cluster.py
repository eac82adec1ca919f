"""``kafka-msgs cluster``: brokers, controllers and the metadata quorum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.admin_commands.outcomes import OptionActions, action_options
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.output import id_text
from kafka_msgs.cli.render.timestamps import iso_of_ms

if TYPE_CHECKING:
    from kafka_msgs.admin.admin import Admin

__all__ = ["cluster_command"]

_NODE: Final = ("clusterId", "broker", "host", "port", "rack", "controller", "fenced")
_REPLICA: Final = (
    "leaderId", "leaderEpoch", "highWatermark", "role", "replicaId", "directoryId", "logEndOffset", "lag",
    "lastFetchTimestamp", "lastFetchTime", "lastCaughtUpTimestamp", "lastCaughtUpTime",
)  # fmt: skip
_REPLICA_TABLE: Final = ("role", "replicaId", "logEndOffset", "lag", "lastCaughtUpTime")


_ONLY_WITH: Final[OptionActions] = {"unregister": ("brokers",)}


@click.command("cluster")
@action_options("brokers", _ONLY_WITH, brokers="List brokers.", quorum="Show the replicas of the metadata quorum.")
@broker_options()
@click.option("--unregister", metavar="ID", type=int, help="Unregister a broker that is shut down for good.")
@listing_option
def cluster_command(action: str, cluster: ClusterOptions, unregister: int | None, output_format: str) -> None:
    """List the brokers of a cluster, or the state of its metadata quorum.

    Example: kafka-msgs cluster --quorum -b localhost
    """
    with cluster.admin() as admin:
        if unregister is not None:
            admin.unregister_broker(unregister)
        elif action == "brokers":
            print_listing(output_format, _NODE, _brokers(admin))
        else:
            print_listing(output_format, _REPLICA, _quorum(admin), in_table=_REPLICA_TABLE)


def _brokers(admin: Admin) -> list[dict[str, Any]]:
    description = admin.describe_cluster()
    return [
        {
            "clusterId": description.cluster_id,
            "broker": broker,
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "controller": broker == description.controller_id,
            "fenced": node.is_fenced,
        }
        for broker, node in sorted(description.nodes.items())
    ]


def _quorum(admin: Admin) -> list[dict[str, Any]]:
    quorum = admin.describe_quorum()
    replicas = [
        ("leader" if replica.replica_id == quorum.leader_id else "follower", replica) for replica in quorum.voters
    ]
    replicas += [("observer", replica) for replica in quorum.observers]
    return [
        {
            "leaderId": quorum.leader_id,
            "leaderEpoch": quorum.leader_epoch,
            "highWatermark": quorum.high_watermark,
            "role": role,
            "replicaId": replica.replica_id,
            "directoryId": id_text(replica.replica_directory_id),
            "logEndOffset": replica.log_end_offset,
            "lag": max(0, quorum.high_watermark - replica.log_end_offset),
            "lastFetchTimestamp": replica.last_fetch_timestamp,
            "lastFetchTime": iso_of_ms(replica.last_fetch_timestamp),
            "lastCaughtUpTimestamp": replica.last_caught_up_timestamp,
            "lastCaughtUpTime": iso_of_ms(replica.last_caught_up_timestamp),
        }
        for role, replica in replicas
    ]
