"""Writers of the files that a broker keeps in its log directory; ``kafka_msgs.log`` reads them.

``indexes`` makes the indexes of a segment. ``files`` makes the small files.
"""
