"""HIPS autograd's source distribution, fetched once, and copies of it that import pullback."""

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

VERSION = "1.9.1"
COMPAT = "pullback.compat.autograd"
# What `from autograd...`, `import autograd... as name` and `import autograd...` become.
IMPORTS = [
    (r"^(\s*)from autograd\b", rf"\1from {COMPAT}"),
    (r"^(\s*)import autograd(\S*) as\b", rf"\1import {COMPAT}\2 as"),
    (r"^(\s*)import autograd$", rf"\1import {COMPAT} as autograd"),
    (r"^(\s*)import autograd\.(\S+)$", rf"\1import {COMPAT} as autograd, {COMPAT}.\2"),
]


def hips_source() -> Path:
    """Return the folder of the unpacked distribution."""
    cache = Path(sys.prefix) / "peers"
    source = cache / f"autograd-{VERSION}"
    if not source.exists():
        cache.mkdir(exist_ok=True)
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        wanted = ["--no-binary", ":all:", "--dest", str(cache), f"autograd=={VERSION}"]
        subprocess.run([*download, *wanted], check=True, capture_output=True)
        with tarfile.open(cache / f"autograd-{VERSION}.tar.gz") as archive:
            archive.extractall(cache / "unpacked", filter="data")
        shutil.move(cache / "unpacked" / source.name, source)
    return source


def rewritten(source: str, rules: list[tuple[str, str]] = IMPORTS) -> str:
    """Return a program with other imports, else the same."""
    for pattern, replacement in rules:
        source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
    return source


def rewritten_copy(folder: Path, copy: Path, rules: list[tuple[str, str]] = IMPORTS) -> Path:
    """Copy a folder of programs, and change their imports."""
    shutil.copytree(folder, copy)
    for path in copy.rglob("*.py"):
        path.write_text(rewritten(path.read_text(), rules))
    return copy
