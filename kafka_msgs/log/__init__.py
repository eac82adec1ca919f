"""What a broker keeps in its log directory.

``partition`` lists what lies there; ``segment``, ``scan`` and ``index`` read segments and their indexes, ``files`` the
small files. ``summary`` says what a file comes to, ``index_check`` whether an index fits its segment.
``internal_topics`` reads and writes the records of the topics that Kafka keeps for itself, ``topic_records`` takes them
out of their logs, and ``topic_state`` loads them as a coordinator would. Nothing is imported here, so that each costs
only what it needs.
"""
