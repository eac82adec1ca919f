"""Writers of the files that a broker keeps in its log directory; ``kafka_msgs.log`` reads them.

``partition_writer`` writes a partition from records, ``segment_writer`` a segment from batches, and ``index_writer``
decides about the entries of its indexes. ``small_files`` makes the small files. ``directory_lock`` holds off brokers.
"""
