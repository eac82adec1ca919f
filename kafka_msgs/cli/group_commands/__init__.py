"""The common parts of the commands ``consumer-groups``, ``streams-groups`` and ``share-groups``.

``option_rules`` defines the valid option combinations, ``specs`` the differences between the commands. ``group_source``
reads groups, from a broker or from log directories; ``describe_rows`` formats them. ``read_actions`` and
``change_actions`` perform the actions, and ``command`` creates the three commands.
"""
