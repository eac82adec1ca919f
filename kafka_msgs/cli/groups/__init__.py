"""What the commands ``consumer-groups``, ``streams-groups`` and ``share-groups`` have in common.

``arguments`` says which options go together, ``kinds`` what differs between the commands. ``source`` gives groups, of a
broker or of log directories; ``rows`` is what is shown of them. ``actions`` and ``changes`` do what was asked for, and
``command`` makes the three commands.
"""
