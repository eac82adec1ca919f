"""The output of jobs: files that become visible by one commit, and Delta and Iceberg tables that refer to them.

``task_output`` writes the files of a task, ``commit_log`` commits them with a manifest, and ``job_tables`` applies the
commit to tables in other formats. ``table_format`` defines the interface of formats, which ``delta`` and ``iceberg``
implement with the libraries of the extras of the same names, without a JVM.
"""

from typing import TYPE_CHECKING

from kafka_msgs.lazy_modules import lazy_module_attributes

if TYPE_CHECKING:
    from kafka_msgs.tables.factory import FORMAT_NAMES, get_format
else:
    __getattr__, __dir__ = lazy_module_attributes(__name__, {"FORMAT_NAMES": "factory", "get_format": "factory"})

__all__ = ["FORMAT_NAMES", "get_format"]
