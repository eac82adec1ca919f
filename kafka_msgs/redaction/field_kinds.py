"""Classification of request and response fields by kind of secret. The tables do not change messages.

Kafka's definitions specify the entity type of many fields (topics, groups, transactional ids). The tables below
classify all other fields with text or bytes. An unclassified field belongs to every kind, so fields of a new release
are redacted until they are classified.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from kafka_msgs.schema import FieldInfo

__all__ = ["ALL_KINDS", "KEPT_NAMES", "RedactKind", "field_kinds", "is_classified"]


class RedactKind(StrEnum):
    """A kind of secret to redact."""

    TOPICS = "topics"
    """Topic names and patterns, and names derived from them: Kafka Streams stores and nodes."""
    GROUPS = "groups"
    """Group ids, instance ids of static members, and transactional ids."""
    CLIENTS = "clients"
    """Client ids, member ids, users and principals."""
    HOSTS = "hosts"
    """Hosts of clients and brokers, racks, paths, and cluster ids."""
    PAYLOADS = "payloads"
    """Record keys, values and headers, offset metadata, config values, and metrics."""
    SASL = "sasl"
    """Tokens and passwords: SASL, SCRAM credentials, delegation tokens, and configs that contain them."""


ALL_KINDS: Final = frozenset(RedactKind)
"""Every kind."""

_NONE: Final = frozenset[RedactKind]()
_TOPICS: Final = frozenset({RedactKind.TOPICS})
_GROUPS: Final = frozenset({RedactKind.GROUPS})
_CLIENTS: Final = frozenset({RedactKind.CLIENTS})
_HOSTS: Final = frozenset({RedactKind.HOSTS})
_PAYLOADS: Final = frozenset({RedactKind.PAYLOADS})
_SASL: Final = frozenset({RedactKind.SASL})
_TEXT: Final = ALL_KINDS - {RedactKind.SASL}
_NAMED: Final = _TOPICS | _GROUPS | _CLIENTS

KEPT_NAMES: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", "kafka-cluster", "*"}
)
"""Names that are the same in every cluster, which are not redacted."""

_BY_ENTITY: Final[Mapping[str | None, frozenset[RedactKind]]] = {
    "topicName": _TOPICS,
    "groupId": _GROUPS,
    "transactionalId": _GROUPS,
}

_BY_STRUCT: Final[Mapping[tuple[str, str], frozenset[RedactKind]]] = {
    ("ScramCredentialDeletion", "name"): _CLIENTS,
    ("ScramCredentialUpsertion", "name"): _CLIENTS,
    ("UserName", "name"): _CLIENTS,
    ("TopologyDescriptionNode", "name"): _TOPICS,
    ("FindCoordinatorRequest", "key"): _GROUPS,
    ("Coordinator", "key"): _GROUPS,
    ("JoinGroupRequestProtocol", "metadata"): _TOPICS | _PAYLOADS,
    ("JoinGroupResponseMember", "metadata"): _TOPICS | _PAYLOADS,
}
"""Kinds by class and attribute, for attributes that are ambiguous on their own."""

_BY_ATTRIBUTE: Final[Mapping[str, frozenset[RedactKind]]] = {
    **dict.fromkeys(("auth_bytes", "hmac", "salt", "salted_password", "token_id"), _SASL),
    **dict.fromkeys(("records", "unaligned_records", "committed_metadata", "metadata", "user_data"), _PAYLOADS),
    **dict.fromkeys(("metrics", "value"), _PAYLOADS),
    **dict.fromkeys(("assignment", "member_assignment", "member_metadata"), _TOPICS | _PAYLOADS),
    **dict.fromkeys(("request_data", "response_data"), ALL_KINDS),
    **dict.fromkeys(("client_id", "member_id", "leader", "process_id"), _CLIENTS),
    **dict.fromkeys(("principal", "principal_filter", "principal_name", "owner_principal_name"), _CLIENTS),
    **dict.fromkeys(("token_requester_principal_name", "request_principal", "user"), _CLIENTS),
    **dict.fromkeys(("entity_name", "match"), _CLIENTS),
    **dict.fromkeys(("host", "host_filter", "client_host", "client_host_address"), _HOSTS),
    **dict.fromkeys(("rack", "rack_id", "log_dir", "path", "cluster_id"), _HOSTS),
    **dict.fromkeys(("group_id", "group_instance_id", "instance_id", "coordinator_keys"), _GROUPS),
    "transactional_id_pattern": _GROUPS,
    **dict.fromkeys(("topics", "source_topic_regex", "subscribed_topic_regex", "stores", "successors"), _TOPICS),
    **dict.fromkeys(("resource_name", "resource_name_filter"), _NAMED),
    **dict.fromkeys(("error_message", "batch_index_error_message", "acknowledge_error_message"), _TEXT),
    **dict.fromkeys(("reason", "status_detail"), _TEXT),
    # Protocol terms.
    **dict.fromkeys(("assignor_name", "server_assignor", "protocol_name", "protocol_type", "protocol_data"), _NONE),
    **dict.fromkeys(("client_software_name", "client_software_version", "feature", "mechanism", "mechanisms"), _NONE),
    **dict.fromkeys(("configuration_keys", "documentation", "key", "name", "requested_metrics"), _NONE),
    **dict.fromkeys(("group_state", "group_type", "states_filter", "types_filter", "transaction_state"), _NONE),
    **dict.fromkeys(("state_filters", "unknown_state_filters", "subtopology_id", "entity_type"), _NONE),
    **dict.fromkeys(("principal_type", "owner_principal_type", "token_requester_principal_type"), _NONE),
}


def field_kinds(struct: type[Any], field: FieldInfo) -> frozenset[RedactKind]:
    """Return the kinds of secrets that a field may contain. It is redacted if any of these kinds is selected."""
    found = _BY_STRUCT.get((struct.__name__, field.attribute)) or _BY_ENTITY.get(field.entity_type)
    return _BY_ATTRIBUTE.get(field.attribute, ALL_KINDS) if found is None else found


def is_classified(struct: type[Any], field: FieldInfo) -> bool:
    """Return whether a field is classified. Fields without text or bytes need no classification."""
    return (
        (struct.__name__, field.attribute) in _BY_STRUCT
        or field.entity_type in _BY_ENTITY
        or field.attribute in _BY_ATTRIBUTE
    )
