"""Writers of the files in a broker's log directory; ``kafka_msgs.log`` reads them.

``partition_writer`` writes a partition from records, ``segment_writer`` a segment from batches, and ``index_writer``
decides which entries its indexes contain. ``small_files`` formats the small files. ``directory_lock`` keeps brokers
out.
"""
