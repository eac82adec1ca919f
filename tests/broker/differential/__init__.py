"""The differential campaign of the embedded broker: random scripts of requests to a real cluster and to ours.

``scripts`` makes scripts of a seed, out of ``pools`` and ``flows``. A ``tested_cluster`` is one of the clusters: it
sends the commands, and turns answers into what can be compared (``normalization``). ``known_differences`` has the
differences that are meant, with their reasons. ``campaign`` runs scripts on both sides; ``python -m
tests.broker.differential`` is its command.

A script is a list of commands, each a dictionary that can be saved as JSON. The names of a script begin with ``<p>``,
and what a cluster makes up (ids of topics, members and producers) has symbols such as ``<topicId 0>``: the number says
which of them an answer showed first. So the same script fits both clusters, and can be run again.
"""
