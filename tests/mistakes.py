"""Tables of wrong calls and of their errors, in files of text.

A file begins with what its calls use. Then, as in a doctest, each call is followed by its error,
with `...` where words are left out. An id after `#` is that of a case of tests/core/cases.md.
"""

import itertools

import pytest


def mistakes(folder):
    """Return of each row what it uses, the call, the class of its error and the words of it."""
    found = []
    for path in sorted(folder.glob("*.txt")):
        used, *rows = path.read_text(encoding="utf-8").split("\n>>> ")
        ids = [f"{path.stem}: {row.splitlines()[0]}" for row in rows]
        found += [pytest.param(used, *parts(r), id=i) for r, i in zip(rows, ids, strict=True)]
    return found


def parts(row):
    """Return the call, the class of the error and its words."""
    first, *lines = row.splitlines()
    more = list(itertools.takewhile(lambda line: line.startswith("... "), lines))
    call = "\n".join([first, *(line[4:] for line in more)])
    kind, _, words = " ".join(" ".join(lines[len(more) :]).split()).partition(": ")
    return call, kind, [word.strip() for word in words.split(" ...")]
