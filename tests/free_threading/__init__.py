"""The library in many threads, with and without the GIL. ``build_python.sh`` builds a CPython without the GIL."""
