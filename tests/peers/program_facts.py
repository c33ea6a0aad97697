"""What can be seen of a difference: the words of its program, and torch's tensors."""

import re
import warnings

import numpy as np
import torch
from tests.peers.program_names import Log, is_tensor, memory_of, namespace
from tests.peers.program_runs import attempt_in, look, same_events
from tests.peers.program_ways import roundings


# -- words ----------------------------------------------------------------------------------------
def says(found, ours="", theirs=""):
    """Return whether the errors have these words; "" is for no error, None for any or none."""
    return found.what == "error" and has_words(found.ours, ours) and has_words(found.theirs, theirs)


def has_words(error, words):
    if words is None or error is None:
        return not words
    return words != "" and words in str(error)


def uses(found, *words):
    return any(word in line for line in found.lines for word in words)


def under_no_grad(found):
    return uses(found, "no_grad()", "set_grad_enabled(False)", "inference_mode()")


def names_in(found):
    """Return the names of the tensors that what differs is said of."""
    return re.findall(r"t\d+", found.line if found.what == "error" else found.what)


def inputs_of(line):
    """Return the names of what a pass differentiates by, where it says so."""
    asked = re.search(r"inputs=\[(.*?)\]", line) or re.search(r"\], \[(t[^]]*)\]", line)
    return asked[1].split(", ") if asked else []


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


def of_numbers(found):
    """Return whether numbers differ: values, gradients, or what hooks heard."""
    return found.what.split(".")[-1] in ("value", "grad", "log")


def recorded_otherwise(found):
    """Return whether a statement fails since a gradient was recorded in one library alone."""
    if found.what != "error":
        return False
    given = [[names.get(n) for names in found.names] for n in results_of_grad(found)]
    named = [[names.get(n) for names in found.names] for n in names_in(found)]
    held = [[quiet(t) for t in pair] for pair in named if is_tensor(pair[1])]
    words = any(word in f"{found.ours} {found.theirs}" for word in ("equire", "'NoneType'"))
    return any(
        is_tensor(b) and a is not None and a.requires_grad != b.requires_grad
        for a, b in (given if words else []) + held
    )


# -- tensors --------------------------------------------------------------------------------------
def tensors_in(names, wanted):
    """Return the tensors that have these names, of those that there are."""
    values = [names.get(name) for name in wanted]
    return [v for v in values if is_tensor(v)]


def tensors_named(found, names):
    return tensors_in(found.names[1], names)


def operands(found):
    """Return torch's tensors that the statement which differs names."""
    return tensors_named(found, re.findall(r"t\d+", found.line))


def of_result(found):
    """Return whether a statement is about what, in torch, is no leaf."""
    return any(is_lost(t) or not t.is_leaf for t in operands(found))


def differing_tensor(found):
    """Return torch's tensor that differs, or None."""
    return found.names[1].get(found.what.split(".")[0])


def quiet(t):
    """Return the gradient of a tensor, or None; for a result without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(t, "grad", None)


def returned_itself(found):
    """Return whether two names are of one tensor in pullback, and of two in torch."""
    ours, theirs = found.names
    tensors = [n for n, v in theirs.items() if n[0] == "t" and is_tensor(v)]
    return any(
        ours.get(a) is ours.get(b) and theirs[a] is not theirs[b] for a in tensors for b in tensors
    )


def gave_back_empty(found):
    """Return whether two names are of one empty tensor in torch, and of two in pullback."""
    ours, theirs = found.names
    empty = [n for n, v in theirs.items() if n[0] == "t" and is_tensor(v) and v.numel() == 0]
    return any(
        theirs[a] is theirs[b] and ours.get(a) is not ours.get(b) for a in empty for b in empty
    )


def retains(found):
    """Return whether what differs is said of a gradient that torch retains."""
    t = differing_tensor(found)
    return found.what.endswith((".retains_grad", ".grad")) and t.retains_grad


def asked_for_in_backward(found):
    """Return torch's tensors that a pass filled the gradients of as its inputs."""
    lines = [line for line in found.lines if "inputs=[" in line]
    return [t for line in lines for t in tensors_named(found, inputs_of(line))]


# -- views ----------------------------------------------------------------------------------------
def odd_view(t):
    """Return whether torch calls a view a leaf that requires grad though nothing was asked."""
    try:
        return t._is_view() and t.is_leaf and t.requires_grad
    except RuntimeError:  # it was one, until its base changed
        return True


def odd_views(found):
    return any(odd_view(t) for t in found.theirs_tensors())


def is_lost(t):
    """Return whether torch knows no graph of a view any more."""
    try:
        t.grad_fn  # noqa: B018
    except RuntimeError:
        return True
    return False


def view_differs(found):
    """Return whether what differs is said of a view that torch tracks."""
    t = differing_tensor(found)
    return is_tensor(t) and t._is_view() and not found.ours


def changes_followed_view(found):
    """Return whether a statement is about a view that torch, if it is asked, calls a result."""
    return any(
        t._is_view() and not is_lost(t) and t.requires_grad and not t.is_leaf
        for t in operands(found)
    )


def of_late_view(found):
    """Return whether a statement is about a view whose base is, in torch, a result."""
    return any(t._is_view() and t._base.requires_grad for t in operands(found))


def of_untracked_base(found):
    """Return whether a statement is about a view of what required no grad."""
    return any(t._is_view() and not t._base.requires_grad for t in operands(found))


def base_was_frozen(found):
    """Return whether what differs is said of a view whose base was frozen."""
    t = differing_tensor(found)
    if not (is_tensor(t) and t._is_view()):
        return False
    bases = [n for n, v in found.names[1].items() if v is t._base]
    return any(uses(found, f"{n}.requires_grad_(False)", f"{n}.detach_()") for n in bases)


def is_changed_view(found, name):
    t = found.names[1].get(name)
    return is_tensor(t) and t._is_view() and t._version > 0


def of_changed_view(found):
    """Return whether torch found no way to a view, by which is differentiated, since it changed."""
    if found.what == "error":
        ended = found.theirs is None or "not have been used in the graph" in str(found.theirs)
        return ended and any(is_changed_view(found, name) for name in inputs_of(found.line))
    theirs = found.theirs
    is_nothing = theirs is None or (isinstance(theirs, np.ndarray) and not theirs.any())
    return is_nothing and is_by_changed_view(found)


def is_by_changed_view(found):
    """Return whether a gradient differs by a view that changed."""
    asked = {}
    for line in found.lines:
        results = re.findall(r"t\d+", line.partition(" = ")[0])
        asked.update(zip(results, inputs_of(line), strict=False))
    return is_changed_view(found, asked.get(found.what.split(".")[0]))


def hooked_view(found):
    """Return whether a view was given a hook and then changed, in which torch loses the hook."""
    lines = "\n".join(found.lines)
    hooked = re.findall(r"(t\d+)\.(?:grad_fn\.|retain_grad|register_hook)", lines)
    for group in re.findall(r"group\(\[(.*?)\]", lines):
        hooked += group.split(", ")
    return any(is_changed_view(found, name) for name in hooked)


# -- gradients ------------------------------------------------------------------------------------
def results_of_grad(found):
    """Return the names that were given to gradients."""
    return {
        name
        for line in found.lines
        if "autograd.grad(" in line or line.endswith(".grad")
        for name in re.findall(r"t\d+", line.partition(" = ")[0])
    }


def of_gradient(found):
    """Return whether what differs is a gradient, or a view of one."""
    text = found.what.split(".")[0] if found.what != "error" else found.line
    names = re.findall(r"t\d+", text)
    memories = [memory_of(found.names[1][n]) for n in names if is_tensor(found.names[1].get(n))]
    gradients = [v for k, v in found.names[1].items() if k in results_of_grad(found)]
    gradients += [v.grad for v in found.theirs_tensors() if quiet(v) is not None]
    return any(is_tensor(g) and memory_of(g) in memories for g in gradients)


def leaves_zeros(found):
    """Return whether torch was asked for zeros in place of gradients that do not exist."""
    return "materialize_grads=True" in found.line and of_numbers(found) and not np.any(found.theirs)


def zero_or_none(found):
    """Return whether a gradient is zeros in one library, and not there in the other."""
    pair = (found.ours, found.theirs)
    return sum(v is None for v in pair) == 1 and not any(np.any(v) for v in pair if v is not None)


def zeros_without_memory(found):
    """Return whether what differs is torch's tensor of zeros that has no memory."""
    what, t = found.what.partition(".")[2], differing_tensor(found)
    return torch._is_zerotensor(quiet(t) if what == "grad" else t)


def asks_by_result(found):
    """Return a function of statements: whether one differentiates what was recorded by a result."""
    asking, recorded = set(), False
    for line in found.lines:
        asked = tensors_named(found, inputs_of(line))
        if recorded and any(is_lost(t) or not t.is_leaf for t in asked):
            asking.add(line)
        recorded = recorded or "create_graph" in line
    return asking.__contains__


def hooked_input(found):
    """Return whether a pass differentiates by what has a hook."""
    hooked = re.findall(r"(t\d+)\.register_hook", "\n".join(found.lines))
    return any(name in hooked for line in found.lines for name in inputs_of(line))


# -- hooks ----------------------------------------------------------------------------------------
def heard_less(found):
    """Return whether hooks heard less in pullback, or a retained gradient has less in it."""
    if found.what == "log":
        return len(found.ours) < len(found.theirs)
    t = differing_tensor(found)
    return found.what.endswith(".grad") and (found.ours is None or t.retains_grad)


def stops_hearing_of_deleted(found):
    """Return whether all that pullback heard less is what came to leaves after they were deleted.

    What a checkpoint closes over is there until that has run again.
    """
    if found.what != "log":
        return False
    text = "\n".join(found.lines)
    deleted = re.findall(r"^del (t\d+)$", text, re.MULTILINE)
    hooks = re.findall(r"^h\d+ = (t\d+)\.register.*log\((\d+),", text, re.MULTILINE)
    labels = {int(label) for name, label in hooks if name in deleted}
    heard = {label: [e for e in found.ours if e[0] == label] for label in labels}
    said = {label: [e for e in found.theirs if e[0] == label] for label in labels}
    others = [[e for e in events if e[0] not in labels] for events in (found.ours, found.theirs)]
    return same_events(*others) and all(
        same_events(events, said[label][: len(events)]) for label, events in heard.items()
    )


def out_of_groups(found):
    """Return a function of events that leaves out those of groups' hooks."""
    labels = re.findall(r"group\(\[.*?\], lambda gs: log\((\d+),", "\n".join(found.lines))
    return lambda events: [e for e in events if str(e[0]) not in labels]


def without_none(events):
    return [e for e in events if any(g is not None for g in e[1:])]


# -- numbers --------------------------------------------------------------------------------------
def differs_where_huge(found):
    """Return whether numbers differ only where torch's are beyond measure, of a division by 0."""
    pair = (found.ours, found.theirs)
    if not all(isinstance(a, np.ndarray) for a in pair) or pair[0].shape != pair[1].shape:
        return False
    return bool(
        (np.isclose(*pair, rtol=1e-7, atol=1e-9) | (np.minimum(*map(np.abs, pair)) > 1e12)).all()
    )


def differs_by_half_turns(found):
    """Return whether numbers differ only where both are 0 or pi, be it with a sign."""
    pair = (found.ours, found.theirs)
    if not all(isinstance(a, np.ndarray) for a in pair) or pair[0].shape != pair[1].shape:
        return False
    differ = ~np.isclose(*pair, rtol=1e-7, atol=1e-9)
    return all(np.isin(np.abs(a)[differ], (0, np.pi)).all() for a in pair)


def is_nan(found):
    """Return whether numbers differ, some of which are NaN in one library."""
    pair = (found.ours, found.theirs)
    return all(isinstance(a, np.ndarray) for a in pair) and any(np.isnan(a).any() for a in pair)


def is_unstable(found):
    """Return whether torch's numbers differ as much from what they are if it rounds otherwise.

    So does how many they are, where a mask chose them.
    """
    pair = (found.ours, found.theirs)
    if not all(isinstance(a, np.ndarray) for a in pair):
        return False
    others = list(rounded_otherwise(found))
    if pair[0].shape != pair[1].shape:
        return uses(found, " > ") and any(a.shape != found.theirs.shape for a in others)
    apart = np.abs(np.subtract(*pair, dtype=float))
    most, flips = np.zeros_like(apart), np.zeros(apart.shape, bool)
    for other in others:
        if other.shape == most.shape:
            most = np.fmax(most, np.abs(np.asarray(other, float) - found.theirs))
            flips |= np.isfinite(other) != np.isfinite(found.theirs)
    differ = ~np.isclose(*pair, rtol=1e-7, atol=1e-9, equal_nan=True)
    return bool(np.where(np.isfinite(apart), most >= 0.1 * apart, flips)[differ].all())


def raises_otherwise(found):
    """Return whether pullback raises at what a mask chose, and torch would if it rounds otherwise.

    Or would not, where it raises.
    """
    if found.what != "error" or (found.ours is None) == (found.theirs is None):
        return False
    outcomes = (errors_of(found.lines, (*found.ways, way))[-1] for way in roundings())
    raised = found.theirs is not None
    return uses(found, " > ") and any((error is not None) != raised for error in outcomes)


def errors_of(lines, ways):
    """Return the error of each statement, or None, in torch asked in these ways."""
    names = namespace(torch, Log())
    return [attempt_in(ways, line, names) for line in lines]


def rounded_otherwise(found):
    """Yield what torch has in place of what differs, if it rounds otherwise."""
    name, _, what = found.what.partition(".")
    for way in roundings():
        names = namespace(torch, Log())
        for line in found.lines:
            attempt_in((*found.ways, way), line, names)
        value = look(names.get(name)).get(what)
        if isinstance(value, np.ndarray):
            yield value
