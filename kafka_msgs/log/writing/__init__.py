"""Writers of the files that a broker keeps in its log directory; ``kafka_msgs.log`` reads them.

``segments`` writes a segment from batches, and ``indexes`` decides about the entries of its indexes. ``files`` makes
the small files.
"""
