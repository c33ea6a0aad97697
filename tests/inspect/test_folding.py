"""`Graph.blocks`: repetitions are folded, each node stands once, and no level is too wide."""

import numpy as np
from hypothesis import given, settings, strategies as st

import pullback as pb
from pullback.inspect.folding import MOST, folded
from pullback.inspect.records import GraphNode


def nodes(names, lines=None):
    lines = lines or [None] * len(names)
    return [
        GraphNode(k, name, None, (), (), 0, False, line=line)
        for k, (name, line) in enumerate(zip(names, lines, strict=True))
    ]


def shape(blocks):
    return [(b.name, b.count, shape(b.children) if b.children else list(b.nodes)) for b in blocks]


def total(blocks):
    return sum(b.count * (total(b.children) if b.children else 1) for b in blocks)


def widths(blocks):
    yield len(blocks)
    for block in blocks:
        if block.children:
            yield from widths(block.children)


def test_blocks_fold_what_follows_one_another_and_is_equal():
    assert shape(folded(nodes("abababz"))) == [
        ("a, b", 3, [("a", 1, [0, 2, 4]), ("b", 1, [1, 3, 5])]),
        ("z", 1, [6]),
    ]
    assert shape(folded(nodes("aaaa"))) == [("a", 4, [0, 1, 2, 3])]


def test_blocks_fold_loops_within_loops():
    blocks = folded(nodes("aab" * 2 + "aab"))
    assert shape(blocks) == [("a, b", 3, [("a", 2, [0, 1, 3, 4, 6, 7]), ("b", 1, [2, 5, 8])])]


def test_blocks_of_equal_operations_on_other_lines_are_apart():
    blocks = folded(nodes("aa", ["x.py:1", "x.py:2"]))
    assert shape(blocks) == [("a", 1, [0]), ("a", 1, [1])]


def test_blocks_are_grouped_by_line_where_there_are_too_many():
    names = [f"op{k}" for k in range(300)]
    blocks = folded(nodes(names, [f"x.py:{k // 10}" for k in range(300)]))
    assert [b.name for b in blocks[:2]] == ["x.py:0", "x.py:1"]
    assert len(blocks) == 30


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(0, 1500))
def test_blocks_of_random_graphs_hold_each_node_once_and_count_them(seed, kinds, count):
    rng = np.random.default_rng(seed)
    found = nodes([f"op{k}" for k in rng.integers(0, kinds, count)])
    blocks = folded(found)
    ids = sorted(k for block in blocks for part in block.leaves() for k in part.nodes)
    assert ids == [node.id for node in found]
    assert total(blocks) == count
    assert max(widths(blocks)) <= MOST


def test_blocks_of_a_recurrent_network_are_one_loop():
    w = pb.tensor([[0.5, 0.1], [0.2, 0.4]], requires_grad=True)
    h = pb.ones((1, 2))
    for _ in range(100):
        h = (h @ w).tanh()
    first, loop, *rest = pb.inspect.graph(h.sum()).blocks
    blocks = [first, loop, *rest]
    assert max(block.count for block in blocks) >= 99
    assert len(blocks) <= 4
