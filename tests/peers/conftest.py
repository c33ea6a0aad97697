"""The peers are optional: `make peers` installs them, and no test here is collected without."""

import importlib.util

NEED_TORCH = ["test_torch_*.py", "*op_db.py", "test_surface.py"]
NEED_TORCH += ["*random_programs*.py", "program_*.py"]
# For another process: programs that train.
ELSEWHERE = ["torch_programs/*"]
collect_ignore_glob = ELSEWHERE + ([] if importlib.util.find_spec("torch") else NEED_TORCH)


def pytest_ignore_collect(collection_path, config):
    """Leave torch's samples alone where they are not run: importing them takes seconds."""
    return (collection_path.match("*op_db.py") and "not peers" in config.option.markexpr) or None
