"""Answers from a broker's log directories in one process: no broker, no Spark.

``directories`` finds partitions and their ends, ``groups`` gives every group with its members, committed offsets and
lag, ``profile`` says what is in topics. The jobs in ``kafka_msgs.spark.jobs`` answer the same questions, with the same
numbers, where the logs are too large for one process. Nothing is imported by this module.
"""
