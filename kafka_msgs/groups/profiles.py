"""Profiles for differences between KIP-1071 and the release.

The code supports both behaviours. Each difference is a field of ``Profile``, and its docstring has both behaviours and
the reason. ``SHIPPED`` is Kafka 4.4.0, which real clients talk to. ``page.KIP_1071_PAGE`` is the document (KIP-1071)
as a superset. A handler checks a field, never a profile. A bug of the release is a field of ``compat.quirks.Quirks``.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

__all__ = ["SHIPPED", "Profile", "StreamsRules"]


@frozen(kw_only=True)
class StreamsRules:
    """The options for streams groups. Each is False for ``shipped`` and True for ``page``."""

    source_patterns: bool = False
    """Shipped: a pattern of source topics is refused with INVALID_REQUEST. Page: patterns in RE2 syntax are resolved
    against the topics, and an invalid pattern gives STREAMS_INVALID_TOPOLOGY. The release does not implement patterns
    yet."""

    generates_member_ids: bool = False
    """Shipped: an empty member id is refused. Page: the coordinator generates an id for a member that joins without
    one. The document contains both behaviours; this is the one in its request validation, and clients that generate ids
    get the same service."""

    complete_joins: bool = False
    """Shipped: a first heartbeat may have a rebalance timeout of 0, and a topology without subtopologies. Page: the
    timeout must be larger than 0, and an empty topology gives INVALID_REQUEST, because the schema calls it invalid."""

    disjoint_roles: bool = False
    """Shipped: a task may be in two roles of one heartbeat. Page: INVALID_REQUEST."""

    checks_topics: bool = False
    """Shipped: an internal topic may have several roles, and an unresolvable topology gives STREAMS_INVALID_TOPOLOGY
    when topics are configured. Page: all rules for the topics of a topology are checked first."""

    topology_updates: bool = False
    """Shipped: an older topology epoch joins and gets status 0, another topology gives INVALID_REQUEST. Page: the epoch
    of a member that joins is compared with the group's epoch. An older epoch gives STREAMS_TOPOLOGY_FENCED, the next
    epoch updates the topology, and any other difference gives STREAMS_INVALID_TOPOLOGY_EPOCH. Topologies that differ
    only in order are equal. The release does not implement updates yet."""

    tolerates_old_topologies: bool = False
    """Shipped: a task outside the current topology gives INVALID_REQUEST. Page: a member with an older topology epoch
    is not checked, since the check would break rolling upgrades; it keeps its tasks and gets no new ones."""

    fencing_removes_member: bool = False
    """Shipped: a heartbeat at a wrong epoch is refused, and the member stays. Page: the member is removed."""

    bumps_for_assignment_only: bool = False
    """Shipped: each change in the report of a dynamic member increases the group epoch. Page: only a change of its
    topology epoch, rack, client tags or process does."""

    reports_status_changes_only: bool = False
    """Shipped: each response has the status list. Page: the list is null if it equals the member's previous list."""

    shutdown_on_leave: bool = False
    """Shipped: the shutdown flag takes effect in each heartbeat. Page: it is ignored unless the member leaves."""

    assigns_without_delay: bool = False
    """Shipped: the first assignment of a group and later ones are delayed (status 5). Page: assignments are not
    delayed, and the status does not exist."""

    chooses_assignor: bool = False
    """Shipped: the coordinator's first assignor, sticky, if the group names none. Page: highly_available if a
    subtopology has state, otherwise sticky, and a group may name either."""

    limits_topic_creation: bool = False
    """Shipped: each heartbeat requests missing internal topics, and the broker limits attempts. Page: one attempt at a
    time, with a growing back-off, none without the permission, and the status detail reports the attempt."""

    ignores_internal_topic_changes: bool = False
    """Shipped: a change of any topic of the topology increases the group epoch. Page: only a change of a topic that is
    read does. Changelog topics still determine whether the group is ready."""

    shares_offsets: bool = False
    """Shipped: each member has the task offsets that it reported. Page: members of a process share their state on disk,
    so the latest offset that any of them reported applies."""

    requires_group_version: bool = False
    """Shipped: the protocol needs level 1 of the feature ``streams.version``. Page: level 2 of ``group.version``, the
    level after KIP-848. The release introduced a separate feature for the protocol."""

    stricter_permissions: bool = False
    """Shipped: a heartbeat needs DESCRIBE on the topics of its topology, and a description DESCRIBE on the group. Page:
    DESCRIBE_CONFIGS on the topics, and READ on the group. The broker checks permissions, not the coordinator."""

    ends_caught_up_warmups: bool = False
    """Shipped: no warm-up task is ever assigned, so none catches up. Page: the group epoch increases when a member
    reports that a warm-up task has caught up, so that the next assignment changes the role of the task."""


@frozen(kw_only=True)
class Profile:
    """The options of a coordinator."""

    name: str
    """The name of the profile in documents and tests."""

    streams: StreamsRules = StreamsRules()
    """The options for streams groups."""

    streams_extension: str | None = None
    """The name of a module that is a ``StreamsExtension``, which source patterns need. Shipped: none, and only an empty
    group changes between the classic and the streams protocol. Page: a member of the streams protocol turns a classic
    group of Streams applications into a streams group, whose existing members continue with the classic protocol; when
    only these remain, the group becomes a classic group again. They must send user data of version 12, which has the
    inputs of an assignment. The release does not implement it."""


SHIPPED: Final = Profile(name="shipped")
"""The behaviour of Kafka 4.4.0."""
