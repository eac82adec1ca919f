"""The sources of the C core, and the extension that is built of them.

``extension`` is one module, which was built or was not. ``kafka_msgs._backend`` decides whether it is used. The core
only makes the library faster: without it the library does the same in Python.
"""
