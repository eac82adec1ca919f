"""The sources of the C core, and the extension that is built of them.

``extension`` is there as a whole or not at all; ``kafka_msgs._backend`` decides whether it is used. The core owns speed
and nothing else: without it the library does the same in Python.
"""
