"""HIPS autograd's source distribution, fetched once and unpacked beside the virtual environment."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

VERSION = "1.9.1"
SHIM = Path(__file__).parent / "hips"


def hips_source() -> Path:
    """Return the folder of the unpacked distribution."""
    cache = Path(sys.prefix) / "peers"
    found = cache / f"autograd-{VERSION}"
    if not found.exists():
        cache.mkdir(exist_ok=True)
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        wanted = ["--no-binary", ":all:", "--dest", str(cache), f"autograd=={VERSION}"]
        subprocess.run([*download, *wanted], check=True, capture_output=True)
        with tarfile.open(cache / f"autograd-{VERSION}.tar.gz") as archive:
            archive.extractall(cache / "unpacked", filter="data")
        shutil.move(cache / "unpacked" / found.name, found)
    return found


def environment() -> dict[str, str]:
    """Return the variables with which `import autograd` imports pullback under its names."""
    source = Path(__file__).parents[2] / "src"
    path = os.pathsep.join(map(str, (SHIM, source)))
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {
        **os.environ,
        **threads,
        "PYTHONPATH": path,
        "HIPS_AUTOGRAD": str(hips_source() / "autograd"),
    }
