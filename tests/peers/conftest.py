"""The peers are optional: `make peers` installs them, and no test here is collected without."""

import importlib.util

NEED_TORCH = ["test_torch_*.py", "*op_db.py", "test_surface.py"]
NEED_TORCH += ["*random_programs*.py", "program_runs.py"]
HIPS = ["hips/*"]  # modules for another process, under names of another library
collect_ignore_glob = HIPS + ([] if importlib.util.find_spec("torch") else NEED_TORCH)


def pytest_ignore_collect(collection_path, config):
    """Leave torch's samples alone where they are not run: importing them takes seconds."""
    return (collection_path.match("*op_db.py") and "not peers" in config.option.markexpr) or None
