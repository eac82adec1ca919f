"""The C core as a whole: arguments that are not what its own callers give."""
