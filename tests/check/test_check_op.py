"""`check_op`: explicit, described, drawn and guessed inputs, and one report on all of them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import pullback as pb
from pullback.check.api import PARTS, check_op
from pullback.check.inputs.strategies import arguments, tensors
from pullback.check.report import Status
from pullback.check.runner import Runner
from pullback.errors import ArgumentError, GradcheckError


def dense_with(factor):
    """Return a matrix product; the gradient of `w` is off by a factor."""

    def forward(ctx, x, w):
        ctx.save_for_backward(x=x, w=w)
        return x @ w.T

    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return {"x": grad_output @ w, "w": factor * grad_output.mT @ x}

    return pb.autograd_function(forward, backward, name="dense")


dense, doubled = dense_with(1), dense_with(2)


class Square(pb.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return {"x": 2 * ctx.saved_variables.x * grad_output}


X, W = np.array([[1.0, -2.0, 0.5]]), np.array([[0.3, 1.0, 2.0], [-1.0, 0.2, 0.7]])


# ---- where inputs come from ----------------------------------------------------------------------
def first(op, *args, **kwargs):
    return check_op(op, *args, only=["first"], **kwargs)


def test_inputs_are_passed_by_position_or_by_name():
    report = first(dense, X, W)
    assert report.ok
    assert [p.status for p in report.parts if p.name == "first"] == [Status.PASSED]
    assert not [note for note in report.notes if note.startswith("inputs")]
    assert first(dense, X, kwargs={"w": W}).ok
    assert first(dense, kwargs={"x": X, "w": W}).ok
    with pytest.raises(GradcheckError, match="`w`"):
        first(doubled, kwargs={"x": X, "w": W})


def test_one_tuple_of_inputs_is_unpacked_unless_forward_takes_it():
    assert first(dense, (X, W)).ok
    assert not first(doubled, (X, W), raise_exception=False).ok
    assert first(lambda pair: pair[0] * pb.sin(pair[1]), (X, X)).ok
    with pytest.raises(ArgumentError, match="got one tuple of 1, which fits neither as one"):
        first(dense, (X,))


def test_arguments_not_passed_by_name_are_guessed_or_described():
    for inputs in ((), ("x: (n, 3)",)):
        report = first(dense, *inputs, kwargs={"w": W})
        assert report.ok
        assert "w (2, 3)" in report.notes[0]
        assert not first(doubled, *inputs, kwargs={"w": W}, raise_exception=False).ok
    report = first(lambda x, dim: pb.softmax(x, dim), kwargs={"dim": 0})
    assert report.notes[0] == "inputs: x (4, 3), dim 0"


def test_a_text_describes_lists_and_the_arguments_of_stars():
    def stacked(parts):
        assert isinstance(parts, list)
        return parts[0] * parts[1]

    def scaled(x, scale, **options):
        assert (scale, options["mode"]) == (0.5, "twice")
        return scale * x * options["by"]

    assert first(stacked, "parts: (n,), parts: (n,)").ok
    assert first(lambda *xs: xs[0] * xs[1], "xs: (n,), xs: (n,)").ok
    assert first(scaled, "x: (n,), scale: 0.5, mode: 'twice', by: (n,)").ok


def test_a_function_without_a_signature_takes_what_is_described():
    assert first(max, "a: (), b: ()").ok
    with pytest.raises(ArgumentError, match="inputs of `max` are required, since it has no sig"):
        check_op(max)


@pytest.mark.parametrize(
    ("inputs", "note"),
    [
        ((), "inputs: x (4, 3), w (2, 3)"),
        (("x: (n, d), w: (m, d)",), "inputs: x (4, 2), w (3, 2)"),
        ((arguments("x: (n, d), w: (m, d)"),), "the largest of"),
        ((X, W), ""),
    ],
    ids=["guessed", "described", "drawn", "given"],
)
def test_a_right_gradient_is_right_and_a_wrong_one_wrong_whatever_the_inputs_are(inputs, note):
    report = first(dense, *inputs)
    assert report.ok
    assert note in "".join(report.notes[:1])
    report = first(doubled, *inputs, raise_exception=False)
    assert {f.argument for f in report.failures} == {"w"}
    assert report.failures[0].cause.name == "factor"


def test_inputs_are_drawn_by_a_strategy_each_beside_plain_values():
    report = first(lambda x, w, scale: scale * x @ w.T, tensors((3, 2)), tensors((4, 2)), 0.25)
    assert report.ok
    assert "x (3, 2), w (4, 2), scale 0.25, the largest of" in report.notes[0]


def test_a_strategy_may_draw_arguments_by_name_and_must_draw_an_example():
    from hypothesis import strategies as st

    drawn = st.fixed_dictionaries({"x": tensors((2, 3)), "w": tensors((4, 3))})
    assert first(dense, drawn).ok
    with pytest.raises(ArgumentError, match="a strategy that draws an example is required"):
        check_op(dense, st.nothing())


# ---- what is checked -----------------------------------------------------------------------------
def test_function_classes_built_in_operations_and_functions_are_checked():
    assert first(Square).name == "Square"
    assert first(Square, X).ok
    assert first(pb.softmax).ok
    assert first(pb.linalg.cholesky).name == "cholesky"
    assert first(lambda x, y: x * pb.sin(y)).ok


def test_only_and_skip_choose_parts():
    names = [name for name, *_ in PARTS]
    report = check_op(dense, only=["first"])
    assert {p.name for p in report.parts if p.status == Status.PASSED} == {"first"}
    report = check_op(doubled, skip=names)
    assert report.ok


def test_a_check_repeats_with_its_seed():
    def texts(seed, *inputs):
        return str(first(doubled, *inputs, seed=seed, raise_exception=False))

    text = "x: (n, d), w: (m, d)"
    assert texts(1) == texts(1)
    assert texts(1, text) == texts(1, text)
    assert texts(1, text) != texts(2, text)
    assert texts(1, arguments(text)) == texts(1, arguments(text))


def test_a_drawn_failure_tells_the_smallest_inputs():
    relu6 = pb.autograd_function(lambda ctx, x: x.clamp(max=6.0), lambda ctx, g: {"x": g})
    report = first(relu6, arguments("x: (n,)"), raise_exception=False)
    assert not report.ok
    (smallest,) = [n for n in report.notes if n.startswith("the smallest inputs that fail")]
    value = float(smallest.partition("x = [")[2].rstrip("]"))
    assert 6 <= value <= 8


def test_matrices_described_as_symmetric_or_read_as_such_are_moved_as_such():
    text = "x: (n, n) spd"
    assert first(pb.linalg.cholesky, text).ok
    report = first(pb.linalg.cholesky, np.eye(3) + 0.1)
    assert report.notes[0].startswith("forward reads one triangle of `x` alone")

    def forward(ctx, x):
        if not np.allclose(x.numpy(), x.numpy().T):
            raise ValueError("a symmetric matrix is required")
        ctx.save_for_backward(x=x)
        return 2 * pb.log(pb.diagonal(pb.linalg.cholesky(x))).sum()

    def logdet(factor):
        return pb.autograd_function(
            forward, lambda ctx, g: {"x": factor * g * pb.linalg.inv(ctx.saved_variables.x)}
        )

    for inputs in (text, np.eye(3) + 0.1 * np.ones((3, 3))):
        assert first(logdet(1), inputs).ok
        assert not first(logdet(2), inputs, raise_exception=False).ok


# ---- what is refused -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x: (n, d)", "a description of each argument of `dense` is required, got none of `w`"),
        ("x: (n, d), v: (m, d)", "the name of an argument is required, got 'v' in"),
        ("x (n, d), w: (m, d)", "an argument as `name: shape` or `name: value` is required"),
    ],
)
def test_a_text_that_does_not_fit_the_operation_is_refused(text, words):
    with pytest.raises(ArgumentError) as error:
        check_op(dense, text)
    assert words in str(error.value)
    assert "x, w" in str(error.value)


def test_a_tensor_of_a_library_that_is_not_in_use_is_refused_with_what_to_pass():
    class Foreign:
        dtype = "torch.float64"

        def __array__(self, dtype=None, copy=None):
            return np.ones(3)

    message = r"got a .*Foreign of torch\.float64\.\nhint: pass .*pb\.asarray\(t\), or t\.numpy\(\)"
    with pytest.raises(ArgumentError, match=message):
        check_op(pb.sin, Foreign())


def test_a_text_without_a_colon_is_an_argument_of_the_operation():
    def binding(sequence, *, energy):
        return (energy * pb.tensor([float(sequence.count(letter)) for letter in "ACGT"])).sum()

    assert first(binding, "GATTACA", kwargs={"energy": np.array([0.5, 1.0, -2.0, 0.3])}).ok
    with pytest.raises(ArgumentError, match="a description of the inputs, or arguments") as e:
        check_op(pb.exp, "x (n, d)")
    assert 'write a colon after each name: pb.check.check_op(exp, "x: (' in str(e.value)


def test_a_description_that_forward_does_not_take_is_not_checked():
    def forward(ctx, x):
        if x.shape[0] != 7:
            raise ValueError("seven are needed")
        return x * 1

    op = pb.autograd_function(forward, lambda ctx, g: g, name="sevens")
    report = check_op(op, "x: (n,)", raise_exception=False)
    assert (report.outcome, report.unchecked[0].why) == (
        "not checked",
        "forward does not take what was described: ValueError: seven are needed",
    )
    assert check_op(op, np.ones(3), raise_exception=False).outcome == "wrong"


@pytest.mark.parametrize(("inputs", "noted"), [("x: (9,) positive", 0), (7, 0), (8, 1)])
def test_that_an_array_is_sorted_is_noted_where_it_is_no_chance(inputs, noted):
    op = pb.autograd_function(lambda ctx, x: x.cumsum(0), lambda ctx, g: g)
    given = np.arange(1.0, 1 + inputs) if isinstance(inputs, int) else inputs
    report = check_op(op, given, raise_exception=False)
    assert sum("has the structure sorted" in note for note in report.notes) == noted


def test_where_compiled_code_ends_python_the_line_and_the_part_are_told(tmp_path):
    program = tmp_path / "narrow.py"
    program.write_text(
        "import faulthandler, os, numpy as np, pullback as pb\n"
        "pb.check.check_op(pb.sin, np.ones(3))\n"
        "assert not faulthandler.is_enabled()\n"
        "@pb.autograd_function\n"
        "def narrow(ctx, x):\n"
        "    x.dtype == pb.float32 and os.abort()\n"
        "    return 2 * x\n"
        "narrow.backward(lambda ctx, g: 2 * g)\n"
        "pb.check.check_op(narrow, np.ones(3))\n"
    )
    run = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert run.returncode
    assert "Fatal Python error: Aborted" in run.stderr
    assert 'narrow.py", line 6 in narrow' in run.stderr
    assert "in the part `dtypes`" in run.stderr


def test_the_line_of_an_exception_without_a_text_is_told():
    def forward(ctx, x, y):
        if len(x) != len(y):
            raise AssertionError
        return x * y

    op = pb.autograd_function(forward, lambda ctx, g: (g, g))
    report = check_op(op, np.ones(3), np.ones(4), raise_exception=False)
    told = "forward raises: AssertionError: raise AssertionError (line "
    assert report.failures[0].text.startswith(told)
    assert report.failures[0].text.endswith(" of test_check_op.py)")


def test_arguments_by_name_and_lists_are_refused_with_what_to_write():
    with pytest.raises(TypeError, match=r'got w.\nhint: .* kwargs=\{"w": ...\}'):
        check_op(dense_with(1), np.ones((2, 3)), w=np.ones((4, 3)))
    with pytest.raises(ArgumentError, match=r"got float.\nhint: .* np.array\(...\) of a"):
        check_op(dense_with(1), [1.0, 2.0], [3.0, 4.0])


def test_after_a_part_on_which_all_depend_failed_no_other_call_is_tried(monkeypatch):
    def doubled(ctx, x):
        x.numpy()[...] *= 2
        return x * 1

    monkeypatch.setattr(Runner, "_vary", lambda *_: pytest.fail("other calls"))
    report = check_op(
        pb.autograd_function(doubled, lambda ctx, g: 2 * g), np.ones(3), raise_exception=False
    )
    assert [failure.cause.name for failure in report.failures] == ["mutation"]
