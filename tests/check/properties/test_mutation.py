"""The part that looks for writes to memory that is not for writing."""

import numpy as np
import pytest
from tests.check._parts import X, Y, check, only_failure, op, writeable_memory

import pullback as pb
from pullback.check.exceptions import ForwardError, InapplicableError
from pullback.check.properties.mutation import check_mutation
from pullback.check.properties.repeatable import check_repeatable
from pullback.check.properties.saved import saved_arrays
from pullback.check.subject import Subject


def test_forward_that_changes_an_input_is_found():
    def marked_too_late(ctx, x):
        return x.mul_(2.0) * 1

    text = "forward changes the input `x` in place without mark_dirty"
    undeclared = op(marked_too_late, lambda ctx, g: 2 * g)
    assert only_failure(check_mutation, undeclared, X) == ("mutation", text)

    def through_memory(ctx, x, mask):
        mask.numpy()[...] = False
        return x * 1

    behind = op(through_memory, lambda ctx, g: (g, None))
    mask = np.ones(3, bool)
    name, found = only_failure(check_mutation, behind, X, mask)
    assert (name, found) == ("mutation", text.replace("`x`", "`mask`"))
    assert mask.all()  # it got a copy


def test_mutation_leaves_other_errors_of_forward_to_later_parts():
    def forward(ctx, x):
        raise ValueError("no")

    with pytest.raises(ForwardError, match="ValueError: no"):
        check(check_mutation, op(forward, lambda ctx, g: g), X)


def test_backward_that_changes_grad_output_is_found():
    def backward(ctx, g):
        writeable_memory(g)[...] *= 2
        return g

    name, text = only_failure(check_mutation, op(lambda ctx, x: 2 * x, backward), X)
    assert (name, text) == ("mutation", "backward changes grad_output in place")

    def read_only(ctx, g):
        g.numpy()[...] *= 2
        return g

    name, text = only_failure(check_mutation, op(lambda ctx, x: 2 * x, read_only), X)
    assert name == "mutation"
    assert text.startswith("backward changes grad_output in place: its memory is read-only (Value")


def test_read_only_saved_values_are_named_beside_grad_output():
    def forward(ctx, x):
        ctx.save_for_backward(table=np.broadcast_to(3.0, x.shape))
        return 3 * x

    def backward(ctx, g):
        table = ctx.saved_variables.table
        table *= 2
        return g * table

    name, text = only_failure(check_mutation, op(forward, backward), X)
    assert name == "mutation"
    assert "grad_output or the saved value `table` in place" in text


def test_other_errors_of_backward_do_not_fail_these_parts():
    def backward(ctx, g):
        raise KeyError("no")

    for part in (check_mutation, check_repeatable):
        with pytest.raises(InapplicableError, match="backward raises"):
            check(part, op(lambda ctx, x: 2 * x, backward), X)


def test_a_backward_that_works_once_is_found():
    def forward(ctx, x):
        ctx.parts = [3.0]
        return x * 3.0

    def backward(ctx, g):
        return g * ctx.parts.pop()

    name, text = only_failure(check_repeatable, op(forward, backward), X)
    assert name == "state"
    assert text == (
        "a second backward pass with the same saved values raises, though the first did not: "
        "IndexError: pop from empty list"
    )


@pytest.mark.parametrize(
    "how", ["input", "named", "output", "own", "attribute", "list", "array", "table", "recorded"]
)
def test_backward_that_changes_what_was_saved_is_found(how):
    def forward(ctx, x):
        y = x.exp()
        saved = {"input": [x], "output": [y], "own": [y * 1], "array": [y.numpy().copy()]}
        if how in saved:
            ctx.save_for_backward(*saved[how])
        elif how == "named":
            ctx.save_for_backward(weights=y * 1)
        elif how == "attribute":
            ctx.factor = y * 1
        elif how == "table":
            ctx.tables = {"table": y.numpy().copy()}
        elif how == "recorded":
            with pb.enable_grad():
                ctx.save_for_backward(inside=y.clone().requires_grad_() * 1)
        else:
            ctx.save_for_backward(parts=[y * 1])
        return y

    def backward(ctx, g):
        if how == "attribute":
            value = ctx.factor
        elif how == "table":
            value = ctx.tables["table"]
        else:
            (value,) = ctx.saved_variables
        value = value[0] if how == "list" else value
        array = value if isinstance(value, np.ndarray) else value.detach().numpy()
        result = g * pb.asarray(np.exp(array) if how == "input" else array.copy())
        array *= 2
        return result

    names = {
        "input": "x",
        "named": "weights",
        "output": "output 0",
        "own": "saved_tensors[0]",
        "attribute": "factor",
        "list": "parts",
        "table": "tables",
        "recorded": "inside",
        "array": "saved_tensors[0]",
    }
    name, text = only_failure(check_mutation, op(forward, backward), X)
    assert (name, text) == ("mutation", f"backward changes the saved value `{names[how]}` in place")


def test_backward_that_changes_an_input_behind_ctx_is_found():
    seen = []

    def forward(ctx, x, y):
        seen[:] = [x]
        ctx.save_for_backward(y)
        return x * 2 + y

    def backward(ctx, g):
        seen[0].numpy()[...] = 0
        return 2 * g, g

    name, text = only_failure(check_mutation, op(forward, backward), X, Y)
    assert (name, text) == ("mutation", "backward changes the input `x` in place")


def test_what_built_in_operations_saved_is_watched_too():
    run = Subject(lambda x: x.exp() * x, (X,)).run()
    labels = {label for label, _ in saved_arrays(run)}
    assert labels == {"the value `ExpBackward.saved`", "the value `MulBackward.saved`"}
