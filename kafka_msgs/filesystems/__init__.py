"""Files on any filesystem with uniform paths, and the access to filesystems: settings, credentials and packages.

Needs the extra ``arrow``. Filesystems that Arrow does not support need the extra ``fsspec``, and HDFS without Java the
extra ``hdfs``. Spark is not required.
"""
