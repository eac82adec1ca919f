"""Files on any filesystem by one form of path, and how each filesystem is reached: settings, credentials, packages.

Needs the extra ``arrow``. Filesystems that Arrow does not know need the extra ``fsspec``, HDFS without Java the extra
``hdfs``. Nothing here needs Spark.
"""
