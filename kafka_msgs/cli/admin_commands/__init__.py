"""The commands over ``kafka_msgs.admin``, one module per command: each prints one table.

``outcomes`` prints the outcomes of changes. Option names follow Kafka's own tools.
"""
