"""The public calls that are written from declarations: what they look like, how they are made."""

import ast
import builtins
import inspect
import linecache
import pickle
import subprocess
import sys
import traceback
import warnings
from pathlib import Path

import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.core.function.backward_codegen import prepare
from pullback.core.function.codegen import source_of
from pullback.core.function.primitive import Primitive
from pullback.core.function.record import apply
from pullback.errors import InplaceError, MissingRuleError, ShapeError
from pullback.ops.declare import REGISTRY
from pullback.ops.primitives.indexing import index_put_p

ROOT = Path(__file__).parents[3]
GENERATED = {
    name: declaration.primitive.public
    for name, declaration in REGISTRY.items()
    if isinstance(declaration.primitive, Primitive)
}
every_call = pytest.mark.parametrize("name", GENERATED)


def in_a_new_process(program):
    """Run a program where no operation was called yet, and return what it prints."""
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- the function before and after its first call --------------------------------------------------
BEFORE_AND_AFTER = """
import inspect, pickle
import pullback as pb
from pullback.core.function.primitive import Primitive
from pullback.core.function.codegen import source_of

CALLS = {name: f for name, f in list(vars(pb).items()) if hasattr(f, "primitive")}

def seen(f):
    named = getattr(pb, f.__name__, None) is f
    return (
        str(inspect.signature(f)), f.__name__, f.__qualname__, f.__module__, f.__doc__,
        inspect.getfullargspec(f), named and pickle.loads(pickle.dumps(f)) is f,
    )

before = {name: seen(f) for name, f in CALLS.items()}
numbers = {name: id(f) for name, f in CALLS.items()}
x = pb.tensor([1.0, 2.0])
assert pb.exp(x).shape == (2,) and pb.mul(x, x).tolist() == [1.0, 4.0]
assert pb.sum(x).item() == 3.0 and pb.cat([x, x]).shape == (4,)
written = [name for name, f in CALLS.items() if source_of(f)]
assert before == {name: seen(f) for name, f in CALLS.items()}
assert numbers == {name: id(getattr(pb, name)) for name in CALLS}
print(len(written), before["mul"][0], before["exp"][3], before["exp"][-1])
"""


def test_signature_name_module_and_pickling_are_the_same_before_and_after_the_first_call():
    count, *rest = in_a_new_process(BEFORE_AND_AFTER).split(maxsplit=1)
    assert int(count) > 60
    assert rest == ["(x, y, /, *, out=None) pullback True\n"]


@pytest.mark.parametrize("name", ["exp", "mul", "sum", "matmul", "reshape", "where"])
def test_a_function_of_the_package_is_pickled_by_its_name(name):
    function = getattr(pb, name)
    assert pickle.loads(pickle.dumps(function)) is function


@every_call
def test_the_signature_is_that_of_the_declaration(name):
    call, op = GENERATED[name], REGISTRY[name].primitive
    parameters = inspect.signature(call).parameters.values()
    arrays = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)]
    settings = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert len(arrays) + len(settings) == len(parameters)
    assert settings.pop("out", None) is None
    assert settings == op.settings
    if not op.variadic:
        assert tuple(p.name for p in arrays) == op.inputs


THREADS = """
import random, sys, threading
import numpy as np
import pullback as pb
from tests.ops import _cases

sys.setswitchinterval(1e-6)
CASES = {case.name: case for case in reversed(_cases.cases()) if case.number == 0}
CASES = {name: case for name, case in CASES.items() if case.has_rules}
ROUNDS, COUNT = sorted(CASES), 8

def run(case):
    tensors = _cases.leaves(case.arrays(), case.wanted)
    outputs = case.call(tensors)
    found = [_cases.host(out).copy() for out in outputs]
    if case.wanted:
        seeds = _cases.seeds_for(outputs, case.rng())
        grads = pb.autograd.grad(
            outputs, [tensors[i] for i in case.wanted], list(map(pb.asarray, seeds)),
            materialize_grads=True,
        )
        found += [_cases.host(g).copy() for g in grads]
    return found

results, errors = {}, []
meet = threading.Barrier(COUNT)

def work(number):
    try:
        for name in ROUNDS:
            meet.wait(60)  # all threads make the first call of this operation together
            results[number, name] = run(CASES[name])
    except BaseException as error:
        errors.append((number, error))
        meet.abort()

threads = [threading.Thread(target=work, args=(i,)) for i in range(COUNT)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not errors, errors
for name in ROUNDS:
    alone = run(CASES[name])
    for number in range(COUNT):
        for a, b in zip(results[number, name], alone, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)
print(len(ROUNDS))
"""


def test_threads_that_make_the_first_call_together_get_the_right_results():
    assert int(in_a_new_process(THREADS)) > 100


# -- the source ------------------------------------------------------------------------------------
def last_lines(error):
    return "".join(traceback.format_exception(error))


def test_a_traceback_through_a_call_shows_its_source_line():
    with pytest.raises(ShapeError) as caught:
        pb.mul(pb.ones(2), pb.ones(3))
    shown = last_lines(caught.value)
    assert 'File "<pullback generated mul>", line ' in shown
    assert "\n    return apply(op, (x, y), {})\n" in shown.replace("\n            ", "\n    ")
    linecache.checkcache()  # what the traceback module does before it prints
    assert last_lines(caught.value) == shown


def test_a_traceback_through_a_backward_shows_its_source_line():
    x = pb.tensor([1.0, 2.0], requires_grad=True) * 1
    y = x * x
    x.add_(1.0)
    with pytest.raises(InplaceError) as caught:
        y.sum().backward()
    shown = last_lines(caught.value)
    assert 'File "<pullback generated mul_backward>", line ' in shown
    assert "raise stale(node, x_counter.version, x_version)" in shown


def test_a_traceback_through_a_users_operation_shows_the_line_that_binds_its_arguments():
    def fails(ctx, x, *, scale=2.0):
        raise KeyError(scale)

    op = pb.autograd_function(fails, lambda ctx, g: g)
    with pytest.raises(KeyError) as caught:
        op(pb.ones(2))
    assert "generated call of fails" in last_lines(caught.value)
    assert "def call(x, *, scale=2.0):" in source_around(caught.value)


def source_around(error):
    """Return the source of the generated functions that a traceback goes through."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    files = {frame.f_code.co_filename for frame in frames}
    return "".join(line for f in files if f.startswith("<") for line in linecache.getlines(f))


def test_a_function_that_is_not_written_has_no_written_source():
    assert source_of(len) == ""
    assert source_of(pb.tensor) == ""


class Names(ast.NodeVisitor):
    """The names of a function: its parameters, what it assigns to, what it reads."""

    def __init__(self, source):
        self.parameters, self.stored, self.loaded = set(), set(), set()
        self.visit(ast.parse(source))

    def visit_arg(self, node):
        assert node.arg not in self.parameters
        self.parameters.add(node.arg)

    def visit_Name(self, node):
        (self.stored if isinstance(node.ctx, ast.Store) else self.loaded).add(node.id)


@every_call
def test_no_parameter_is_assigned_to_or_hides_a_name_that_the_source_uses(name):
    call = GENERATED[name]
    source = source_of(call)
    names = Names(source)
    uses = {n for n in call.__globals__ if not n.startswith("__")}
    assert names.parameters & names.stored == set()
    assert names.parameters & uses == set()
    assert names.stored & uses == set()
    assert names.loaded - names.parameters - names.stored <= uses | set(vars(builtins))
    assert names.parameters & set(vars(builtins)) & called(source) == set()


def called(source):
    """Return the names that a source calls as functions."""
    return {
        node.func.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


@every_call
def test_the_source_is_one_function_of_the_name_of_the_operation(name):
    (function,) = ast.parse(source_of(GENERATED[name])).body
    assert isinstance(function, ast.FunctionDef)
    assert function.name == name
    assert GENERATED[name].__code__.co_filename == f"<pullback generated {name}>"
    assert linecache.getline(f"<pullback generated {name}>", 1).startswith(f"def {name}(")


# -- warnings --------------------------------------------------------------------------------------
def test_a_warning_of_numpys_in_a_call_is_shown_with_the_line_of_the_call():
    with pytest.warns(RuntimeWarning, match="invalid value encountered in log") as caught:
        y = pb.log(leaf([-1.0]))
    assert y.isnan().all()
    assert caught[0].filename == "<pullback generated log>"


def warns(ctx, x):
    """Blame the caller, which is a generated function."""
    warnings.warn("forward", UserWarning, stacklevel=2)
    ctx.save_for_backward(x=x)
    return x * 2


def warns_too(ctx, g):
    """Blame the caller, which is another."""
    warnings.warn(f"backward {ctx.saved_variables.x.item()}", UserWarning, stacklevel=2)
    return {"x": g * 2}


def test_a_users_operation_may_warn_of_the_line_that_called_it():
    op = pb.autograd_function(warns, warns_too)
    x = leaf([3.0])
    for _ in range(2):  # the lines are written anew for what the first call saved
        with pytest.warns(UserWarning, match="forward"):
            y = op(x)
        with pytest.warns(UserWarning, match=r"backward 3\.0"):
            y.backward()
    assert x.grad.tolist() == [4.0]


# -- what is missing -------------------------------------------------------------------------------
def test_an_argument_without_a_gradient_rule_says_so():
    op = Primitive("product", lambda xp, x, y: x * y, ("x", "y"), {}, {"x": lambda g, y: g * y})
    prepare(op)
    x, y = leaf([2.0]), leaf([3.0])
    apply(op, (x, y.detach()), {}).sum().backward()
    assert x.grad.tolist() == [3.0]
    with pytest.raises(MissingRuleError, match="a gradient rule for the argument 'y'"):
        apply(op, (x, y), {}).sum().backward()


def test_a_setting_without_a_default_is_required():
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'shape'"):
        index_put_p.public(pb.ones(3), index=0)
