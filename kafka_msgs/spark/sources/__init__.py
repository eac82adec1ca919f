"""The Spark data sources: broker files as tables.

This module imports none of them, so that each source loads only its dependencies. ``kafka_msgs.spark.register``
registers all of them.
"""
