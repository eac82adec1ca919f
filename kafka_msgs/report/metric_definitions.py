"""The names, labels, types and descriptions of all metrics, in reports, in ``kafka-msgs lag`` and in its exporter.

Metrics of a cluster start with ``kafka_``, metrics of a report or an exporter itself with ``kafka_msgs_``. The table in
the documentation is generated from this module.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Literal, TypeAlias

from attrs import frozen

__all__ = ["DEFINITIONS", "LagStatus", "MetricDefinition", "MetricType"]

MetricType: TypeAlias = Literal["gauge", "counter"]


class LagStatus(IntEnum):
    """The status of a group in a partition. A larger number is worse; status metrics have it as their value."""

    UNKNOWN = 0
    OK = 1
    WARNING = 2
    STOPPED = 3
    STALLED = 4
    REWOUND = 5


@frozen
class MetricDefinition:
    """A metric. All samples can also have the label ``cluster``.

    The labels ``client_id`` and ``member_host`` are empty if the partition has no known owner.
    """

    name: str
    labels: tuple[str, ...]
    help: str
    type: MetricType = "gauge"


_PARTITION: Final = ("group", "topic", "partition")
_OWNED: Final = (*_PARTITION, "client_id", "member_host")
_TOPIC: Final = ("group", "topic")
_GROUP: Final = ("group",)
_CLIENT: Final = ("client", "software")
_STATUS: Final = ", ".join(f"{each}: {each.name}" for each in LagStatus)

_ALL: Final = (
    ("kafka_group_lag_records", _OWNED, "Offsets between the committed offset and the end of the partition."),
    ("kafka_group_lag_seconds", _OWNED, "Age of the first unconsumed record."),
    ("kafka_group_ahead_records", _OWNED, "Offsets of the commit beyond the end of the partition."),
    ("kafka_group_committed_offset", _OWNED, "The offset that the group committed last."),
    ("kafka_group_end_offset", _OWNED, "The end of the partition."),
    ("kafka_group_partition_status", _OWNED, f"Status of the partition by its window of commits. {_STATUS}."),
    ("kafka_group_consumed_per_hour", _PARTITION, "Records that the group consumed per hour, by its commits."),
    ("kafka_group_produced_per_hour", _PARTITION, "Records that were written to the partition per hour."),
    ("kafka_group_catch_up_seconds", _PARTITION, "Time until the group has consumed all records, at its rate."),
    ("kafka_group_streams_partition_time_seconds", _PARTITION, "Partition time of Kafka Streams, since the epoch."),
    ("kafka_group_lag_records_sum", _GROUP, "Sum of the known lags of the group, over all its partitions."),
    ("kafka_group_lag_records_max", _GROUP, "Largest known lag of the group in a partition."),
    ("kafka_group_ahead_records_sum", _GROUP, "Sum of the offsets beyond the ends; not deducted from the lag."),
    ("kafka_group_partitions", _GROUP, "Partitions with a committed offset."),
    ("kafka_group_unknown_lag_partitions", _GROUP, "Partitions with a committed offset and an unknown end."),
    ("kafka_group_status", _GROUP, f"Worst status of the group's partitions. {_STATUS}."),
    ("kafka_group_topic_lag_records_sum", _TOPIC, "Sum of the known lags of the group in the topic."),
    ("kafka_group_topic_lag_records_max", _TOPIC, "Largest known lag of the group in a partition of the topic."),
    ("kafka_group_topic_ahead_records_sum", _TOPIC, "Sum of the offsets beyond the ends; not deducted from the lag."),
    ("kafka_group_topic_partitions", _TOPIC, "Partitions of the topic with a committed offset."),
    ("kafka_group_topic_unknown_lag_partitions", _TOPIC, "Partitions of the topic with an unknown end."),
    ("kafka_group_members", _GROUP, "Members of the group."),
    ("kafka_group_idle_members", _GROUP, "Members without partitions and tasks."),
    ("kafka_group_assignment_skew_ratio", _GROUP, "Largest assignment divided by the mean."),
    ("kafka_topic_bytes", ("topic",), "Size of the topic's logs, one replica each."),
    ("kafka_topic_skew_ratio", ("topic",), "Size of the largest partition divided by the mean."),
    ("kafka_topic_oldest_timestamp_seconds", ("topic",), "Time of the oldest record, since the epoch."),
    ("kafka_topic_growth_bytes_per_day", ("topic",), "Bytes written per day."),
    ("kafka_topic_retention_seconds", ("topic",), "The config retention.ms."),
    ("kafka_topic_retention_bytes", ("topic",), "The config retention.bytes."),
    ("kafka_topic_overdue_seconds", ("topic",), "Age of the closed segments beyond retention.ms."),
    ("kafka_partition_bytes", ("topic", "partition"), "Size of the log of one replica."),
    ("kafka_partition_segments", ("topic", "partition"), "Segments of the log."),
    ("kafka_broker_leaders", ("broker",), "Partitions that the broker leads."),
    ("kafka_broker_replicas", ("broker",), "Replicas on the broker."),
    ("kafka_broker_leader_bytes", ("broker",), "Size of the partitions that the broker leads."),
    ("kafka_broker_replica_bytes", ("broker",), "Size of the replicas on the broker."),
    ("kafka_client_exchanges", _CLIENT, "Requests of the client in the captures."),
    ("kafka_client_latency_p50_seconds", _CLIENT, "Median latency, without requests that wait on purpose."),
    ("kafka_client_latency_p90_seconds", _CLIENT, "90th percentile of the same latencies."),
    ("kafka_client_latency_p99_seconds", _CLIENT, "99th percentile of the same latencies."),
    ("kafka_client_latency_max_seconds", _CLIENT, "Longest of the same latencies."),
    ("kafka_client_throttle_seconds", _CLIENT, "Sum of the throttle times in responses."),
    ("kafka_client_errors", _CLIENT, "Error codes other than 0 in responses."),
    ("kafka_client_problems", _CLIENT, "Exchanges that could not be decoded."),
    ("kafka_msgs_report_info", ("title",), "The report's title, and a label for each fact. The value is 1."),
    ("kafka_msgs_report_rows", ("title", "table"), "Displayed rows of each table of the report."),
    ("kafka_msgs_exporter_up", (), "1 if the last refresh of the exporter succeeded, otherwise 0."),
    ("kafka_msgs_exporter_problems", (), "Failed parts of the last refresh, such as a coordinator that is loading."),
    ("kafka_msgs_exporter_last_refresh_timestamp_seconds", (), "Time of the last successful refresh, since the epoch."),
    ("kafka_msgs_exporter_refresh_seconds", (), "Duration of the last refresh."),
)

DEFINITIONS: Final = {
    each.name: each
    for each in (
        *(MetricDefinition(*row) for row in _ALL),
        MetricDefinition("kafka_msgs_exporter_failed_refreshes_total", (), "Refreshes that failed.", "counter"),
    )
}
"""The definitions by name."""
