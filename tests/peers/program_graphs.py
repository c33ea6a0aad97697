"""What can be seen of the graphs of a difference, and by running its program once more.

Owns which nodes a pass comes to, of the tensors as they were when it began.
"""

import re

import torch
from tests.peers.program_facts import inputs_of, is_lost, tensors_in, tensors_named
from tests.peers.program_names import Log, is_tensor, memory_of, namespace
from tests.peers.program_runs import attempt, attempt_in, eval_or_none
from tests.peers.program_ways import retaining

import pullback as pb


# -- graphs ---------------------------------------------------------------------------------------
def edge_of(t):
    try:
        return (t.grad_fn or t, t.output_nr)
    except RuntimeError:  # a view whose graph is lost
        return (t, 0)


def leaf_or_node(node, number):
    """Return where an edge leads; the tensor itself for a leaf."""
    return (node.variable, 0) if hasattr(node, "variable") else (node, number)


def edges_from(*root):
    """Return the results, nodes and their numbers, that lead to one; itself too."""
    found, waiting = set(), [root]
    while waiting:
        edge = waiting.pop()
        if edge[0] is not None and edge not in found:
            found.add(edge)
            node = edge[0]
            if hasattr(node, "next_functions"):
                waiting += [leaf_or_node(*e) for e in node.next_functions]
    return found


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


# -- passes ---------------------------------------------------------------------------------------
def roots_of(names, line):
    """Return the tensors that a pass begins at; none of what is no pass."""
    roots = re.search(r"autograd\.\w+\(\[(.*?)\], \[", line) or re.search(r"(.*)\.backward\(", line)
    value = eval_or_none(f"[{roots[1]}]", dict(names)) if roots else None
    return value or []


def runs_more(found):
    """Return whether torch ran nodes that what was asked for does not need."""
    names = namespace(torch, Log())
    for line in found.lines:
        if pass_runs_more(names, line):  # of the tensors as they are before it
            return True
        attempt_in(found.ways, line, names)
    return False


def pass_runs_more(names, line):
    """Return whether torch runs nodes in a pass that what is asked for does not need.

    It runs what leads to the node of a tensor that is asked for, be it to another of its results;
    and backward(inputs=) that node itself.
    """
    asked = {edge_of(t) for t in tensors_in(names, inputs_of(line))}
    nodes = {node for node, _ in asked}
    if "inputs=[" in line and not all(map(is_tensor, nodes)):
        return True
    for root in roots_of(names, line) if asked else ():
        edges = edges_from(*edge_of(root))
        if asked.isdisjoint(edges):
            return True
        for leading in (edges_from(*edge) for edge in edges):
            if asked.isdisjoint(leading) and nodes & {node for node, _ in leading}:
                return True
    return False


def comes_again(found):
    """Return whether a pass comes to nodes of pullback's that one before it released."""
    names, released = namespace(pb, Log()), set()
    for line in found.lines:
        nodes = nodes_needed(names, line)
        if nodes & released:
            return True
        released |= nodes if retaining(line) != line else set()
        attempt(line, names)
    return False


def nodes_needed(names, line):
    """Return the nodes that a pass has to run, which lead to what is asked for."""
    asked = {edge_of(t)[0] for t in tensors_in(names, inputs_of(line))}
    edges = {e for root in roots_of(names, line) for e in edges_from(*edge_of(root))}
    nodes = {node for node, _ in edges if hasattr(node, "next_functions")}
    if asked:
        nodes = {n for n in nodes if any(node in asked for node, _ in edges_from(n, 0))}
    return nodes


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


def begins_in_group(found):
    """Return whether a pass begins at a tensor that a group's hook waits for."""
    names, grouped = namespace(torch, Log()), set()
    for line in found.lines:
        group = re.search(r"group\(\[(.*?)\]", line)
        grouped |= {edge_of(t) for t in tensors_in(names, group[1].split(", "))} if group else set()
        if any(edge_of(root) in grouped for root in roots_of(names, line)):
            return True
        attempt_in(found.ways, line, names)
    return False


# -- checkpoints ----------------------------------------------------------------------------------
def closed_over_by(names, line):
    """Return the tensors that a checkpoint closes over."""
    return tensors_in(names, re.findall(r"\bw=(t\d+):", line))


def changes_closed_over(found):
    """Return a function of statements: whether one changes what a checkpoint closes over."""
    names, held, changing = namespace(torch, Log()), [], set()
    for line in found.lines:
        before = [t._version for t in held]
        attempt_in(found.ways, line, names)
        if before != [t._version for t in held]:
            changing.add(line)
        held += closed_over_by(names, line)
    return changing.__contains__


def switches_closed_over(found):
    """Return whether what a checkpoint closes over was switched on or off since."""
    names, held = namespace(torch, Log()), []
    for line in found.lines:
        attempt_in(found.ways, line, names)
        held += [(t, t.requires_grad) for t in closed_over_by(names, line)]
    return any(t.requires_grad != before for t, before in held)


# -- operations -----------------------------------------------------------------------------------
def assigns_nothing(found):
    """Return whether a statement assigned to no element of the memory that what differs is of."""
    names, memories = namespace(torch, Log()), set()
    for line in found.lines:
        assigned = re.search(r"(t\d+)\[(t\d+ > [\d.]+)\] = ", line)
        chosen = eval_or_none(assigned[2], names) if assigned else None
        if chosen is not None and not chosen.any():
            memories |= {memory_of(t) for t in tensors_in(names, [assigned[1]])}
        attempt_in(found.ways, line, names)
    return memory_of(names.get(found.what.split(".")[0])) in memories


def spreads_one_number(found):
    """Return whether a spread was taken of one number."""
    names = namespace(torch, Log())
    for line in found.lines:
        attempt_in(found.ways, line, names)
        spread = re.search(r"(t\d+) = (t\d+)\.(?:std|var)\(", line)
        result, taken = (names.get(n) for n in spread.groups()) if spread else (None, None)
        if is_tensor(result) and taken.numel() <= result.numel():
            return True
    return False
