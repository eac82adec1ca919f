"""Kafka Connect and MirrorMaker on embedded brokers: ``python -m tests.campaigns.connect [--scenario mirror]``.

Workers of Kafka Connect copy files into topics and topics into files, with exactly-once sources, while tasks restart,
workers join and leave, and one worker is killed. MirrorMaker replicates a cluster to another one and is killed in
between; one of the two clusters may be a real one. Each scenario compares all records: none is lost, and none is
repeated. ``clusters`` starts the brokers, ``processes`` the Java programs, ``workers`` talks to Connect's REST API, and
``file_copies`` and ``mirrors`` contain the scenarios. Requires Java 17 or newer and Maven.
"""
