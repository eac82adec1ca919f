"""Quotas of clients: what they may use, what they have used, and how long they must wait. No sockets, no clock.

``limits`` finds the quota that is for a client, ``stats`` measures what it uses over time, and ``meters`` brings both
together for one broker. This is the work of Kafka's ``ClientQuotaManager`` and its like.
"""

from kafka_msgs.broker.quotas.meters import ClientQuotaManager, QuotaMeter, QuotaMeters
from kafka_msgs.broker.quotas.stats import Window

__all__ = ["ClientQuotaManager", "QuotaMeter", "QuotaMeters", "Window"]
