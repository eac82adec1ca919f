"""The differential campaign of the embedded broker: random request scripts on a real cluster and on an embedded one.

``scripts`` builds scripts from a seed, using ``pools`` and ``flows``. A ``tested_cluster`` is one of the clusters: it
sends the commands, and converts responses to a comparable form (``normalization``). ``known_differences`` lists the
intended differences with their reasons. ``campaign`` runs scripts on both sides; ``python -m
tests.broker.differential`` is its command.

A script is a list of commands, each a dictionary that can be saved as JSON. All names in a script begin with ``<p>``.
Values that a cluster generates (ids of topics, members and producers) are symbols such as ``<topicId 0>``, numbered in
the order in which responses show them. So the same script works on both clusters, and can be replayed.
"""
