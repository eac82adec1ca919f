"""The basic operations of message instances: construction, comparison, hashing, replacement and deallocation.

attrs builds the classes, and ``schema.py`` adds equality. That is the complete behaviour. ``native`` implements the
same behaviour in the C core, and ``python`` adds nothing to it.
"""
