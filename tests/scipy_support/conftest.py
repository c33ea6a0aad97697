"""What pytest must not import: the program sets SciPy's switch and the default dtype."""

collect_ignore = ["program.py"]
