"""The runtime of coordinators: state in the records of an internal topic, one shard for each of its partitions.

``CoordinatorRuntime`` serves group coordinators, share coordinators and transaction coordinators. It uses no sockets,
clocks or threads. A coordinator defines its state, the appliers of its records, and its operations. The source is
``org.apache.kafka.coordinator.common.runtime``.
"""
