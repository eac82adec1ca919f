"""What the commands ``consumer-groups``, ``streams-groups`` and ``share-groups`` have in common.

``option_rules`` says which options go together, ``specs`` what differs between the commands. ``group_source`` gives
groups, of a broker or of log directories; ``describe_rows`` is what is shown of them. ``read_actions`` and
``change_actions`` do what was asked for, and ``command`` makes the three commands.
"""
