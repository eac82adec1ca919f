"""Analysis of a broker's log directories in one process, without a broker and without Spark.

``partition_discovery`` finds partitions and their end offsets. ``groups`` returns every group with its members,
committed offsets and lag. ``share_groups`` returns the start offsets of share groups. ``topic_profile`` describes the
content of topics. ``tiered_partitions`` returns partitions that are partly in remote storage; ``remote_ranges`` selects
the segment for each offset. For logs that are too large for one process, the jobs in ``kafka_msgs.spark.jobs`` return
the same results. This module does not import anything.
"""
