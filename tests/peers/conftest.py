"""The peers are optional: `make peers` installs them, and no test here is collected without."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_torch_*.py"]
