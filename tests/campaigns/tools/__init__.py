"""Kafka's command line tools on a real cluster and on an embedded one: ``python -m tests.campaigns.tools``.

Runs the same invocations, ``invocations.txt``, on three real nodes and on three embedded brokers, and compares status
and output. ``normalization`` replaces ids, times and addresses, and ``known_differences`` lists the intended
differences. The tools of each cluster run in one Java process. The campaign takes some minutes; it requires Java 17 or
newer and Maven.
"""
