"""``Admin`` and ``AsyncAdmin``: every operation of administration, as methods that block and as coroutines.

``Operations`` is the table of methods. Each names the logic that it runs; the modules beside this one have the logic,
and say what arguments and results mean.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Concatenate, ParamSpec, TypeVar, Unpack

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
from kafka_msgs.client.client import AsyncClient, Client
from kafka_msgs.client.config import ClientOptions
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.forms import AsyncForm, BlockingForm, Form, LastOperation, Operation
from kafka_msgs.client.servers import Servers
from kafka_msgs.client.waiting import Steps

__all__ = ["Admin", "AsyncAdmin"]


C = TypeVar("C", Client, AsyncClient)
P = ParamSpec("P")
T = TypeVar("T")


def _on_core(logic: Callable[Concatenate[ClientCore, P], Steps[T]]) -> Operation[P, T]:
    """Return the operation that runs a function with the core of the client: all that such a function needs."""

    def method(form: Form[Client] | Form[AsyncClient], /, *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
        return logic(form.client.core, *args, **kwargs)

    update_wrapper(method, logic)
    return Operation(method)


class Operations(Form[C]):
    """The operations of administration."""

    def __init__(self, servers: Servers | C, **options: Unpack[ClientOptions]) -> None:
        self._take_client(servers, options)

    @LastOperation
    def close(self) -> Steps[None]:
        """Close the connections, if they are this object's own."""
        yield from ()  # nothing else has to end

    # Groups of any type
    list_groups = _on_core(groups.list_groups)
    describe_groups = _on_core(groups.describe_groups)
    describe_consumer_groups = _on_core(groups.describe_consumer_groups)
    describe_classic_groups = _on_core(groups.describe_classic_groups)
    describe_share_groups = _on_core(groups.describe_share_groups)
    delete_groups = _on_core(groups.delete_groups)
    remove_group_members = _on_core(groups.remove_group_members)
    list_group_offsets = _on_core(group_offsets.list_group_offsets)
    list_offsets_of_groups = _on_core(group_offsets.list_offsets_of_groups)
    alter_group_offsets = _on_core(group_offsets.alter_group_offsets)
    delete_group_offsets = _on_core(group_offsets.delete_group_offsets)
    plan_group_offsets = _on_core(resets.plan_group_offsets)
    reset_group_offsets = _on_core(resets.reset_group_offsets)
    list_share_group_offsets = _on_core(share_groups.list_share_group_offsets)
    alter_share_group_offsets = _on_core(share_groups.alter_share_group_offsets)
    delete_share_group_offsets = _on_core(share_groups.delete_share_group_offsets)

    # Streams groups, by the names of KIP-1071
    describe_streams_groups = _on_core(streams_groups.describe_streams_groups)
    list_streams_group_offsets = _on_core(group_offsets.list_offsets_of_groups)
    alter_streams_group_offsets = _on_core(group_offsets.alter_group_offsets)
    delete_streams_group_offsets = _on_core(group_offsets.delete_topic_offsets)
    delete_streams_groups = _on_core(groups.delete_groups)

    # Topics and partitions
    list_topics = _on_core(topics.list_topics)
    describe_topics = _on_core(topics.describe_topics)
    describe_topic_partitions = _on_core(topics.describe_topic_partitions)
    create_topics = _on_core(topics.create_topics)
    delete_topics = _on_core(topics.delete_topics)
    create_partitions = _on_core(topics.create_partitions)
    list_offsets = _on_core(partitions.list_offsets)
    list_end_offsets_of_epochs = _on_core(partitions.list_end_offsets_of_epochs)
    delete_records = _on_core(partitions.delete_records)
    elect_leaders = _on_core(partitions.elect_leaders)
    alter_partition_reassignments = _on_core(partitions.alter_partition_reassignments)
    list_partition_reassignments = _on_core(partitions.list_partition_reassignments)

    # Configurations and log directories
    list_config_resources = _on_core(configs.list_config_resources)
    list_client_metrics_resources = _on_core(configs.list_client_metrics_resources)
    describe_configs = _on_core(configs.describe_configs)
    alter_configs = _on_core(configs.alter_configs)
    describe_log_dirs = _on_core(log_dirs.describe_log_dirs)
    alter_replica_log_dirs = _on_core(log_dirs.alter_replica_log_dirs)

    # Transactions and producers
    list_transactions = _on_core(transactions.list_transactions)
    describe_transactions = _on_core(transactions.describe_transactions)
    describe_producers = _on_core(transactions.describe_producers)
    abort_transaction = _on_core(transactions.abort_transaction)
    fence_producers = _on_core(transactions.fence_producers)

    # Security
    describe_acls = _on_core(acls.describe_acls)
    create_acls = _on_core(acls.create_acls)
    delete_acls = _on_core(acls.delete_acls)
    describe_client_quotas = _on_core(quotas.describe_client_quotas)
    alter_client_quotas = _on_core(quotas.alter_client_quotas)
    describe_user_scram_credentials = _on_core(users.describe_user_scram_credentials)
    alter_user_scram_credentials = _on_core(users.alter_user_scram_credentials)
    create_delegation_token = _on_core(users.create_delegation_token)
    renew_delegation_token = _on_core(users.renew_delegation_token)
    expire_delegation_token = _on_core(users.expire_delegation_token)
    describe_delegation_tokens = _on_core(users.describe_delegation_tokens)

    # The cluster
    describe_cluster = _on_core(cluster.describe_cluster)
    find_coordinators = _on_core(cluster.find_coordinators)
    api_versions = _on_core(cluster.api_versions)
    describe_features = _on_core(cluster.describe_features)
    update_features = _on_core(cluster.update_features)
    describe_quorum = _on_core(cluster.describe_quorum)
    add_raft_voter = _on_core(cluster.add_raft_voter)
    remove_raft_voter = _on_core(cluster.remove_raft_voter)
    unregister_broker = _on_core(cluster.unregister_broker)
    unregister_controller = _on_core(cluster.unregister_controller)
    telemetry_subscriptions = _on_core(cluster.telemetry_subscriptions)


class Admin(Operations[Client], BlockingForm):
    """Administration for programs that block.

        with Admin("localhost:9092") as admin:
            admin.list_group_offsets("billing")

    The first argument is a ``Client``, which stays open, or what ``Client`` takes: ``options`` go to it too. Every
    method takes ``timeout``: the seconds for the whole operation; None is for the time-out of the client. Methods on
    many things return ``Results``: one outcome for each. Methods raise ``BrokerError`` where the whole operation
    failed, ``DeadlineError`` and the other errors of a client.
    """


class AsyncAdmin(Operations[AsyncClient], AsyncForm):
    """Administration for asyncio. See ``Admin``: the methods are the same, as coroutines.

    async with AsyncAdmin("localhost:9092") as admin:
        await admin.list_group_offsets("billing")
    """
