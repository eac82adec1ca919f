"""What the records of Kafka's internal topics mean.

``records`` turns a key and a value into typed messages and back. ``batch_decoding`` takes the records out of record
batches. ``replay`` loads records into the state that a coordinator holds; ``share_state`` does the part of share
partitions. ``remote_log`` does the same for the segments in tiered storage. ``group_descriptions`` gives a group as its
coordinator describes it, ``consumer_protocol`` opens the bytes that classic members sent.

Nothing here opens a file or a connection: batches and records come from the caller. Nothing is imported by this
module, so that each part costs only what it needs.
"""
