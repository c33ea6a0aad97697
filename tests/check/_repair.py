"""Operations with slips in their source, and the change that the checker reports."""

import ast
import itertools
import linecache

import numpy as np

import pullback as pb
from pullback.check import check_op

COUNT = itertools.count()


def defined(text, name):
    """Return a function made of a text that the module `linecache` knows as a file."""
    file = f"<text {next(COUNT)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {"np": np, "pb": pb}
    exec(compile(ast.parse(text), file, "exec"), names)
    return names[name]


def texts(args, value, rule):
    """Return forward, which saves its arguments, and backward, with variables for these."""
    names = args.split(", ")
    kept = ", ".join(f"{name}={name}" for name in names)
    lines = "".join(f"    {name} = ctx.saved_variables.{name}\n" for name in names)
    return (
        f"def forward(ctx, {args}):\n    ctx.save_for_backward({kept})\n    return {value}\n",
        f"def backward(ctx, g):\n{lines}    return {rule}\n",
    )


def operation(forward, backward):
    """Return the operation of two texts."""
    return pb.autograd_function(defined(forward, "forward"), defined(backward, "backward"))


def first_report(op, *inputs, **options):
    """Return the report on first derivatives; that the search itself failed is an error."""
    report = check_op(op, *inputs, only=["first"], raise_exception=False, **options)
    assert "no change of the source was sought" not in report.repair
    return report


def changes(op, *inputs, **options):
    """Return the changes that are reported for a wrong operation, joined."""
    report = first_report(op, *inputs, **options)
    assert report.failures
    return report.repair


def change(forward, backward, *inputs, **options):
    """Return the changes that are reported for a forward and a wrong backward."""
    return changes(pb.autograd_function(forward, backward), *inputs, **options)
