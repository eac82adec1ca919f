"""The lines that a client of the campaign prints, one for each event; times are milliseconds since the epoch.

A client is a process with a writer and a reader. The writer sends ``BURST`` records to each partition every ``TICK``
seconds, with the key ``k<partition>`` and a value that begins with the sequence number of the record in its partition.
The reader is a member of a group, and reads the same topic. A line on the standard input drains the writer; its end
also ends the reader. Java and Go programs follow the same rules.

=====================================  ===============================================================
``A time partition sequence offset``   the writer received the acknowledgement of a record
``F partition sequence reason``        the record failed; it may be in the topic or not
``X partition sequence``               the transaction of the record was aborted: no reader may see it
``R time partition offset sequence``   the reader received a record
``C partition offset``                 the group committed this offset
``E writer|reader reason``             an error ended the writer or the reader, and a new one begins
``D``                                  the writer has ended: every record is acknowledged or has failed
=====================================  ===============================================================
"""

from __future__ import annotations

from typing import Final

__all__ = ["BURST", "OUTSTANDING", "PARTITIONS", "TICK"]

PARTITIONS: Final = 3
BURST: Final = 3
TICK: Final = 0.05
OUTSTANDING: Final = 500
"""The maximum number of unacknowledged records of a partition. The writer skips a partition that has more."""
