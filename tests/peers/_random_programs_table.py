"""Where random programs may differ from PyTorch, and why; each with a test of the difference.

A test gets the `Difference`, with the tensors of both libraries where it was found.
"""

import re
import warnings

import numpy as np
import torch
from tests.peers.program_names import Log, namespace
from tests.peers.program_runs import attempt, compare, eval_or_none, same_events
from torch.autograd.graph import saved_tensors_hooks

KEPT = "a rule keeps what it needs, as it was: torch does the same with copies of what it saves"
SECOND_TIME = "a second backward without retain_graph always raises, D of section 2"
DETACHED_VIEW = "what is made under no_grad requires no grad: torch says so of views of leaves"
LATE_LEAF = "views of a tensor follow it into the graph: torch does when they are next changed"
RETAINING = "inputs= fills .grad once: torch then goes on to retain it"
UNREACHED_ROOT = (
    "what inputs do not need is not run: torch runs roots, and more that leads to their nodes"
)
FOLLOWED_VIEW = "a view follows its base where its steps are known: torch gives up"
DROPPED_LEAF = "graphs do not keep leaves alive: a hook of a leaf that is gone has nothing to see"
NO_GRADIENT = "a hook is called with a gradient, never with None"
OWN_GRADIENT = "a gradient has memory of its own: torch's may be expanded"
ALREADY_SO = "x.requires_grad = True says nothing new of a result: torch raises"
RETURNED_INPUT = "an operation that records nothing returns the very tensor that forward returned"
MODE = "needs_input_grad is of what is recorded: nothing under no_grad, section 1.2"
DIRTY_RESULT = "a tensor marked dirty is the result, under no_grad too; torch gives a detached one"
GRADIENT_VERSIONS = "how often a gradient was added to is nobody's business"
OTHER_SAVED = "a rule that reads x, not the result, gives the result's hooks no second derivative"
NO_GRADIENT_ON = "a node that no gradient reaches is not run: torch releases what it saved"
OTHER_FORMULA = "whether a first derivative that is constant is recorded is a matter of its formula"
ORIGIN = "the slopes of hypot at the origin are 0, docs/edge-values.md: torch's are NaN"
ONE_NUMBER = "one number has no spread: NaN and where it goes, docs/edge-values.md"
KEPT_GRADIENT = "a gradient that was retained stays when its tensor is marked dirty"
UNTRACKED_BASE = "a view of what requires no grad is tracked when changed, made in whatever mode"
LAYOUT = "the order of a result's elements in memory is NumPy's, so what reshape can show is"
VIEW_HOOKS = "a node's hooks are called though its view changed: torch makes the view another node"
FROZEN = "a leaf that is frozen may be written to by what was computed from it"
EXPANDED = "memory that several elements share is not written to: torch lets zero_ do so"
DATA = "x.data shares its version: torch does not see what is changed through it"
COPY = "a shallow copy shares its version with the memory: a change through either is found"
RECIPROCAL = "1 / x keeps x: torch keeps the reciprocal"
EMPTY_MASK = "x[mask] = v with nothing chosen is no change"
COPIED_FROM_ITSELF = "x.copy_(x) is a change as any other: torch leaves out what changes nothing"
HOOKED_INPUT = "the gradient of an input is what its hooks made of it, whatever else is asked for"
NO_MEMORY = "zeros of a gradient are an array: torch's may have no memory"
LEAVES_IN_GROUP = "hooks of a group may be of leaves in autograd.grad too: torch cannot"
GROUP = "a group's hook is called once, when all is known: torch's does not count roots"
EMPTY = "an empty result is a result: torch's may be a leaf, or what it was given"
NEAR_ZERO = "what is divided by a zero, or turned about one, is a matter of rounding"
SIGN_OF_ZERO = "the sign of a zero is nobody's business"
EMPTY_MEDIAN = "the median of nothing is an error, as the maximum is: torch's is NaN"
RUN_AGAIN = "a checkpoint runs again as it ran, whatever became of its arguments: torch's gives up"
CLOSED_OVER = "a checkpoint says that what it closes over was switched on since"
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

FREEZING = ("requires_grad_(False)", ".detach_()")
DIRTY = ("Doubled.", "DoubledSaved.", "DirtyFirst.", "PairDirty.")


def says(found, ours="", theirs=""):
    """Return whether the errors have these words; "" where there is to be none."""
    return found.what == "error" and all(
        (error is None and not words) or (error is not None and words and words in str(error))
        for error, words in ((found.ours, ours), (found.theirs, theirs))
    )


def uses(found, *words):
    return any(word in line for line in found.lines for word in words)


def odd_view(t):
    """Return whether torch calls a view a leaf that requires grad though nothing was asked."""
    try:
        return t._is_view() and t.is_leaf and t.requires_grad
    except RuntimeError:  # it was one, until its base changed
        return True


def changes_followed_view(found):
    """Return whether a statement changes a view that torch, if it is asked, calls a result."""
    name = re.search(r"t\d+", found.line)
    t = found.names[1].get(name[0]) if name else None
    return is_tensor(t) and t._is_view() and t.requires_grad and not t.is_leaf


def of_late_view(found):
    """Return whether a statement is about a view whose base is, in torch, a result."""
    tensors = tensors_named(found, re.findall(r"t\d+", found.line))
    return any(t._is_view() and t._base.requires_grad for t in tensors)


def odd_views(found):
    return any(odd_view(t) for t in found.theirs_tensors())


def of_tracking(found):
    """Return whether what differs is whether something is tracked, or an error that follows."""
    if found.what == "error":
        words = (
            "require",
            "used in the graph",
            "view",
            "leaf",
            "modified",
            "'NoneType'",
            "gradient function",
        )
        return any(word in f"{found.ours} {found.theirs}" for word in words)
    return found.what.split(".")[-1] != "value" or found.ours is None or found.theirs is None


def heard_less(found):
    """Return whether hooks heard less in pullback, or a retained gradient has less in it."""
    if found.what == "log":
        return len(found.ours) < len(found.theirs)
    t = found.names[1].get(found.what.split(".")[0])
    return found.what.endswith(".grad") and (found.ours is None or t.retains_grad)


def runs_more(found):
    """Return whether torch ran nodes that what was asked for does not need.

    It runs what leads to the node of a tensor that is asked for, be it to another of its results;
    and backward(inputs=) that node itself.
    """
    for line in found.lines:
        asked = {edge_of(u) for u in tensors_named(found, inputs_of(line))}
        nodes = {node for node, _ in asked}
        if "inputs=[" in line and not all(map(is_tensor, nodes)):
            return True
        for root in roots_of(found, line) if asked else ():
            leading = [edges_from(*edge) for edge in edges_from(*edge_of(root))]
            if asked.isdisjoint(edges_from(*edge_of(root))) or any(
                asked.isdisjoint(edges) and nodes & {node for node, _ in edges} for edges in leading
            ):
                return True
    return False


def roots_of(found, line):
    """Return the tensors that a pass begins at, as they are now."""
    roots = re.search(r"autograd\.\w+\(\[(.*?)\], \[", line)
    value = eval_or_none(f"[{roots[1]}]", dict(found.names[1])) if roots else None
    return value or []


def names_in(found):
    """Return the names of the tensors that what differs is said of."""
    return re.findall(r"t\d+", found.line if found.what == "error" else found.what)


def tensors_named(found, names):
    values = [found.names[1].get(name) for name in names]
    return [v for v in values if is_tensor(v)]


def edge_of(t):
    try:
        return (t.grad_fn or t, t.output_nr)
    except RuntimeError:  # a view whose graph is lost
        return (t, 0)


def edges_from(*root):
    """Return the results, nodes and their numbers, that lead to one; itself too."""
    found, waiting = set(), [root]
    while waiting:
        edge = waiting.pop()
        if edge[0] is not None and edge not in found:
            found.add(edge)
            node = edge[0]
            if not is_tensor(node):
                waiting += [leaf_or_node(*e) for e in node.next_functions]
    return found


def leaf_or_node(node, number):
    """Return where an edge leads; the tensor itself for a leaf."""
    return (node.variable, 0) if hasattr(node, "variable") else (node, number)


def leads_nowhere(found):
    """Return whether what differs comes of a result, in torch, that no leaf led to."""
    tensors = tensors_named(found, re.findall(r"t\d+", f"{found.what} {found.line}"))
    return any(
        t.requires_grad
        and not t.is_leaf
        and not any(is_tensor(node) for node, _ in edges_from(*edge_of(t)))
        for t in tensors
        if not is_lost(t)
    )


def is_lost(t):
    """Return whether torch knows no graph of a view any more."""
    try:
        t.grad_fn  # noqa: B018
    except RuntimeError:
        return True
    return False


def hooked_view(found):
    """Return whether a view was given a hook and then changed, in which torch loses the hook."""
    hooked = re.findall(r"(t\d+)\.(?:grad_fn\.|retain_grad|register_hook)", "\n".join(found.lines))
    return any(is_changed_view(found, name) for name in hooked)


def hooked_input(found):
    """Return whether a pass differentiates by what has a hook."""
    hooked = re.findall(r"(t\d+)\.register_hook", "\n".join(found.lines))
    return any(name in hooked for line in found.lines for name in inputs_of(line))


def is_changed_view(found, name):
    t = found.names[1].get(name)
    return is_tensor(t) and t._is_view() and t._version > 0


def of_changed_view(found):
    """Return whether torch found no way to a view, by which is differentiated, since it changed."""
    if found.what == "error":
        ended = found.theirs is None or "not have been used in the graph" in str(found.theirs)
        return ended and any(is_changed_view(found, name) for name in inputs_of(found.line))
    asked = {}
    for line in found.lines:
        results = re.findall(r"t\d+", line.partition(" = ")[0])
        asked.update(zip(results, inputs_of(line), strict=False))
    name = found.what.split(".")[0]
    return found.theirs is None and is_changed_view(found, asked.get(name))


def inputs_of(line):
    """Return the names of what a pass differentiates by, where it says so."""
    asked = re.search(r"inputs=\[(.*?)\]", line) or re.search(r"\], \[(t[^]]*)\]", line)
    return asked[1].split(", ") if asked else []


def view_differs(found):
    """Return whether what differs is said of a view that torch tracks."""
    t = found.names[1].get(found.what.split(".")[0])
    return is_tensor(t) and t._is_view() and not found.ours


def of_untracked_base(found):
    """Return whether a statement changes a view of what required no grad."""
    name = re.search(r"t\d+", found.line)
    t = found.names[1].get(name[0]) if name else None
    return is_tensor(t) and t._is_view() and not t._base.requires_grad


def under_no_grad(found):
    return uses(found, "no_grad()", "set_grad_enabled(False)", "inference_mode()")


# -- torch, asked otherwise -----------------------------------------------------------------------
def agrees(found, **asked):
    """Return whether torch does the same as pullback if it is asked in another way."""
    if asked.keys() & found.asked.keys():
        return False
    again = compare(found.lines, found.every_step, **found.asked, **asked)
    return again is None or (again.kind != found.kind and explained(again) is not None)


def copies_saved():
    """Let torch save copies, so that what is saved does not change."""
    return saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t)


def not_in_place(line):
    return re.sub(r"^(t\d+)\.detach_\(\)", r"\1 = \1.detach()", line)


def detached_under_no_grad(line):
    """Return a statement that makes a tensor under no_grad, of tensors that require none."""
    mode, made, expression = re.fullmatch(
        r"(with lib\.(?:no_grad\(\)|set_grad_enabled\(False\)): )?(t\d+(?:, \*?\w+)* = )?(.*)", line
    ).groups()
    if mode is None or made is None or "copy." in line or "pickle." in line:
        return line
    return mode + made + re.sub(r"\b(t\d+)\b", r"\1.detach()", expression)


def without_checkpoint(line):
    return re.sub(r"again\((lambda .*?), (t\d+(?:, t\d+)?)\)$", r"(\1)(\2)", line)


def retaining(line):
    """Return a statement that retains the graph if it runs backward."""
    if "retain_graph" in line or "create_graph" in line:
        return line
    if line.endswith(".backward()"):
        return line.replace(".backward()", ".backward(retain_graph=True)")
    return f"{line[:-1]}, retain_graph=True)" if "lib.autograd." in line else line


def any_reached_twice(found):
    """Return whether a gradient came to a node again after a pass that did not retain the graph."""
    names, watched, reached, released = namespace(torch, Log()), set(), set(), set()
    for line in found.lines:
        for t in [v for v in names.values() if is_tensor(v)]:
            watch(None if is_lost(t) else t.grad_fn, watched, reached)
        attempt(retaining(line), names)
        if reached & released:
            return True
        released |= reached if retaining(line) != line else set()
        reached.clear()
    return False


def watch(root, watched, reached):
    """Let the nodes that lead to `root` say when a gradient reaches them."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node is None or node in watched or node.name().endswith("AccumulateGrad"):
            continue
        watched.add(node)
        node.register_prehook(
            lambda gs, node=node: reached.add(node) if any(g is not None for g in gs) else None
        )
        waiting += [following for following, _ in node.next_functions]


def of_gradient(found):
    """Return whether what differs is a gradient, or a view of one."""
    text = found.what.split(".")[0] if found.what != "error" else found.line
    names = re.findall(r"t\d+", text)
    memories = [memory_of(found.names[1][n]) for n in names if is_tensor(found.names[1].get(n))]
    gradients = [v for k, v in found.names[1].items() if k in results_of_grad(found)]
    gradients += [v.grad for v in found.theirs_tensors() if quiet(v) is not None]
    return any(is_tensor(g) and memory_of(g) in memories for g in gradients)


def zeros_without_memory(found):
    """Return whether what differs is torch's tensor of zeros that has no memory."""
    name, _, what = found.what.partition(".")
    t = found.names[1][name]
    return torch._is_zerotensor(quiet(t) if what == "grad" else t)


def differs_where_huge(found):
    """Return whether numbers differ only where torch's are beyond measure, of a division by 0."""
    pair = (found.ours, found.theirs)
    if not all(isinstance(a, np.ndarray) for a in pair) or pair[0].shape != pair[1].shape:
        return False
    return bool(
        (np.isclose(*pair, rtol=1e-7, atol=1e-9) | (np.minimum(*map(np.abs, pair)) > 1e12)).all()
    )


def any_noise(found):
    """Return whether a tensor has numbers that rounding left in the place of a zero."""
    sizes = [t.detach().abs() for t in found.theirs_tensors()]
    return any(bool(((size > 0) & (size < 1e-12)).any()) for size in sizes)


def is_nan(found):
    """Return whether numbers differ, some of which are NaN in one library."""
    pair = (found.ours, found.theirs)
    return all(isinstance(a, np.ndarray) for a in pair) and any(np.isnan(a).any() for a in pair)


def no_spread(found):
    """Return whether the numbers are equal whose deviation was taken: rounding leaves it a sign."""
    made = re.findall(r"^(?:with .*: )?(t\d+) = t\d+\.std\(", "\n".join(found.lines), re.MULTILINE)
    return isinstance(found.theirs, np.ndarray) and any(
        bool((t.detach().abs() < 1e-12).any()) for t in tensors_named(found, made)
    )


def one_gradient_for_two(found):
    """Return whether torch gave one tensor as the gradients of two."""
    given = tensors_named(found, sorted(results_of_grad(found)))
    return len({id(t) for t in given}) < len(given)


def is_tensor(value):
    return isinstance(value, torch.Tensor)


def memory_of(t):
    try:
        return t.untyped_storage().data_ptr()
    except RuntimeError:  # zeros that take no memory
        return id(t)


def quiet(t):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return t.grad


def results_of_grad(found):
    """Return the names that were given to gradients."""
    return {
        name
        for line in found.lines
        if "autograd.grad(" in line or line.endswith(".grad")
        for name in re.findall(r"t\d+", line.partition(" = ")[0])
    }


def recorded_otherwise(found):
    """Return whether a statement fails since a gradient was recorded in one library alone."""
    pairs = [[names.get(n) for names in found.names] for n in results_of_grad(found)]
    return (
        found.what == "error"
        and any(word in f"{found.ours} {found.theirs}" for word in ("equire", "'NoneType'"))
        and any(is_tensor(b) and a.requires_grad != b.requires_grad for a, b in pairs)
    )


def returned_itself(found):
    """Return whether two names are of one tensor in pullback, and of two in torch."""
    ours, theirs = found.names
    tensors = [n for n, v in theirs.items() if n[0] == "t" and is_tensor(v)]
    return any(
        ours.get(a) is ours.get(b) and theirs[a] is not theirs[b] for a in tensors for b in tensors
    )


def base_was_frozen(found):
    """Return whether what differs is said of a view whose base was frozen."""
    t = found.names[1].get(found.what.split(".")[0])
    if not (is_tensor(t) and t._is_view()):
        return False
    bases = [n for n, v in found.names[1].items() if v is t._base]
    return any(uses(found, f"{n}.requires_grad_(False)") for n in bases)


def out_of_groups(found):
    """Return a function of events that leaves out those of groups' hooks."""
    labels = re.findall(r"group\(\[.*?\], lambda gs: log\((\d+),", "\n".join(found.lines))
    return lambda events: [e for e in events if str(e[0]) not in labels]


def without_none(events):
    return [e for e in events if any(g is not None for g in e[1:])]


# Reason: the test of it.
DEVIATIONS = {
    KEPT: lambda d: (
        (says(d, "", "modified by an inplace operation") and agrees(d, around=copies_saved))
        or (says(d, "", "detached in-place") and agrees(d, in_torch=not_in_place))
    ),
    SECOND_TIME: lambda d: says(d, "backward through the graph a second time", ""),
    DETACHED_VIEW: lambda d: under_no_grad(d) and of_tracking(d) and (
        odd_views(d)
        or (d.what.endswith(".requires_grad") and view_differs(d))
        or agrees(d, in_torch=detached_under_no_grad)
    ),
    LATE_LEAF: lambda d: (
        (odd_views(d) and of_tracking(d) and uses(d, "requires_grad_()", "requires_grad = True"))
        or (says(d, "", "a leaf Variable that requires grad") and changes_followed_view(d))
        or (says(d, "you can only change requires_grad flags", "") and of_late_view(d))
        or (of_tracking(d) and uses(d, "requires_grad_()", "requires_grad = True")
            and base_was_frozen(d))
    ),
    RETAINING: lambda d: uses(d, "inputs=") and (
        d.what.split(".")[-1] in ("retains_grad", "grad")
        or says(d, "", "modified by an inplace operation")
    ),
    MODE: lambda d: uses(d, "Counting.") and under_no_grad(d) and (
        agrees(d, in_torch=detached_under_no_grad)
    ),
    DIRTY_RESULT: lambda d: uses(d, *(f"): t{i}" for i in range(99))) and any(
        line.startswith("with lib") and "enable_grad" not in line and any(w in line for w in DIRTY)
        for line in d.lines
    ),
    GRADIENT_VERSIONS: lambda d: d.what.endswith("._version") and of_gradient(d),
    OTHER_SAVED: lambda d: uses(d, "create_graph") and uses(d, *CHANGING_HOOKS) and (
        d.what.split(".")[-1] in ("value", "grad", "log")
    ),
    NO_GRADIENT_ON: lambda d: (
        says(d, "", "backward through the graph a second time")
        and agrees(d, in_torch=retaining) and not any_reached_twice(d)
    ),
    OTHER_FORMULA: lambda d: uses(d, "create_graph") and (
        says(d, "cannot register a hook on a tensor that doesn't require", "")
        or recorded_otherwise(d)
        or (d.what.endswith(".grad") and d.theirs is None and not np.any(d.ours))
        or d.what.endswith(".grad.requires_grad")
        or (d.what.endswith(".requires_grad") and d.what.split(".")[0] in results_of_grad(d))
    ),
    ONE_NUMBER: lambda d: uses(d, ".std(", ".var(") and (is_nan(d) or no_spread(d)),
    ORIGIN: lambda d: uses(d, ".hypot(") and (
        (is_nan(d) and not np.isnan(d.ours).any())
        or (d.what == "log" and "nan" in str(d.theirs) and "nan" not in str(d.ours))
    ),
    VIEW_HOOKS: lambda d: of_changed_view(d) or (hooked_view(d) and (
        d.what.split(".")[-1] in ("log", "grad", "value", "retains_grad")
    )),
    KEPT_GRADIENT: lambda d: d.what.endswith(".grad") and d.theirs is None and uses(d, *DIRTY),
    UNTRACKED_BASE: lambda d: under_no_grad(d) and of_untracked_base(d) and (
        says(d, "", "A view was created in no_grad mode")
    ),
    LAYOUT: lambda d: uses(d, "reshape(", "view(", "flatten()", "ravel()") and (
        says(d, "", "view size is not compatible")
        or says(d, "view", "")
        or says(d, "", "Can't detach views")
        or (d.what.endswith((".value", "._version")) and uses(d, *TRANSPOSED, "ravel()"))
    ),
    FROZEN: lambda d: says(d, "", "leaf variable has been moved into the graph interior") or (
        d.what == "log" and uses(d, "requires_grad_(False)")
    ),
    UNREACHED_ROOT: lambda d: (
        says(d, "", "backward through the graph a second time") or heard_less(d)
    ) and runs_more(d),
    FOLLOWED_VIEW: lambda d: (
        says(d, "", "is the output of a function that returns multiple views") or
        says(d, "", "is a view and its base or another view of its base has been modified")
        or (d.what.endswith(".is_leaf") and d.theirs is RuntimeError)
        or (says(d, "", "and its base or another view") and uses(d, ".detach()", ".data"))
    ),
    DROPPED_LEAF: lambda d: d.what == "log" and uses(d, "post_accumulate") and uses(d, "del "),
    NO_GRADIENT: lambda d: (
        (d.what == "error" and "'NoneType'" in str(d.theirs))
        or (d.what == "log" and without_none(d.ours) == without_none(d.theirs))
        or (d.what == "log" and heard_less(d) and uses(d, "PairNone.", "NoneForSecond."))
    ),
    OWN_GRADIENT: lambda d: (of_tracking(d) and one_gradient_for_two(d)) or (of_gradient(d) and (
        says(d, "", "more than one element of the written-to tensor")
        or says(d, "", "A view was created in no_grad mode")
        or says(d, "", "Can't detach views in-place")
        or says(d, "", "modifies inplace an input that is a view")
        or says(d, "", "modified by an inplace operation")
        or d.what.endswith((".value", ".requires_grad", ".is_leaf"))
    )) or (says(d, "", "more than one element of the written-to tensor") and uses(
        d, "deepcopy", "pickle"
    )),
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
    DATA: lambda d: uses(d, ".data") and (
        says(d, "modified by an inplace operation", "") or d.what.endswith("._version")
    ),
    COPY: lambda d: uses(d, "copy.copy(") and (
        d.what.endswith("._version") or says(d, "modified by an inplace operation", "")
    ),
    RECIPROCAL: lambda d: says(d, "DivBackward: one of the variables", "") and any(
        re.search(r"= [-\d.]+ / t", line) for line in d.lines
    ),
    LEAVES_IN_GROUP: lambda d: says(d, "", "passed to _will_engine_execute_node"),
    EMPTY_MEDIAN: lambda d: says(d, "median: at least one element", ""),
    RUN_AGAIN: lambda d: uses(d, "again(") and (
        agrees(d, in_torch=without_checkpoint)
        or (says(d, "", "modified by an inplace operation")
            and agrees(d, in_torch=without_checkpoint, around=copies_saved))
    ),
    CLOSED_OVER: lambda d: d.what == "error" and "a second run of <lambda>" in str(d.ours) and (
        uses(d, "requires_grad", ".detach_()")
    ),
    GROUP: lambda d: d.what == "log" and same_events(*map(out_of_groups(d), (d.ours, d.theirs))),
    EMPTY: lambda d: (
        d.what.endswith((".is_leaf", ".requires_grad", "._version"))
        or says(d, "you can only change requires_grad flags", "")
    ) and any(t.numel() == 0 for t in tensors_named(d, names_in(d))),
    NEAR_ZERO: lambda d: differs_where_huge(d) or (
        uses(d, "atan2(") and isinstance(d.theirs, np.ndarray) and any_noise(d)
    ),
    SIGN_OF_ZERO: lambda d: uses(d, "atan2(") and isinstance(d.theirs, np.ndarray) and (
        np.allclose(np.abs(d.ours), np.abs(d.theirs))
        and np.allclose(np.abs(d.ours)[d.ours != d.theirs], np.pi)
    ),
    ASSERTED: lambda d: says(d, "", "INTERNAL ASSERT FAILED"),
    DETACHED_SINCE: lambda d: says(d, "detached in place since", "") and uses(d, ".detach_()"),
    CLAMPED: lambda d: says(d, "ClampBackward: one of the variables", ""),
    EMPTY_MASK: lambda d: (
        d.what.endswith("._version") or says(d, "", "modified by an inplace operation")
    ) and any(re.search(r"\[t\d+ > .*\] = ", line) for line in d.lines),
    COPIED_FROM_ITSELF: lambda d: (
        d.what.endswith("._version") or says(d, "modified by an inplace operation", "")
    ) and any(re.search(r"(t\d+)\.copy_\(\1\)", line) for line in d.lines),
    HOOKED_INPUT: lambda d: uses(d, *CHANGING_HOOKS[:4]) and d.what.split(".")[-1] in (
        "value", "grad"
    ) and hooked_input(d),
    NO_MEMORY: lambda d: says(d, "", "convert a ZeroTensor") or (
        d.theirs is RuntimeError and not np.any(d.ours) and zeros_without_memory(d)
    ),
    RETAINED_DETACHED: lambda d: d.what.endswith(".retains_grad") and uses(d, ".detach_()"),
    DEAD_END: lambda d: uses(d, *FREEZING) and of_tracking(d) and (
        leads_nowhere(d) or any(map(is_lost, tensors_named(d, names_in(d))))
    ),
    LOST: lambda d: says(d, "the graph of the view is lost", "") and any(
        map(is_lost, tensors_named(d, names_in(d)))
    ),
    LAID_OUT: lambda d: any(t.dim() > 2 for t in d.theirs_tensors()) and (
        says(d, "MatmulBackward: one of the variables", "")
        or (says(d, "", "Can't detach views") and uses(d, "matmul(", " @ "))
    ),
    RETURNED_INPUT: lambda d: uses(d, "Same.", "BothSame.", "Viewing.") and (
        (returned_itself(d) and of_tracking(d))
        or says(d, "", "A view was created in no_grad mode")
        or says(d, "", "This view was created inside a custom Function")
        or says(d, "", "Can't detach views in-place")
        or d.what.endswith(".grad")
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
            d.what.split(".")[-1] == "grad" or says(d, "pickle, deepcopy", "")
        ),
        "t1 = lib.tensor(array([1.0, 2.0]), requires_grad=True)",
        "t1.sum().backward()",
        "t2 = pickle.loads(pickle.dumps(t1))",
    ),
}  # fmt: skip


def explained(found):
    """Return why this may differ, or None."""
    known = ((reason, test) for reason, (test, *_) in KNOWN.items())
    tests = (*DEVIATIONS.items(), *known)
    return next((reason for reason, test in tests if test(found)), None)
