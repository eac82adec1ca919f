"""Interpretation of the records in Kafka's internal topics.

``records`` converts keys and values to typed messages and back. ``batch_decoding`` extracts the records from record
batches. ``replay`` loads records into the state of a coordinator, with ``share_state`` for share partitions.
``remote_log`` builds the state of segments in tiered storage. ``group_descriptions`` describes a group like its
coordinator, and ``consumer_protocol`` decodes the bytes that classic members sent.

This package does not open files or connections: the caller provides batches and records. This module does not import
the submodules, so that each one loads only its dependencies.
"""
