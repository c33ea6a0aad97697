"""What the site adds to Sphinx: one full entry an object, and no public name without an entry.

An object that has several names is described under the first, and the others refer to it. The build
fails if a public name has no entry; its search then finds every name.
"""

from __future__ import annotations

import functools
import importlib
import re
import types
from pathlib import Path

import generate
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
ROOT = Path(__file__).parents[1]
# The modules that users import, those first whose names are described in full.
MODULES = (
    *("pullback", "pullback.linalg", "pullback.fft", "pullback.special", "pullback.nn.functional"),
    *("pullback.autograd", "pullback.check", "pullback.cuda", "pullback.errors"),
    *("pullback.implicit", "pullback.nn", "pullback.nn.init", "pullback.nn.utils"),
    *("pullback.optim", "pullback.optim.lr_scheduler", "pullback.optimize", "pullback.surrogate"),
    *("pullback.data", "pullback.plot"),
    *("pullback.interop.scipy.integrate", "pullback.interop.scipy.interpolate"),
    *("pullback.interop.scipy.linalg", "pullback.interop.scipy.sparse"),
    *("pullback.interop.scipy.sparse.linalg", "pullback.interop.scipy.special"),
    *("pullback.interop.scipy.stats",),
)


def module(path):
    """Return a module by the path that users write: `pullback.surrogate` is an attribute."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        parent, _, name = path.rpartition(".")
        return getattr(importlib.import_module(parent), name)


def names_of(space):
    """Return the public names of a module: `__all__`, or what it defines itself."""
    if hasattr(space, "__all__"):
        return list(space.__all__)
    own = space.__name__
    return [
        name
        for name, value in vars(space).items()
        if name[0] != "_" and getattr(value, "__module__", "").startswith(own)
    ]


@functools.cache
def public():
    """Return every public object by its full name, modules left out."""
    found = {}
    for path in MODULES:
        space = module(path)
        for name in names_of(space):
            value = getattr(space, name)
            if not isinstance(value, types.ModuleType):
                found[f"{path}.{name}"] = value
    return found


@functools.cache
def first_names():
    """Return the name under which each object is described in full, by its id: its own, if any."""
    first = {}
    for name, value in public().items():
        is_own = name.rpartition(".")[2] == getattr(value, "__name__", None)
        first.setdefault((id(value), is_own), name)
    return {key: name for (key, _), name in sorted(first.items(), key=lambda item: item[0])}


def refer_to_first_name(app, what, name, obj, options, lines):
    """Leave of the docstring a reference, where the object is described under another name."""
    first = first_names().get(id(obj), name) if callable(obj) else name
    if first != name:
        kind = "as a method" if name.startswith("pullback.Tensor.") else "under another name"
        lines[:] = [f":py:obj:`{first}` {kind}."]


def check_public_names(app, env):
    """Warn of public names without an entry."""
    objects = env.domains["py"].objects
    for name in public():
        if name not in objects:
            LOGGER.warning("no page of docs/ has an entry of %s", name)


def prepare_document(app, docname, content):
    """Let links between documents lead to pages, and end examples without a blank line."""
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md" and not docname.startswith("project/"):
        text = generate.linked(content[0], path.parent.relative_to(ROOT))
        content[0] = re.sub(r"\n\n```$", "\n```", text, flags=re.MULTILINE)


def connect(app):
    """Connect the functions of this module to the events of Sphinx."""
    app.connect("source-read", prepare_document)
    app.connect("autodoc-process-docstring", refer_to_first_name, priority=400)
    app.connect("env-check-consistency", check_public_names)
