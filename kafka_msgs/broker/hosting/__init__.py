"""Coordinators in the brokers of a cluster: each lives on the broker that leads the partition with its records.

``leading`` follows the leaders. ``groups`` and ``transactions`` give the state machines of ``kafka_msgs.groups`` and
``kafka_msgs.broker.transactions`` what they need: the log, the time, and the topics of the cluster.
"""
