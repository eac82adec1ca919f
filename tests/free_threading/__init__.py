"""The library in many threads at once, with the GIL and without it; ``build_python.sh`` makes an interpreter without."""
