"""Answers to questions about log directories, as reducers: the state of a range of a log, and its combination.

A reducer has ``add``, ``merge`` and ``checkpoint``. The state of a range and the state of the range after it merge to
the state of both together, so that a log may be cut anywhere between two batches. One process, a task per range, and a
run that resumes an earlier one are the same operations. A state is bounded by what can still have an effect, and by one
buffer. ``committed_offsets`` reduces ``__consumer_offsets``, including the records of groups, ``share_offsets`` reduces
``__share_group_state``, ``hourly_stats`` reduces ordinary topics, and ``capture_stats`` reduces captured traffic.

Only ``in_memory`` reads files. With it, ``groups`` and ``topic_profile`` run the reducers over local partitions for the
commands on log directories.

``job`` is the interface to the engines. ``group_offsets_job``, ``group_state_job`` and ``profile_job`` define the jobs
and write their tables; the reports about them have separate modules.

``record_classification`` determines the role of each record of ``__consumer_offsets``, ``live_records`` keeps the
records that still count, and ``offset_tables`` decodes them.
"""
