"""The commands over ``kafka_msgs.admin``, one module per command: each prints one table.

``outcomes`` prints the outcomes of changes. Option names are those of Kafka's own tools.
"""
