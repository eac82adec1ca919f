"""Answers to questions about log directories, as reducers: the state of a range of a log, and its combination.

``reducer`` defines the interface. ``committed_offsets`` reduces ``__consumer_offsets``, including the records of
groups, ``latest_records`` reduces ``__share_group_state`` and ``__transaction_state``, and ``hourly_stats`` reduces
ordinary topics. One process, a task per range, and a run that resumes an earlier one are the same operations on these
states. Only ``in_memory`` reads files. With it, ``groups`` and ``topic_profile`` run the reducers over local partitions
for the commands on log directories.

``job`` is the interface to the engines. ``group_offsets_job``, ``group_state_job`` and ``profile_job`` define the jobs
and write their tables; the reports about them have separate modules.

``record_classification`` determines the role of each record of ``__consumer_offsets``, ``live_records`` keeps the
records that still count, and ``offset_tables`` decodes them.
"""
