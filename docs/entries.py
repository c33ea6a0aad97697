"""What the site adds to Sphinx: one full entry an object, and no public name without an entry.

An object that has several names is described under the first, and the others refer to it. The build
fails if a public name has no entry; its search then finds every name.
"""

from __future__ import annotations

import functools
import re
import types
from pathlib import Path

import generate
from sphinx.util import logging

import pullback

LOGGER = logging.getLogger(__name__)
ROOT = Path(__file__).parents[1]
ELSEWHERE = {"pullback.compat"}  # other libraries' names have pages of their own


def names_of(space):
    """Return the public names of a module: `__all__`, or what it defines itself."""
    if hasattr(space, "__all__"):
        return list(space.__all__)
    return [
        name
        for name, value in vars(space).items()
        if name[0] != "_" and getattr(value, "__module__", "").startswith(space.__name__)
    ]


@functools.cache
def public():
    """Return every public object by its full name, modules left out, those on top first."""
    found, spaces = {}, [("pullback", pullback)]
    for path, space in spaces:  # grows as modules in modules are met
        for name in names_of(space):
            value, full = getattr(space, name), f"{path}.{name}"
            if not isinstance(value, types.ModuleType):
                found[full] = value
            elif full not in ELSEWHERE:
                spaces.append((full, value))
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
