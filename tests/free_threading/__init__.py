"""The library in many threads at once, with the GIL and without it. ``build_python.sh`` builds a CPython without."""
