"""What instances of message classes do most: they are made, compared, hashed, changed and freed.

attrs makes the classes, and ``schema.py`` gives them equality. That is the whole behaviour. ``native`` does the same in
the C core, and ``python`` adds nothing to it.
"""
