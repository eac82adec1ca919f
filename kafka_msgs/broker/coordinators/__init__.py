"""Coordinators in the brokers of a cluster: each lives on the broker that leads the partition with its records.

``leadership`` follows the leaders. ``group_service`` and ``transaction_service`` give the state machines of
``kafka_msgs.groups`` and ``kafka_msgs.broker.transactions`` what they need: the log, the time, and the topics of the
cluster.
"""
