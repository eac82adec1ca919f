"""Known reasons for failing tests, as data: by suite, and by pattern of test names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["REMARKS"]

_NO_KERBEROS: Final = "needs a Kerberos server"
_TIME: Final = "waits for a short time only, and the machine was loaded; it passes alone"
_AT_ONCE: Final = "joins with a rebalance timeout of 0 ms, and is removed before it goes on"
_SKIPPED: Final = "the suite itself leaves it out"

REMARKS: Final[Mapping[str, Mapping[str, str]]] = {
    "aiokafka": {"*gssapi*": _NO_KERBEROS, "*unknown_topic_describe*": "needs Kafka older than 1.0"},
    "kafka-python": {"*offsets_for_time_old*": "needs Kafka 0.10.0 or older"},
    "confluent-kafka-python": {
        "*upgrade_downgrade*": "runs with KIP-848 only: see the next suite",
        "*caps_in_flight*": "expects a lower limit of records in flight than Kafka 4.4 has",
        "*share_consumer_sasl*": _SKIPPED,
    },
    "confluent-kafka-python-848": {
        "*test_incremental_alter_configs*": "expects groups without settings; the brokers here have some for them",
        "*test_consume_error*": "not for KIP-848",
    },
    "franz-go": {
        "TestShareGroupETL*": _TIME,
        "TestIssueProduceBrokerTooOld*": "needs a broker without version 3 of Produce",
        "TestIssueFetchLarger*": _TIME,
        "Test848RegexBrokerResolves": _TIME,
    },
    "kafkajs": {
        "*/brokerPool.spec.js*": "expects the error that older brokers gave for a topic that is being created",
        "*/describeConfigs.spec.js*": "expects the settings of older brokers",
        "*max timestamp difference*": "sets what Kafka 4.0 removed",
        "*recovers from offset out of range*": _AT_ONCE,
        "*/consumeMessages.spec.js*": "the coordinator of the real broker was still loading",
        "*/alterConfigs.spec.js*": "the real broker did not know the new topic yet",
        "*OAUTHBEARER*": "needs OAUTHBEARER",
        "*ListOffsets v0 request*": "asks with a version that Kafka 4.0 removed",
        "*OffsetCommit request*": _AT_ONCE,
        "*/fetch.spec.js*": _SKIPPED,
        "*/instrumentationEvents.spec.js*": _SKIPPED,
        "*/fetchOffsets.spec.js*": "the real broker did not know the new topic yet",
    },
}
