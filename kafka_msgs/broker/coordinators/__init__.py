"""Coordinators of a cluster: each runs on the broker that leads the partition with its records.

``leadership`` follows leader changes. ``group_service`` and ``transaction_service`` connect the state machines of
``kafka_msgs.groups`` and ``kafka_msgs.broker.transactions`` to the log, the clock and the topics of the cluster.
"""
