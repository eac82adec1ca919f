"""Answers from the log directories of a broker in one process, without a broker and without Spark.

``partition_discovery`` finds partitions and their ends. ``groups`` returns every group with its members, committed
offsets and lag. ``share_groups`` returns where share groups begin to read. ``topic_profile`` describes the content of
topics. ``tiered_partitions`` returns partitions of which a part is in remote storage; ``remote_ranges`` knows which
segment is read. The jobs in ``kafka_msgs.spark.jobs`` give the same answers, with the same numbers, if the logs are too
large for one process. This module does not import anything.
"""
