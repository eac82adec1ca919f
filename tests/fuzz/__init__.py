"""Coverage-guided fuzzing of the C core: ``make fuzz MINUTES=5``.

``target`` says what must hold for every input, ``seeds`` where inputs start from, ``__main__`` runs the fuzzer.
"""
