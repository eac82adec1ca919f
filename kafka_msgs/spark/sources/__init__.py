"""The data sources of Spark: files of brokers as tables.

Nothing is imported here, so that a source costs only what it needs; ``kafka_msgs.spark.register`` knows them all.
"""
