"""Writers of the files that a broker keeps in its log directory; ``kafka_msgs.log`` reads them.

``partitions`` writes a partition from records, ``segments`` a segment from batches, and ``indexes`` decides about the
entries of its indexes. ``files`` makes the small files. ``directory_lock`` holds off brokers.
"""
