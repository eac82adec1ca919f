"""``Admin`` and ``AsyncAdmin``: every operation of administration, as methods that block and as coroutines.

``Operations`` is the table of methods. Each names the logic that it runs; the modules beside this one have the logic,
and say what arguments and results mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from kafka_msgs.admin import (
    acls,
    cluster,
    configs,
    group_offsets,
    groups,
    log_dirs,
    partitions,
    quotas,
    resets,
    share_groups,
    streams_groups,
    topics,
    transactions,
    users,
)
from kafka_msgs.admin.operation import Operation
from kafka_msgs.client.client import AsyncClient, Client
from kafka_msgs.client.config import ClientConfig

if TYPE_CHECKING:
    import ssl

    from kafka_msgs.client.auth import Credentials

__all__ = ["Admin", "AsyncAdmin"]


class ClientOptions(TypedDict, total=False):
    """The keywords of ``Client``."""

    client_id: str | None
    timeout: float
    tls: ssl.SSLContext | None
    credentials: Credentials | None


class Operations:
    """The operations of administration."""

    # Groups of any type
    list_groups = Operation(groups.list_groups)
    describe_groups = Operation(groups.describe_groups)
    describe_consumer_groups = Operation(groups.describe_consumer_groups)
    describe_classic_groups = Operation(groups.describe_classic_groups)
    describe_share_groups = Operation(groups.describe_share_groups)
    delete_groups = Operation(groups.delete_groups)
    remove_group_members = Operation(groups.remove_group_members)
    list_group_offsets = Operation(group_offsets.list_group_offsets)
    list_offsets_of_groups = Operation(group_offsets.list_offsets_of_groups)
    alter_group_offsets = Operation(group_offsets.alter_group_offsets)
    delete_group_offsets = Operation(group_offsets.delete_group_offsets)
    plan_group_offsets = Operation(resets.plan_group_offsets)
    reset_group_offsets = Operation(resets.reset_group_offsets)
    list_share_group_offsets = Operation(share_groups.list_share_group_offsets)
    alter_share_group_offsets = Operation(share_groups.alter_share_group_offsets)
    delete_share_group_offsets = Operation(share_groups.delete_share_group_offsets)

    # Streams groups, by the names of KIP-1071
    describe_streams_groups = Operation(streams_groups.describe_streams_groups)
    list_streams_group_offsets = Operation(group_offsets.list_offsets_of_groups)
    alter_streams_group_offsets = Operation(group_offsets.alter_group_offsets)
    delete_streams_group_offsets = Operation(group_offsets.delete_topic_offsets)
    delete_streams_groups = Operation(groups.delete_groups)

    # Topics and partitions
    list_topics = Operation(topics.list_topics)
    describe_topics = Operation(topics.describe_topics)
    describe_topic_partitions = Operation(topics.describe_topic_partitions)
    create_topics = Operation(topics.create_topics)
    delete_topics = Operation(topics.delete_topics)
    create_partitions = Operation(topics.create_partitions)
    list_offsets = Operation(partitions.list_offsets)
    list_end_offsets_of_epochs = Operation(partitions.list_end_offsets_of_epochs)
    delete_records = Operation(partitions.delete_records)
    elect_leaders = Operation(partitions.elect_leaders)
    alter_partition_reassignments = Operation(partitions.alter_partition_reassignments)
    list_partition_reassignments = Operation(partitions.list_partition_reassignments)

    # Configurations and log directories
    list_config_resources = Operation(configs.list_config_resources)
    list_client_metrics_resources = Operation(configs.list_client_metrics_resources)
    describe_configs = Operation(configs.describe_configs)
    alter_configs = Operation(configs.alter_configs)
    describe_log_dirs = Operation(log_dirs.describe_log_dirs)
    alter_replica_log_dirs = Operation(log_dirs.alter_replica_log_dirs)

    # Transactions and producers
    list_transactions = Operation(transactions.list_transactions)
    describe_transactions = Operation(transactions.describe_transactions)
    describe_producers = Operation(transactions.describe_producers)
    abort_transaction = Operation(transactions.abort_transaction)
    fence_producers = Operation(transactions.fence_producers)

    # Security
    describe_acls = Operation(acls.describe_acls)
    create_acls = Operation(acls.create_acls)
    delete_acls = Operation(acls.delete_acls)
    describe_client_quotas = Operation(quotas.describe_client_quotas)
    alter_client_quotas = Operation(quotas.alter_client_quotas)
    describe_user_scram_credentials = Operation(users.describe_user_scram_credentials)
    alter_user_scram_credentials = Operation(users.alter_user_scram_credentials)
    create_delegation_token = Operation(users.create_delegation_token)
    renew_delegation_token = Operation(users.renew_delegation_token)
    expire_delegation_token = Operation(users.expire_delegation_token)
    describe_delegation_tokens = Operation(users.describe_delegation_tokens)

    # The cluster
    describe_cluster = Operation(cluster.describe_cluster)
    find_coordinators = Operation(cluster.find_coordinators)
    api_versions = Operation(cluster.api_versions)
    describe_features = Operation(cluster.describe_features)
    update_features = Operation(cluster.update_features)
    describe_quorum = Operation(cluster.describe_quorum)
    add_raft_voter = Operation(cluster.add_raft_voter)
    remove_raft_voter = Operation(cluster.remove_raft_voter)
    unregister_broker = Operation(cluster.unregister_broker)
    unregister_controller = Operation(cluster.unregister_controller)
    telemetry_subscriptions = Operation(cluster.telemetry_subscriptions)


class Admin(Operations):
    """Administration for programs that block.

        with Admin("localhost:9092") as admin:
            admin.list_group_offsets("billing")

    The first argument is a ``Client``, which stays open, or what ``Client`` takes: ``options`` go to it too. Every
    method takes ``timeout``: the seconds for the whole operation; None is for the time-out of the client. Methods on
    many things return ``Results``: one outcome for each. Methods raise ``BrokerError`` where the whole operation
    failed, ``DeadlineError`` and the other errors of a client.
    """

    def __init__(self, client: Client | str | Sequence[str] | ClientConfig, **options: Unpack[ClientOptions]) -> None:
        self._owned = not isinstance(client, Client)
        self.client = client if isinstance(client, Client) else Client(client, **options)

    def close(self) -> None:
        """Close the connections, if they are this object's own."""
        if self._owned:
            self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncAdmin(Operations):
    """Administration for asyncio. See ``Admin``: the methods are the same, as coroutines.

    async with AsyncAdmin("localhost:9092") as admin:
        await admin.list_group_offsets("billing")
    """

    def __init__(
        self, client: AsyncClient | str | Sequence[str] | ClientConfig, **options: Unpack[ClientOptions]
    ) -> None:
        self._owned = not isinstance(client, AsyncClient)
        self.client = client if isinstance(client, AsyncClient) else AsyncClient(client, **options)

    async def close(self) -> None:
        """Close the connections, if they are this object's own."""
        if self._owned:
            await self.client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
