"""What a broker keeps in its log directory.

``internal_topics`` reads and writes the records of the topics that Kafka keeps for itself, and ``topic_state`` loads
them as a coordinator would. Nothing is imported here, so that each costs only what it needs.
"""
