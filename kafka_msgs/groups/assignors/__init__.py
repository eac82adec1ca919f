"""Who gets which partitions or tasks: Kafka's server-side assignors as pure functions.

``spec`` has what they take and give. Each assignor gives exactly what Kafka's own gives, also where Kafka's result
follows from the order of its hash tables and heaps.
"""
