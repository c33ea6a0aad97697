"""Write the pages about errors: each message is what its program raises.

Run it after the text of a message has changed: `python docs/error_pages/write.py`.
"""

import contextlib
import importlib.abc
import inspect
import io
import linecache
import re
import runpy
import sys
import traceback
import warnings
from pathlib import Path

from pullback import errors

HERE = Path(__file__).parent
PROGRAMS = runpy.run_path(str(HERE / "programs.py"))["PROGRAMS"]
FILE = "program.py"  # the name that a program has in its messages


def classes():
    """Return the errors and warnings, each after its base."""
    types = [value for value in vars(errors).values() if isinstance(value, type)]
    return [t for t in types if issubclass(t, Exception) and t.__module__ == errors.__name__]


def bases(cls):
    """Return the base of a class within the library, None at the top, and those of Python."""
    own = [base for base in cls.__bases__ if base.__module__ == errors.__name__]
    return next(iter(own), None), [base for base in cls.__bases__ if base not in own]


class Absence(importlib.abc.MetaPathFinder):
    """Finds some packages missing, as Python does where they are not installed."""

    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


@contextlib.contextmanager
def uninstalled(packages):
    """Let imports of some packages fail within a block."""
    imported = {n: m for n, m in sys.modules.items() if n.partition(".")[0] in packages}
    for name in imported:
        del sys.modules[name]
    finder = Absence(packages)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.modules.update(imported)


def execute(program):
    """Run a program as a file of its own, and return what it prints."""
    text = program.strip() + "\n"
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(text, FILE, "exec"), {"__name__": "__main__"})
    return output.getvalue()


def message(cls):
    """Run the program of a class, and return its error or first warning and the text printed.

    The marks below a line of a traceback are left out: versions of Python set them differently.
    """
    entry = PROGRAMS[cls.__name__]
    with warnings.catch_warnings(record=True) as warned, uninstalled(entry.without):
        warnings.simplefilter("always")
        try:
            execute(entry.failing)
        except errors.AutogradError as error:
            text = "".join(traceback.format_exception_only(error))
            return error, re.sub(r"^ *[~^]+ *\n", "", text, flags=re.MULTILINE)
    own = [each for each in warned if issubclass(each.category, cls)]
    if not own:
        raise AssertionError(f"the program of {cls.__name__} raises nothing")
    lines = [(each.message, each.category, each.filename, each.lineno) for each in own]
    return own[0].message, "".join(warnings.formatwarning(*line) for line in lines)


def page(cls):
    """Return the page of a class."""
    entry, (own, others) = PROGRAMS[cls.__name__], bases(cls)
    links = [f"[{own.__name__}]({own.__name__}.md)"] if own else []
    names = links + [f"`{base.__name__}`" for base in others]
    kinds = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    is_warning = issubclass(cls, Warning)
    return f"""# {cls.__name__}

{summary(cls)} A subclass of {kinds}; see [all errors](index.md).

{entry.when.strip()}

## A program that {"warns" if is_warning else "raises it"}

```python
{entry.failing.strip()}
```

```text
{message(cls)[1].rstrip()}
```

## The program, mended

{entry.repair.strip()}

```python
{entry.mended.strip()}
```

```text
{execute(entry.mended).rstrip()}
```
"""


def summary(cls):
    """Return the first line of the docstring of a class, as Markdown."""
    return inspect.getdoc(cls).partition("\n")[0].replace("``", "`")


def tree():
    """Return all classes as a nested list, with Python's bases in brackets."""
    lines, depths = [], {None: -1}
    for cls in in_order(None):
        own, others = bases(cls)
        depths[cls] = depths[own] + 1
        kinds = f" ({', '.join(f'`{base.__name__}`' for base in others)})" if others else ""
        indent = "  " * depths[cls]
        lines.append(f"{indent}* [{cls.__name__}]({cls.__name__}.md){kinds}: {summary(cls)}")
    return "\n".join(lines)


def in_order(parent):
    """Return the classes below one, each followed by those below it."""
    below = [cls for cls in classes() if bases(cls)[0] is parent]
    return [each for cls in below for each in (cls, *in_order(cls))]


def index():
    """Return the page of all classes."""
    names = "\n".join(cls.__name__ for cls in in_order(None))
    return f"""# Errors and warnings

Every error is a `pb.AutogradError`, and also the exception of Python, in brackets, that a user of
NumPy or PyTorch would catch. Each has a page with a program that raises it, the message, and the
program mended. All are in `pullback.errors`. [Error messages](../errors.md) shows the most common
ones of operations that you write.

{tree()}

```{{toctree}}
:hidden:

{names}
```
"""


def pages():
    """Return the texts of all pages by the names of their files."""
    return {"index.md": index(), **{f"{cls.__name__}.md": page(cls) for cls in classes()}}


if __name__ == "__main__":
    for name, text in pages().items():
        (HERE / name).write_text(text, encoding="utf-8")
