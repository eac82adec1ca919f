"""Client quotas: limits, usage and throttle times, without sockets or a clock.

``limits`` finds a client's quota, ``stats`` measures its usage over time, and ``meters`` combines both for one broker.
In Kafka, these are ``ClientQuotaManager`` and its subclasses.
"""

from kafka_msgs.broker.quotas.meters import ClientQuotaManager, QuotaMeter, QuotaMeters, Window

__all__ = ["ClientQuotaManager", "QuotaMeter", "QuotaMeters", "Window"]
