"""``Admin``, which blocks. Generated from ``async_admin.py`` by docs/tools/facades.py: do not edit it."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from kafka_msgs.admin import acls as _acls
from kafka_msgs.admin import cluster as _cluster
from kafka_msgs.admin import configs as _configs
from kafka_msgs.admin import group_offsets as _group_offsets
from kafka_msgs.admin import groups as _groups
from kafka_msgs.admin import hanging_transactions as _hanging_transactions
from kafka_msgs.admin import log_dirs as _log_dirs
from kafka_msgs.admin import offset_resets as _offset_resets
from kafka_msgs.admin import partitions as _partitions
from kafka_msgs.admin import quotas as _quotas
from kafka_msgs.admin import share_groups as _share_groups
from kafka_msgs.admin import streams_groups as _streams_groups
from kafka_msgs.admin import topics as _topics
from kafka_msgs.admin import transactions as _transactions
from kafka_msgs.admin import users as _users
from kafka_msgs.admin.partitions import IsolationLevel
from kafka_msgs.client.client import Client
from kafka_msgs.client.config import ClientOptions
from kafka_msgs.client.config_loading import Servers
from kafka_msgs.client.facade import BlockingFacade
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.enums import ElectionType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from uuid import UUID

    from kafka_msgs.admin.acls import AclBinding, AclFilter
    from kafka_msgs.admin.cluster import ClusterDescription, Features, FeatureUpdate, Quorum
    from kafka_msgs.admin.configs import ConfigChange, ConfigResource
    from kafka_msgs.admin.group_descriptions import AnyGroupDescription, GroupDescription, GroupListing
    from kafka_msgs.admin.group_offsets import Wanted
    from kafka_msgs.admin.groups import MemberToRemove
    from kafka_msgs.admin.log_dirs import TopicPartitionReplica
    from kafka_msgs.admin.offset_resets import OffsetChange, OffsetTarget
    from kafka_msgs.admin.quotas import QuotaEntity, _AnyName
    from kafka_msgs.admin.results import PartialList, Results
    from kafka_msgs.admin.streams_groups import StreamsGroupDescription
    from kafka_msgs.admin.topics import NewPartitions, NewTopic
    from kafka_msgs.admin.transactions import ProducerIdAndEpoch
    from kafka_msgs.admin.users import Principal, ScramDeletion, ScramUpsertion
    from kafka_msgs.client.cluster_metadata import TopicPartition
    from kafka_msgs.client.network import Address
    from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
    from kafka_msgs.enums import ConfigResourceType, GroupState, GroupType
    from kafka_msgs.messages.api_versions_response import ApiVersionsResponse
    from kafka_msgs.messages.create_delegation_token_response import CreateDelegationTokenResponse
    from kafka_msgs.messages.create_topics_response import CreatableTopicResult
    from kafka_msgs.messages.describe_configs_response import DescribeConfigsResourceResult
    from kafka_msgs.messages.describe_delegation_token_response import DescribedDelegationToken
    from kafka_msgs.messages.describe_log_dirs_response import DescribeLogDirsResult
    from kafka_msgs.messages.describe_producers_response import ProducerState
    from kafka_msgs.messages.describe_share_group_offsets_response import (
        DescribeShareGroupOffsetsResponsePartition as SharePartitionOffset,
    )
    from kafka_msgs.messages.describe_topic_partitions_response import DescribeTopicPartitionsResponseTopic
    from kafka_msgs.messages.describe_transactions_response import TransactionState
    from kafka_msgs.messages.describe_user_scram_credentials_response import CredentialInfo
    from kafka_msgs.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
    from kafka_msgs.messages.list_offsets_response import ListOffsetsPartitionResponse
    from kafka_msgs.messages.list_partition_reassignments_response import OngoingPartitionReassignment
    from kafka_msgs.messages.list_transactions_response import TransactionState as ListedTransaction
    from kafka_msgs.messages.metadata_response import MetadataResponseTopic
    from kafka_msgs.messages.offset_for_leader_epoch_response import EpochEndOffset

__all__ = ["Admin"]


class Admin(BlockingFacade):
    """Administration of a cluster.

        with Admin("localhost:9092") as admin:
            admin.list_group_offsets("billing")

    The first argument is an ``Client``, which stays open, or what ``Client`` takes, with the same options.
    Every method takes ``timeout``: the seconds for the whole operation; None is for the timeout of the client. Methods
    on many things return ``Results``: one outcome for each. Methods raise ``BrokerError`` where the whole operation
    failed, ``DeadlineError`` and the other errors of a client.

    Any thread may use it.
    """

    def __init__(
        self,
        servers: Servers | Client,
        *,
        threadless: bool = False,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._take_client(
            servers,
            options,
            threadless=threadless,
        )

    # Groups of any type

    def list_groups(
        self, *, types: Collection[GroupType] = (), states: Collection[GroupState] = (), timeout: float | None = None
    ) -> PartialList[GroupListing]:
        """Return the groups of all coordinators: of these types and states, or all (KIP-518, KIP-848).

        A broker that does not support a filter fails with an error.
        """
        return self._run(_groups.list_groups(self.client.core, types=types, states=states, timeout=timeout))

    def describe_groups(
        self, group_ids: Collection[str], *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> Results[str, AnyGroupDescription]:
        """Describe groups of any type. It lists the groups first, because each type has a separate request.

        A group that is not listed is described as a classic group, so that the broker returns its error. If a broker
        could not list its groups, its error is the outcome of each group that no other broker listed.
        """
        return self._run(
            _groups.describe_groups(
                self.client.core,
                group_ids,
                include_authorized_operations=include_authorized_operations,
                timeout=timeout,
            )
        )

    def describe_consumer_groups(
        self, group_ids: Collection[str], *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> Results[str, GroupDescription]:
        """Describe consumer groups of both protocols: the consumer protocol (KIP-848), and the classic protocol."""
        return self._run(
            _groups.describe_consumer_groups(
                self.client.core,
                group_ids,
                include_authorized_operations=include_authorized_operations,
                timeout=timeout,
            )
        )

    def describe_classic_groups(
        self, group_ids: Collection[str], *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> Results[str, GroupDescription]:
        """Describe classic groups of any protocol type; only members of consumer groups are decoded.

        A missing group is in the state ``DEAD`` if the broker is older than Kafka 4.0, otherwise an error.
        """
        return self._run(
            _groups.describe_classic_groups(
                self.client.core,
                group_ids,
                include_authorized_operations=include_authorized_operations,
                timeout=timeout,
            )
        )

    def describe_share_groups(
        self, group_ids: Collection[str], *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> Results[str, GroupDescription]:
        """Describe share groups (KIP-932)."""
        return self._run(
            _groups.describe_share_groups(
                self.client.core,
                group_ids,
                include_authorized_operations=include_authorized_operations,
                timeout=timeout,
            )
        )

    def delete_groups(self, group_ids: Collection[str], *, timeout: float | None = None) -> Results[str, None]:
        """Delete groups of any type, with their offsets. A group with members fails with ``NON_EMPTY_GROUP``."""
        return self._run(_groups.delete_groups(self.client.core, group_ids, timeout=timeout))

    def remove_group_members(
        self,
        group_id: str,
        members: Collection[MemberToRemove] | None = None,
        *,
        reason: str | None = None,
        timeout: float | None = None,
    ) -> Results[MemberToRemove, None]:
        """Remove members from a classic group, or all of them (KIP-345). ``reason`` is for the broker's log (KIP-800).

        Members of other groups leave only through their heartbeats: the broker refuses to remove them.
        """
        return self._run(
            _groups.remove_group_members(self.client.core, group_id, members, reason=reason, timeout=timeout)
        )

    def list_group_offsets(
        self, group_id: str, partitions: Wanted = None, *, require_stable: bool = False, timeout: float | None = None
    ) -> Results[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group (KIP-88).

        Without ``partitions`` the result has every partition for which the group has an offset, including topics that
        no member reads, even if the group has no members. ``require_stable`` waits until open transactions that affect
        the offsets have ended (KIP-447). Raises ``BrokerError`` if the request for the group failed, and
        ``UnsupportedVersionError`` if the broker cannot list all partitions.
        """
        return self._run(
            _group_offsets.list_group_offsets(
                self.client.core, group_id, partitions, require_stable=require_stable, timeout=timeout
            )
        )

    def list_offsets_of_groups(
        self, groups: Mapping[str, Wanted], *, require_stable: bool = False, timeout: float | None = None
    ) -> Results[str, Results[TopicPartition, OffsetAndMetadata]]:
        """Return the committed offsets of many groups: one request per coordinator (KIP-709).

        ``groups`` has the requested partitions of each group, or None for all, as in ``list_group_offsets``. Brokers
        without support for several groups get one request per group.
        """
        return self._run(
            _group_offsets.list_offsets_of_groups(
                self.client.core, groups, require_stable=require_stable, timeout=timeout
            )
        )

    def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], *, timeout: float | None = None
    ) -> Results[TopicPartition, None]:
        """Set the offsets of a group; other partitions keep their offsets.

        The group must have no members. Otherwise each partition fails with ``UNKNOWN_MEMBER_ID``. The operation is not
        atomic: some partitions may succeed while others fail.
        """
        return self._run(_group_offsets.alter_group_offsets(self.client.core, group_id, offsets, timeout=timeout))

    def delete_group_offsets(
        self, group_id: str, partitions: Collection[TopicPartition], *, timeout: float | None = None
    ) -> Results[TopicPartition, None]:
        """Delete the offsets of a group for some partitions (KIP-496).

        A partition whose topic the group subscribes to fails with ``GROUP_SUBSCRIBED_TO_TOPIC``. Raises ``BrokerError``
        if the request for the group failed.
        """
        return self._run(_group_offsets.delete_group_offsets(self.client.core, group_id, partitions, timeout=timeout))

    def plan_offset_reset(
        self,
        group_id: str,
        target: OffsetTarget | Mapping[TopicPartition, int],
        partitions: Collection[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> Results[TopicPartition, OffsetChange]:
        """Return the planned offsets of a group, without changing them.

        ``target`` applies to all ``partitions``; None means all partitions for which the group has an offset.
        Alternatively it has an offset for each partition. Raises ``BrokerError`` if the request for the group failed.
        """
        return self._run(
            _offset_resets.plan_offset_reset(self.client.core, group_id, target, partitions, timeout=timeout)
        )

    def reset_group_offsets(
        self,
        group_id: str,
        target: OffsetTarget | Mapping[TopicPartition, int],
        partitions: Collection[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> Results[TopicPartition, OffsetChange]:
        """Move the offsets of a group, as planned by ``plan_offset_reset``. The group must have no members."""
        return self._run(
            _offset_resets.reset_group_offsets(self.client.core, group_id, target, partitions, timeout=timeout)
        )

    def list_share_group_offsets(
        self, groups: Mapping[str, Collection[TopicPartition] | None], *, timeout: float | None = None
    ) -> Results[str, Results[TopicPartition, SharePartitionOffset]]:
        """Return the start offsets of share groups: of some partitions of each, or with None of all."""
        return self._run(_share_groups.list_share_group_offsets(self.client.core, groups, timeout=timeout))

    def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> Results[TopicPartition, None]:
        """Set the start offsets of a share group. The group must have no members."""
        return self._run(_share_groups.alter_share_group_offsets(self.client.core, group_id, offsets, timeout=timeout))

    def delete_share_group_offsets(
        self, group_id: str, topics: Collection[str], *, timeout: float | None = None
    ) -> Results[str, None]:
        """Delete the offsets of a share group for whole topics. The group must have no members."""
        return self._run(_share_groups.delete_share_group_offsets(self.client.core, group_id, topics, timeout=timeout))

    # Streams groups, by the names of KIP-1071

    def describe_streams_groups(
        self,
        group_ids: Collection[str],
        *,
        include_authorized_operations: bool = False,
        include_topology_description: bool = False,
        timeout: float | None = None,
    ) -> Results[str, StreamsGroupDescription]:
        """Describe streams groups. A group of another type fails with ``GROUP_ID_NOT_FOUND``."""
        return self._run(
            _streams_groups.describe_streams_groups(
                self.client.core,
                group_ids,
                include_authorized_operations=include_authorized_operations,
                include_topology_description=include_topology_description,
                timeout=timeout,
            )
        )

    def list_streams_group_offsets(
        self, groups: Mapping[str, Wanted], *, require_stable: bool = False, timeout: float | None = None
    ) -> Results[str, Results[TopicPartition, OffsetAndMetadata]]:
        """Return the committed offsets of many groups: one request per coordinator (KIP-709).

        ``groups`` has the requested partitions of each group, or None for all, as in ``list_group_offsets``. Brokers
        without support for several groups get one request per group.
        """
        return self._run(
            _group_offsets.list_offsets_of_groups(
                self.client.core, groups, require_stable=require_stable, timeout=timeout
            )
        )

    def alter_streams_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], *, timeout: float | None = None
    ) -> Results[TopicPartition, None]:
        """Set the offsets of a group; other partitions keep their offsets.

        The group must have no members. Otherwise each partition fails with ``UNKNOWN_MEMBER_ID``. The operation is not
        atomic: some partitions may succeed while others fail.
        """
        return self._run(_group_offsets.alter_group_offsets(self.client.core, group_id, offsets, timeout=timeout))

    def delete_streams_group_offsets(
        self, group_id: str, topics: Collection[str], *, timeout: float | None = None
    ) -> Results[str, None]:
        """Delete the offsets of a group for all partitions of some topics. A topic fails with its first partition.

        The partitions are all partitions of the topics, and all partitions for which the group has an offset.
        """
        return self._run(_group_offsets.delete_topic_offsets(self.client.core, group_id, topics, timeout=timeout))

    def delete_streams_groups(self, group_ids: Collection[str], *, timeout: float | None = None) -> Results[str, None]:
        """Delete groups of any type, with their offsets. A group with members fails with ``NON_EMPTY_GROUP``."""
        return self._run(_groups.delete_groups(self.client.core, group_ids, timeout=timeout))

    # Topics and partitions

    def list_topics(
        self, *, include_internal: bool = False, timeout: float | None = None
    ) -> dict[str, MetadataResponseTopic]:
        """Return every topic that the client may see, by name, with its partitions, leaders and replicas."""
        return self._run(_topics.list_topics(self.client.core, include_internal=include_internal, timeout=timeout))

    def describe_topics(
        self,
        topics: Collection[str | UUID],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> Results[str | UUID, MetadataResponseTopic]:
        """Return topics by name or by topic id, with their partitions, leaders and replicas. It creates no topics."""
        return self._run(
            _topics.describe_topics(
                self.client.core, topics, include_authorized_operations=include_authorized_operations, timeout=timeout
            )
        )

    def describe_topic_partitions(
        self, topics: Collection[str], *, partitions_per_request: int = 2000, timeout: float | None = None
    ) -> Results[str, DescribeTopicPartitionsResponseTopic]:
        """Return topics with the eligible leader replicas of their partitions (KIP-966).

        It requests at most ``partitions_per_request`` partitions at once, until it has all partitions.
        """
        return self._run(
            _topics.describe_topic_partitions(
                self.client.core, topics, partitions_per_request=partitions_per_request, timeout=timeout
            )
        )

    def create_topics(
        self, topics: Collection[NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[str, CreatableTopicResult]:
        """Create topics. The value of each is the created topic: id, partitions, replication factor, configurations.

        ``validate_only`` validates the request without creating topics.
        """
        return self._run(_topics.create_topics(self.client.core, topics, validate_only=validate_only, timeout=timeout))

    def delete_topics(
        self, topics: Collection[str | UUID], *, timeout: float | None = None
    ) -> Results[str | UUID, None]:
        """Delete topics, by name or by topic id."""
        return self._run(_topics.delete_topics(self.client.core, topics, timeout=timeout))

    def create_partitions(
        self, topics: Mapping[str, int | NewPartitions], *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[str, None]:
        """Increase the number of partitions of topics. The number is the new total."""
        return self._run(
            _topics.create_partitions(self.client.core, topics, validate_only=validate_only, timeout=timeout)
        )

    def list_offsets(
        self,
        partitions: Mapping[TopicPartition, int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout: float | None = None,
    ) -> Results[TopicPartition, ListOffsetsPartitionResponse]:
        """Return an offset of each partition: an ``OffsetSpec``, or the first at or after a timestamp in ms.

        The offset is -1 if the partition has no such record. Each leader gets one request. If a leader is too old for
        an ``OffsetSpec``, the outcome is an ``UnsupportedVersionError``.
        """
        return self._run(
            _partitions.list_offsets(self.client.core, partitions, isolation_level=isolation_level, timeout=timeout)
        )

    def list_end_offsets_of_epochs(
        self, leader_epochs: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> Results[TopicPartition, EpochEndOffset]:
        """Return the end offset of a leader epoch for each partition (KIP-320).

        The result has the largest epoch that the leader has and that does not exceed the requested epoch, with its end
        offset.
        """
        return self._run(_partitions.list_end_offsets_of_epochs(self.client.core, leader_epochs, timeout=timeout))

    def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> Results[TopicPartition, int]:
        """Delete all records before an offset of each partition; -1 is the high watermark. Return the low watermarks.

        The low watermark is the first offset that every replica still has.
        """
        return self._run(_partitions.delete_records(self.client.core, before, timeout=timeout))

    def elect_leaders(
        self,
        partitions: Collection[TopicPartition] | None = None,
        *,
        election: ElectionType = ElectionType.PREFERRED,
        timeout: float | None = None,
    ) -> Results[TopicPartition, None]:
        """Elect leaders: of the given partitions, or of all (KIP-183, KIP-460).

        A partition that needs no election fails with ``ELECTION_NOT_NEEDED``. Without ``partitions``, the results have
        only partitions with an election.
        """
        return self._run(_partitions.elect_leaders(self.client.core, partitions, election=election, timeout=timeout))

    def alter_partition_reassignments(
        self,
        replicas: Mapping[TopicPartition, Collection[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: float | None = None,
    ) -> Results[TopicPartition, None]:
        """Start moves of partitions to other brokers, or cancel a move with None (KIP-455)."""
        return self._run(
            _partitions.alter_partition_reassignments(
                self.client.core,
                replicas,
                allow_replication_factor_change=allow_replication_factor_change,
                timeout=timeout,
            )
        )

    def list_partition_reassignments(
        self, partitions: Collection[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, OngoingPartitionReassignment]:
        """Return the moves in progress: of the given partitions, or all (KIP-455)."""
        return self._run(_partitions.list_partition_reassignments(self.client.core, partitions, timeout=timeout))

    # Configurations and log directories

    def list_config_resources(
        self, types: Collection[ConfigResourceType] = (), *, timeout: float | None = None
    ) -> tuple[ConfigResource, ...]:
        """Return the resources with configurations: of these types, or of all types (KIP-1142).

        Brokers before Kafka 4.1 list only client metrics subscriptions.
        """
        return self._run(_configs.list_config_resources(self.client.core, types, timeout=timeout))

    def list_client_metrics_resources(self, *, timeout: float | None = None) -> tuple[str, ...]:
        """Return the names of the client metrics subscriptions (KIP-714, KIP-1000)."""
        return self._run(_configs.list_client_metrics_resources(self.client.core, timeout=timeout))

    def describe_configs(
        self,
        resources: Collection[ConfigResource] | Mapping[ConfigResource, Collection[str]],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> Results[ConfigResource, dict[str, DescribeConfigsResourceResult]]:
        """Return the configurations of each resource by name: all, or with a mapping only the named ones.

        The value of a secret is None. The request for a broker's own configurations goes to that broker.
        """
        return self._run(
            _configs.describe_configs(
                self.client.core,
                resources,
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
                timeout=timeout,
            )
        )

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> Results[ConfigResource, None]:
        """Change configurations one by one (KIP-339); all other configurations keep their values.

        The request for a broker's own configurations goes to that broker.
        """
        return self._run(
            _configs.alter_configs(self.client.core, changes, validate_only=validate_only, timeout=timeout)
        )

    def describe_log_dirs(
        self,
        brokers: Collection[int] | None = None,
        partitions: Collection[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> Results[int, Results[str, DescribeLogDirsResult]]:
        """Return the log directories of brokers, or of all brokers, by broker id and path, with partition sizes.

        ``partitions`` restricts the result to these partitions. Sizes are in bytes.
        """
        return self._run(_log_dirs.describe_log_dirs(self.client.core, brokers, partitions, timeout=timeout))

    def alter_replica_log_dirs(
        self, moves: Mapping[TopicPartitionReplica, str], *, timeout: float | None = None
    ) -> Results[TopicPartitionReplica, None]:
        """Start moves of replicas to other log directories of their brokers, given by path."""
        return self._run(_log_dirs.alter_replica_log_dirs(self.client.core, moves, timeout=timeout))

    # Transactions and producers

    def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        running_longer_than_ms: int = -1,
        id_pattern: str | None = None,
        timeout: float | None = None,
    ) -> PartialList[ListedTransaction]:
        """Return the transactions of all coordinators: of these states (such as ``Ongoing``) and producers, or all.

        ``running_longer_than_ms`` (KIP-994) and ``id_pattern`` (a regular expression of RE2, KIP-1152) need brokers
        that support them.
        """
        return self._run(
            _transactions.list_transactions(
                self.client.core,
                states=states,
                producer_ids=producer_ids,
                running_longer_than_ms=running_longer_than_ms,
                id_pattern=id_pattern,
                timeout=timeout,
            )
        )

    def describe_transactions(
        self, transactional_ids: Collection[str], *, timeout: float | None = None
    ) -> Results[str, TransactionState]:
        """Return the state of transactions: their producer, their partitions, and their start time."""
        return self._run(_transactions.describe_transactions(self.client.core, transactional_ids, timeout=timeout))

    def describe_producers(
        self, partitions: Collection[TopicPartition], *, broker_id: int | None = None, timeout: float | None = None
    ) -> Results[TopicPartition, tuple[ProducerState, ...]]:
        """Return the active producers of partitions, from the leaders, or from the replicas on one broker."""
        return self._run(
            _transactions.describe_producers(self.client.core, partitions, broker_id=broker_id, timeout=timeout)
        )

    def abort_transaction(
        self,
        partition: TopicPartition,
        producer_id: int,
        producer_epoch: int,
        *,
        coordinator_epoch: int = -1,
        timeout: float | None = None,
    ) -> None:
        """Abort a hanging transaction in a partition: write an abort marker at its leader.

        ``describe_producers`` returns such a transaction: ``current_txn_start_offset`` is not -1, and the coordinator
        has no such transaction. Raises ``BrokerError``.
        """
        return self._run(
            _transactions.abort_transaction(
                self.client.core,
                partition,
                producer_id,
                producer_epoch,
                coordinator_epoch=coordinator_epoch,
                timeout=timeout,
            )
        )

    def fence_producers(
        self, transactional_ids: Collection[str], *, timeout: float | None = None
    ) -> Results[str, ProducerIdAndEpoch]:
        """Increase the producer epochs of transactions: running producers fail, and open transactions are aborted."""
        return self._run(_transactions.fence_producers(self.client.core, transactional_ids, timeout=timeout))

    def find_hanging_transactions(
        self,
        partitions: Collection[TopicPartition] | None = None,
        *,
        last_write_before_ms: int,
        broker_id: int | None = None,
        timeout: float | None = None,
    ) -> Results[TopicPartition, tuple[ProducerState, ...]]:
        """Return the producers whose transaction in a partition is open, but unknown to its coordinator (KIP-664).

        ``partitions`` None means all, with ``broker_id`` all that have a replica there. Transactions whose producer has
        written after ``last_write_before_ms`` (ms since 1970) are not hanging: their coordinator may learn of them yet.
        Raises the error of a coordinator that does not list its transactions.
        """
        return self._run(
            _hanging_transactions.find_hanging_transactions(
                self.client.core,
                partitions,
                last_write_before_ms=last_write_before_ms,
                broker_id=broker_id,
                timeout=timeout,
            )
        )

    # Security

    def describe_acls(
        self, acl_filter: AclFilter | None = None, *, timeout: float | None = None
    ) -> tuple[AclBinding, ...]:
        """Return the rules that match a filter, or all rules."""
        return self._run(_acls.describe_acls(self.client.core, acl_filter, timeout=timeout))

    def create_acls(self, acls: Sequence[AclBinding], *, timeout: float | None = None) -> Results[AclBinding, None]:
        """Create rules. A rule that exists already succeeds."""
        return self._run(_acls.create_acls(self.client.core, acls, timeout=timeout))

    def delete_acls(
        self, filters: Sequence[AclFilter], *, timeout: float | None = None
    ) -> Results[AclFilter, Results[AclBinding, None]]:
        """Delete the rules that match filters. The value of each filter is the outcome of each matching rule."""
        return self._run(_acls.delete_acls(self.client.core, filters, timeout=timeout))

    def describe_client_quotas(
        self,
        entity: Mapping[str, str | _AnyName | None] | None = None,
        *,
        strict: bool = False,
        timeout: float | None = None,
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return the quotas of the entities that match a filter, or all quotas.

        The filter has the name of each type, None for the default of the type, or ``ANY_NAME``. ``strict`` excludes
        entities with additional types.
        """
        return self._run(_quotas.describe_client_quotas(self.client.core, entity, strict=strict, timeout=timeout))

    def alter_client_quotas(
        self,
        quotas: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> Results[QuotaEntity, None]:
        """Set quotas of entities by name, such as ``consumer_byte_rate`` (bytes per second); None removes a quota."""
        return self._run(
            _quotas.alter_client_quotas(self.client.core, quotas, validate_only=validate_only, timeout=timeout)
        )

    def describe_user_scram_credentials(
        self, users: Collection[str] | None = None, *, timeout: float | None = None
    ) -> Results[str, tuple[CredentialInfo, ...]]:
        """Return the SCRAM credentials of users, or of all users: mechanism and iterations, never the password."""
        return self._run(_users.describe_user_scram_credentials(self.client.core, users, timeout=timeout))

    def alter_user_scram_credentials(
        self, changes: Sequence[ScramUpsertion | ScramDeletion], *, timeout: float | None = None
    ) -> Results[str, None]:
        """Create, replace and delete SCRAM credentials. All changes of a user succeed or fail together."""
        return self._run(_users.alter_user_scram_credentials(self.client.core, changes, timeout=timeout))

    def create_delegation_token(
        self,
        *,
        owner: Principal | None = None,
        renewers: Collection[Principal] = (),
        max_lifetime_ms: int = -1,
        timeout: float | None = None,
    ) -> CreateDelegationTokenResponse:
        """Create a delegation token (KIP-48) for this user, or for another owner (KIP-373).

        A ``max_lifetime_ms`` of -1 is the broker's lifetime. The response has the token's id and its secret, ``hmac``.
        """
        return self._run(
            _users.create_delegation_token(
                self.client.core, owner=owner, renewers=renewers, max_lifetime_ms=max_lifetime_ms, timeout=timeout
            )
        )

    def renew_delegation_token(self, hmac: bytes, *, renew_period_ms: int = -1, timeout: float | None = None) -> int:
        """Renew a token; return its new expiry time in ms since 1970. -1 is the broker's period."""
        return self._run(
            _users.renew_delegation_token(self.client.core, hmac, renew_period_ms=renew_period_ms, timeout=timeout)
        )

    def expire_delegation_token(self, hmac: bytes, *, expiry_period_ms: int = -1, timeout: float | None = None) -> int:
        """Expire a token after a period in ms, or immediately with -1. Return its expiry time in ms since 1970."""
        return self._run(
            _users.expire_delegation_token(self.client.core, hmac, expiry_period_ms=expiry_period_ms, timeout=timeout)
        )

    def describe_delegation_tokens(
        self, owners: Collection[Principal] | None = None, *, timeout: float | None = None
    ) -> tuple[DescribedDelegationToken, ...]:
        """Return the tokens of owners, or all tokens that the client may see, with their secrets."""
        return self._run(_users.describe_delegation_tokens(self.client.core, owners, timeout=timeout))

    # The cluster

    def describe_cluster(
        self,
        *,
        controllers: bool = False,
        include_fenced_brokers: bool = False,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> ClusterDescription:
        """Return the nodes of the cluster. ``controllers`` requests controllers instead of brokers (KIP-919).

        Only a controller responds to that: the client must be connected to controllers.
        """
        return self._run(
            _cluster.describe_cluster(
                self.client.core,
                controllers=controllers,
                include_fenced_brokers=include_fenced_brokers,
                include_authorized_operations=include_authorized_operations,
                timeout=timeout,
            )
        )

    def find_coordinators(
        self, keys: Collection[str], kind: CoordinatorKind = CoordinatorKind.GROUP, *, timeout: float | None = None
    ) -> Results[str, int]:
        """Return the broker id of the coordinator of each group, transaction or share partition."""
        return self._run(_cluster.find_coordinators(self.client.core, keys, kind, timeout=timeout))

    def api_versions(self, broker_id: int | None = None, *, timeout: float | None = None) -> ApiVersionsResponse:
        """Return the capabilities of a broker: its versions of every api, and its features."""
        return self._run(_cluster.api_versions(self.client.core, broker_id, timeout=timeout))

    def describe_features(self, broker_id: int | None = None, *, timeout: float | None = None) -> Features:
        """Return the features of the cluster, and the levels that the queried broker supports (KIP-584)."""
        return self._run(_cluster.describe_features(self.client.core, broker_id, timeout=timeout))

    def update_features(
        self, updates: Mapping[str, int | FeatureUpdate], *, validate_only: bool = False, timeout: float | None = None
    ) -> Results[str, None]:
        """Change the levels of features. From version 2 of the api on, an update is atomic and raises its error."""
        return self._run(
            _cluster.update_features(self.client.core, updates, validate_only=validate_only, timeout=timeout)
        )

    def describe_quorum(self, *, timeout: float | None = None) -> Quorum:
        """Return the state of the controller quorum."""
        return self._run(_cluster.describe_quorum(self.client.core, timeout=timeout))

    def add_raft_voter(
        self,
        voter_id: int,
        directory_id: UUID,
        listeners: Mapping[str, Address],
        *,
        cluster_id: str | None = None,
        wait_until_committed: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Add a controller to the quorum as a voter (KIP-853). ``directory_id`` is the id of its metadata directory."""
        return self._run(
            _cluster.add_raft_voter(
                self.client.core,
                voter_id,
                directory_id,
                listeners,
                cluster_id=cluster_id,
                wait_until_committed=wait_until_committed,
                timeout=timeout,
            )
        )

    def remove_raft_voter(
        self, voter_id: int, directory_id: UUID, *, cluster_id: str | None = None, timeout: float | None = None
    ) -> None:
        """Remove a voter from the controller quorum (KIP-853)."""
        return self._run(
            _cluster.remove_raft_voter(self.client.core, voter_id, directory_id, cluster_id=cluster_id, timeout=timeout)
        )

    def unregister_broker(self, broker_id: int, *, timeout: float | None = None) -> None:
        """Remove the registration of a broker that has permanently left the cluster."""
        return self._run(_cluster.unregister_broker(self.client.core, broker_id, timeout=timeout))

    def unregister_controller(self, controller_id: int, *, timeout: float | None = None) -> None:
        """Remove the registration of a controller that has permanently left the cluster."""
        return self._run(_cluster.unregister_controller(self.client.core, controller_id, timeout=timeout))

    def telemetry_subscriptions(
        self, client_instance_id: UUID | None = None, *, timeout: float | None = None
    ) -> GetTelemetrySubscriptionsResponse:
        """Return the metrics that the broker subscribes to for this client, and the client instance id (KIP-714)."""
        return self._run(_cluster.telemetry_subscriptions(self.client.core, client_instance_id, timeout=timeout))

    # The end

    def close(self) -> None:
        """Close the connections, if they are this object's own."""
        if not self._ended:
            self._ended = True
            if self._owns_client:
                self.client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
