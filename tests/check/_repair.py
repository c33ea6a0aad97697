"""Operations with slips in their source, and the change that the checker reports."""

import ast
import linecache

import pullback as pb
from pullback.check import check_op


def first_report(op, *inputs, **options):
    """Return the report on first derivatives; that the search itself failed is an error."""
    report = check_op(op, *inputs, only=["first"], raise_exception=False, **options)
    assert not [note for note in report.notes if note.startswith("no change of the source")]
    return report


def changes(op, *inputs, **options):
    """Return the changes that are reported for a wrong operation, joined."""
    report = first_report(op, *inputs, **options)
    assert report.failures
    return "\n".join(failure.repair for failure in report.failures if failure.repair)


def change(forward, backward, *inputs, **options):
    """Return the changes that are reported for a forward and a wrong backward."""
    return changes(pb.autograd_function(forward, backward), *inputs, **options)


def defined(text, name, filename):
    """Return a function made of a text that the module `linecache` knows as a file."""
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    names = {}
    exec(compile(ast.parse(text), filename, "exec"), names)
    return names[name]
