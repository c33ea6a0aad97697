"""Where random programs may differ from PyTorch, and why; each with a test of the difference.

A test gets the `Difference`, with the tensors of both libraries where it was found.
"""

import re

import numpy as np
from tests.peers import program_ways as ways
from tests.peers.program_facts import (
    asked_for_in_backward,
    asks_by_result,
    base_was_frozen,
    changes_followed_view,
    differing_tensor,
    differs_by_half_turns,
    differs_where_huge,
    gave_back_empty,
    heard_less,
    hooked_input,
    hooked_view,
    is_by_changed_view,
    is_lost,
    is_nan,
    is_unstable,
    leaves_zeros,
    names_in,
    odd_views,
    of_changed_view,
    of_gradient,
    of_late_view,
    of_numbers,
    of_result,
    of_tracking,
    of_untracked_base,
    out_of_groups,
    raises_otherwise,
    recorded_otherwise,
    results_of_grad,
    retains,
    returned_itself,
    says,
    stops_hearing_of_deleted,
    tensors_named,
    under_no_grad,
    uses,
    view_differs,
    without_none,
    zero_or_none,
    zeros_without_memory,
)
from tests.peers.program_graphs import (
    any_reached_twice,
    assigns_nothing,
    begins_in_group,
    changes_closed_over,
    comes_again,
    leads_nowhere,
    runs_more,
    spreads_one_number,
    switches_closed_over,
)
from tests.peers.program_names import DIRTY
from tests.peers.program_runs import compare, same_events

KEPT = "a rule keeps what it needs, as it was: torch does the same with copies of what it saves"
SECOND_TIME = "a second backward without retain_graph always raises, D of section 2"
DETACHED_VIEW = "what is made under no_grad requires no grad: torch says so of views of leaves"
LATE_LEAF = "views of a tensor follow it into the graph: torch does when they are next changed"
RETAINING = "inputs= fills .grad once: torch then goes on to retain it"
UNREACHED_ROOT = (
    "what inputs do not need is not run: torch runs roots, and more that leads to their nodes"
)
FOLLOWED_VIEW = "a view follows its base where its steps are known: torch gives up"
DROPPED_LEAF = "graphs do not keep leaves alive: what comes to a leaf that is gone is seen nowhere"
NO_GRADIENT = "a hook is called with a gradient, never with None"
OWN_GRADIENT = "a gradient has memory of its own: torch's may be expanded"
OWN_COPY = "a copy has memory of its own: torch's of what was expanded is expanded"
ALREADY_SO = "x.requires_grad = True says nothing new of a result: torch raises"
RETURNED_INPUT = "an operation that records nothing returns the very tensor that forward returned"
MODE = "needs_input_grad is of what is recorded: nothing under no_grad, section 1.2"
DIRTY_RESULT = "a tensor marked dirty is the result, under no_grad too; torch gives a detached one"
GRADIENT_VERSIONS = "how often a gradient was added to is nobody's business"
OTHER_SAVED = (
    "a rule that reads x, not the result, gives the result no second derivative, nor its hooks"
)
NO_GRADIENT_ON = "a node that no gradient reaches is not run: torch releases what it saved"
OTHER_FORMULA = "whether a first derivative that is constant is recorded is a matter of its formula"
ORIGIN = "the slopes of hypot at the origin are 0, docs/edge-values.md: torch's are NaN"
ONE_NUMBER = "one number has no spread: NaN and where it goes, docs/edge-values.md"
KEPT_GRADIENT = "a gradient that was retained stays when its tensor is marked dirty"
UNTRACKED_BASE = "a view of what requires no grad is tracked when changed, made in whatever mode"
LAYOUT = "the order of a result's elements in memory is NumPy's, so what reshape can show is"
VIEW_HOOKS = "a node's hooks are called though its view changed: torch makes the view another node"
FROZEN = "a leaf that is frozen may be written to by what was computed from it"
NO_GAIN = (
    "a hook after accumulation is called where something was accumulated: torch's is called where "
    "no gradient came, or where the leaf is frozen"
)
EXPANDED = "memory that several elements share is not written to: torch lets zero_ do so"
DATA = "x.data shares its version: torch does not see what is changed through it"
COPY = "a shallow copy shares its version with the memory: a change through either is found"
COPIED_RESULT = (
    "a result is not copied with its state, section 6: torch makes a shallow copy a leaf"
)
RECIPROCAL = "1 / x keeps x: torch keeps the reciprocal"
EMPTY_MASK = "x[mask] = v with nothing chosen is no change"
HOOKED_INPUT = "the gradient of an input is what its hooks made of it, whatever else is asked for"
NO_MEMORY = "zeros of a gradient are an array: torch's may have no memory"
LEAVES_IN_GROUP = "hooks of a group may be of leaves in autograd.grad too: torch cannot"
GROUP = "a group's hook is called once, when all is known: torch's does not count roots"
EMPTY = "an empty result is a result: torch's may be a leaf, or what it was given"
ROUNDING = "where torch's own numbers are others if it rounds otherwise, so may pullback's be"
SIGN_OF_ZERO = "the sign of a zero is nobody's business"
EMPTY_MEDIAN = "the median of nothing is an error, as the maximum is: torch's is NaN"
RUN_AGAIN = "a checkpoint runs again as it ran, whatever became of its arguments: torch's gives up"
CLOSED_OVER = "a checkpoint says that what it closes over was switched on since"
CHANGED_SINCE = "what a checkpoint closes over must not change until backward, as it says"
ASSERTED = "torch says of itself that it is a bug"
DETACHED_SINCE = "what was detached in place since it was saved has no second derivative"
CLAMPED = "clamp keeps x: torch keeps where it was inside"
RETAINED_DETACHED = "a tensor that was detached has no gradient to retain"
DEAD_END = "a view of what was detached has its graph, or none once it changed: torch's ends there"
LOST = "a view whose graph is lost cannot be used: torch sees that when it needs the graph"
LAID_OUT = "a product keeps its operands: torch's keeps what it laid out anew, a copy"
ONCE = "a second derivative through once_differentiable always raises, D of section 1.1"

TRANSPOSED = (
    ".T",
    ".mT",
    ".t()",
    "transpose(",
    "swapaxes(",
    "movedim(",
    "expand",
    "autograd.grad(",
)
CHANGING_HOOKS = ("g * 2", "mul_(3)", "-g)", "inner(g)", "log(")
HOOKS = re.compile(r"register_|group\(|retain_grad\(|\.remove\(")
CHANGES = re.compile(rf"t\d+\.\w+_\(|t\d+ [-+*/]=|t\d+\[.*\] = |(?:{'|'.join(DIRTY)})\.apply")
GIVES_UP = ("modified by an inplace operation", "torch.utils.checkpoint: ")
SWITCHING_ON = ("requires_grad_()", "requires_grad = True")
FREEZING = ("requires_grad_(False)", ".detach_()")


# Reason: the test of it.
DEVIATIONS = {
    KEPT: lambda d: (
        (says(d, None, "modified by an inplace operation") and agrees(d, ways.COPIES))
        or (uses(d, *SWITCHING_ON) and of_numbers(d) and agrees(d, ways.COPIES))
        or (says(d, "", "detached in-place") and agrees(d, ways.NOT_IN_PLACE))
    ),
    SECOND_TIME: lambda d: (
        says(d, "backward through the graph a second time", "") and comes_again(d)
    ),
    DETACHED_VIEW: lambda d: under_no_grad(d) and of_tracking(d) and (
        odd_views(d)
        or (d.what.endswith(".requires_grad") and view_differs(d))
        or agrees(d, ways.DETACHED)
    ),
    LATE_LEAF: lambda d: (
        (odd_views(d) and of_tracking(d) and uses(d, *SWITCHING_ON))
        or (says(d, "", "a leaf Variable that requires grad") and changes_followed_view(d))
        or (says(d, "you can only change requires_grad flags", "") and of_late_view(d))
        or (of_tracking(d) and uses(d, *SWITCHING_ON)
            and base_was_frozen(d))
    ),
    RETAINING: lambda d: retains(d) and any(
        t is differing_tensor(d) for t in asked_for_in_backward(d)
    ),
    MODE: lambda d: uses(d, "Counting.") and under_no_grad(d) and (
        agrees(d, ways.DETACHED)
    ),
    DIRTY_RESULT: lambda d: under_no_grad(d) and uses(d, *DIRTY) and agrees(d, ways.DIRTIED),
    GRADIENT_VERSIONS: lambda d: d.what.endswith("._version") and of_gradient(d),
    OTHER_SAVED: lambda d: uses(d, "create_graph") and (
        (uses(d, *CHANGING_HOOKS) and of_numbers(d) and agrees_without(d, HOOKS.search))
        or agrees_without(d, asks_by_result(d))
        or (says(d, "", "backward through the graph a second time")
            and not comes_again(d) and agrees(d, ways.RETAINING))
    ),
    NO_GRADIENT_ON: lambda d: (
        says(d, "", "backward through the graph a second time")
        and agrees(d, ways.RETAINING) and not any_reached_twice(d)
    ),
    OTHER_FORMULA: lambda d: uses(d, "create_graph") and (
        says(d, "cannot register a hook on a tensor that doesn't require", "")
        or recorded_otherwise(d)
        or (d.what.endswith((".grad", ".value")) and zero_or_none(d))
        or d.what.endswith(".grad.requires_grad")
        or (d.what.endswith(".requires_grad") and d.what.split(".")[0] in results_of_grad(d))
    ),
    ONE_NUMBER: lambda d: is_nan(d) and spreads_one_number(d),
    ORIGIN: lambda d: uses(d, ".hypot(") and (
        (is_nan(d) and not np.isnan(d.ours).any())
        or (d.what == "log" and "nan" in str(d.theirs) and "nan" not in str(d.ours))
    ),
    VIEW_HOOKS: lambda d: of_changed_view(d) or (
        of_numbers(d) and is_by_changed_view(d) and agrees_without(d, CHANGES.search)
    ) or (
        hooked_view(d) and (of_numbers(d) or retains(d)) and agrees_without(d, HOOKS.search)
    ),
    KEPT_GRADIENT: lambda d: uses(d, *DIRTY) and of_tracking(d) and agrees(d, ways.KEPT),
    UNTRACKED_BASE: lambda d: under_no_grad(d) and of_untracked_base(d) and (
        says(d, "", "A view was created in no_grad mode")
    ),
    LAYOUT: lambda d: uses(d, "reshape(", "view(", "flatten()", "ravel()", "contiguous()") and (
        says(d, "", "view size is not compatible")
        or says(d, "memory that can be seen in shape", "")
        or says(d, "", "Can't detach views")
        or (says(d, "", "is a view") and agrees(d, ways.NO_VIEWS))
        or (d.what.endswith((".value", "._version")) and uses(d, *TRANSPOSED)
            and agrees_without(d, CHANGES.search))
        or (uses(d, "contiguous()") and returned_itself(d) and (of_numbers(d) or d.what == "log")
            and agrees_without(d, HOOKS.search))
    ),
    FROZEN: lambda d: says(d, "", "leaf variable has been moved into the graph interior"),
    NO_GAIN: lambda d: d.what == "log" and uses(d, "post_accumulate") and agrees(d, ways.GAINED),
    UNREACHED_ROOT: lambda d: (
        says(d, "", "backward through the graph a second time") or heard_less(d)
    ) and runs_more(d),
    FOLLOWED_VIEW: lambda d: (
        says(d, "", "is the output of a function that returns multiple views") or
        says(d, "", "is a view and its base or another view of its base has been modified")
        or (d.what.endswith(".is_leaf") and d.theirs is RuntimeError)
        or (says(d, "", "and its base or another view") and uses(d, ".detach()", ".data"))
    ),
    DROPPED_LEAF: lambda d: of_numbers(d) and uses(d, "del ") and (
        agrees(d, ways.DROPPED) or (uses(d, "again(") and stops_hearing_of_deleted(d))
    ),
    NO_GRADIENT: lambda d: (
        (d.what == "error" and "'NoneType'" in str(d.theirs))
        or (d.what == "log" and same_events(*map(without_none, (d.ours, d.theirs))))
    ),
    OWN_GRADIENT: lambda d: uses(d, "autograd.", ".backward()") and agrees(d, ways.APART),
    OWN_COPY: lambda d: uses(d, "deepcopy", "pickle") and agrees(d, ways.UNEXPANDED),
    ALREADY_SO: lambda d: ".requires_grad = True" in d.line and says(
        d, "", "you can only change requires_grad flags of leaf"
    ),
    ONCE: lambda d: uses(d, "Once.") and (
        says(d, "once_differentiable", "")
        or (d.what.endswith(".requires_grad") and uses(d, "create_graph"))
    ),
    EXPANDED: lambda d: says(d, "more than one element of the written-to tensor", "") and (
        uses(d, "expand")
    ),
    COPIED_RESULT: lambda d: "copy.copy(" in d.line and (
        says(d, "only leaf Tensors", "") and of_result(d)
    ),
    DATA: lambda d: uses(d, ".data") and agrees(d, ways.COUNTED),
    COPY: lambda d: uses(d, "copy.copy(") and agrees(d, ways.COUNTED),
    RECIPROCAL: lambda d: says(d, "DivBackward: one of the variables", "") and any(
        re.search(r"= [-\d.]+ / t", line) for line in d.lines
    ),
    LEAVES_IN_GROUP: lambda d: says(d, "", "passed to _will_engine_execute_node"),
    EMPTY_MEDIAN: lambda d: says(d, "median: at least one element", ""),
    RUN_AGAIN: lambda d: uses(d, "again(") and (
        agrees(d, ways.ONE_RUN)
        or (any(says(d, "", words) for words in GIVES_UP)
            and agrees(d, ways.ONE_RUN, ways.COPIES))
    ),
    CHANGED_SINCE: lambda d: (
        of_numbers(d)
        or says(d, "a second run of <lambda>", None)
        or says(d, "", "torch.utils.checkpoint: ")
    ) and agrees_without(d, changes_closed_over(d)),
    CLOSED_OVER: lambda d: says(d, "a second run of <lambda>", None) and switches_closed_over(d),
    GROUP: lambda d: d.what == "log" and begins_in_group(d) and (
        same_events(*map(out_of_groups(d), (d.ours, d.theirs)))
    ),
    EMPTY: lambda d: (
        (d.what.endswith((".is_leaf", ".requires_grad", ".retains_grad", "._version"))
            or says(d, "you can only change requires_grad flags", ""))
        and any(t.numel() == 0 for t in tensors_named(d, names_in(d)))
    ) or (d.what == "log" and gave_back_empty(d) and agrees_without(d, HOOKS.search)),
    ROUNDING: lambda d: differs_where_huge(d) or is_unstable(d) or raises_otherwise(d),
    SIGN_OF_ZERO: lambda d: uses(d, "atan2(") and differs_by_half_turns(d),
    ASSERTED: lambda d: says(d, "", "INTERNAL ASSERT FAILED"),
    DETACHED_SINCE: lambda d: says(d, "detached in place since", "") and uses(d, ".detach_()"),
    CLAMPED: lambda d: says(d, "ClampBackward: one of the variables", ""),
    EMPTY_MASK: lambda d: d.what.endswith("._version") and assigns_nothing(d),
    HOOKED_INPUT: lambda d: uses(d, *CHANGING_HOOKS[:4]) and hooked_input(d) and (
        of_numbers(d) and agrees_without(d, HOOKS.search)
    ),
    NO_MEMORY: lambda d: says(d, "", "convert a ZeroTensor") or (
        d.theirs is RuntimeError and not np.any(d.ours) and zeros_without_memory(d)
    ),
    RETAINED_DETACHED: lambda d: d.what.endswith(".retains_grad") and uses(d, ".detach_()"),
    DEAD_END: lambda d: uses(d, *FREEZING) and of_tracking(d) and (
        any(map(leads_nowhere, [d, *counted(d)]))
        or any(map(is_lost, tensors_named(d, names_in(d))))
    ),
    LOST: lambda d: says(d, "the graph of the view is lost", "") and any(
        map(is_lost, tensors_named(d, names_in(d)))
    ),
    LAID_OUT: lambda d: any(t.dim() > 2 for t in d.theirs_tensors()) and (
        says(d, "MatmulBackward: one of the variables", "")
        or (uses(d, "matmul(", " @ ") and agrees(d, ways.NO_VIEWS))
    ),
    RETURNED_INPUT: lambda d: uses(d, "Same.", "BothSame.", "Viewing.") and (
        (returned_itself(d) and (of_tracking(d) or leaves_zeros(d)))
        or says(d, "", "A view was created in no_grad mode")
        or says(d, "", "This view was created inside a custom Function")
        or says(d, "", "Can't detach views in-place")
    ),
}  # fmt: skip


# Defects: how they show, and a program that shows each. One that is mended fails its test: take
# it out.
KNOWN = {
    "a view of a leaf that was frozen is changed in place": (
        lambda d: uses(d, *FREEZING) and says(d, "", "a view of a leaf Variable that requires"),
        "t1 = lib.tensor(array([1.0, 2.0]), requires_grad=True)",
        "t2 = t1[:1]",
        "t1.requires_grad_(False)",
        "t2[:] = 2.0",
    ),
    "pickles carry the gradient, which torch leaves behind": (
        lambda d: uses(d, "pickle") and (
            (d.what.endswith(".grad") and uses(d, f"{names_in(d)[0]} = pickle"))
            or says(d, "pickle, deepcopy", "")
        ),
        "t1 = lib.tensor(array([1.0, 2.0]), requires_grad=True)",
        "t1.sum().backward()",
        "t2 = pickle.loads(pickle.dumps(t1))",
    ),
}  # fmt: skip


def agrees(found, *asked):
    """Return whether torch does the same as pullback if it is asked in other ways.

    So it does where it goes on to differ in what is explained too.
    """
    if set(asked) & set(found.ways) or len(found.ways) > 3:
        return False
    again = compare(found.lines, found.every_step, (*found.ways, *asked))
    if again is None:
        return True
    return again.step >= found.step and not again.is_like(found) and explained(again) is not None


def counted(found):
    """Return what differs, if anything does, where torch sees what is changed through x.data."""
    if not uses(found, ".data") or ways.COUNTED in found.ways:
        return []
    again = compare(found.lines, found.every_step, (*found.ways, ways.COUNTED))
    return [] if again is None or again.step != found.step else [again]


def agrees_without(found, is_such):
    """Return whether both do the same once such statements are left out."""
    lines = [line for line in found.lines if not is_such(line)]
    if len(lines) == len(found.lines):
        return False
    again = compare(lines, found.every_step, found.ways)
    return again is None or explained(again) is not None


def explained(found):
    """Return why this may differ, or None.

    What follows from a difference that is seen earlier if tensors are looked at is that one's.
    """
    known = ((reason, test) for reason, (test, *_) in KNOWN.items())
    tests = (*DEVIATIONS.items(), *known)
    reason = next((reason for reason, test in tests if test(found)), None)
    if reason is None and not found.every_step:
        looked = compare(found.lines, True, found.ways)
        if looked is not None and looked.step < found.step:
            return explained(looked)
    return reason
