"""The files that a broker keeps in its log directory.

``partition`` lists the partitions and their files. ``segment``, ``scan`` and ``index`` read segments and their indexes,
``files`` reads the small files. ``summary`` counts what a file holds, ``index_check`` compares an index with its
segment. What the records of internal topics mean is left to ``kafka_msgs.topics``. Nothing is imported by this module,
so that each part costs only what it needs.
"""
