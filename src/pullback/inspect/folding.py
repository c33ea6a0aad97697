"""The folded view of a graph: what repeats is one block, and no level has too many of them.

Equal sequences of operation and line that follow one another are a repetition; short ones are
found first, so that loops within loops fold. What is left is grouped by the user's line, then by
file, then by number. Must not know where nodes come from.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pullback.inspect.records import Block, GraphNode

MOST = 200  # blocks of one level
_LONGEST = 2_000  # operations of what repeats
_WORK = 50_000_000  # comparisons, at most


def folded(nodes: Sequence[GraphNode]) -> tuple[Block, ...]:
    """Return the blocks of nodes, which are in order of creation."""
    blocks = [Block(node.name, 1, (), (node.id,)) for node in nodes]
    keys = [(node.name, node.line) for node in nodes]
    blocks = _repetitions(blocks, keys)
    lines = {node.id: node.line or "" for node in nodes}
    if len(blocks) > MOST:
        blocks = _grouped(blocks, lambda block: _line_of(block, lines))
    if len(blocks) > MOST:
        blocks = _grouped(blocks, lambda block: _line_of(block, lines).rpartition(":")[0])
    return _chunked(blocks)


def _line_of(block: Block, lines: dict[int, str]) -> str:
    return lines[next(block.leaves()).nodes[0]]


# -- repetitions -----------------------------------------------------------------------------------
def _repetitions(blocks: list[Block], keys: Sequence[Any]) -> list[Block]:
    """Fold sequences that follow one another and are equal, the shortest first."""
    numbers: dict[Any, int] = {}
    tokens = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    work, period = _WORK, 1
    while period <= min(len(tokens) // 2, _LONGEST) and work > 0:
        work -= len(tokens)
        runs = _runs_of(tokens, period)
        if runs:  # what is left may repeat in shorter sequences
            blocks, tokens = _with_runs(blocks, tokens, runs, period, numbers)
        period = 1 if runs else period + 1
    return blocks


def _runs_of(tokens: Any, period: int) -> list[tuple[int, int]]:
    """Return where a sequence of that length is repeated, and how often; no two overlap."""
    same = tokens[:-period] == tokens[period:]
    edges = np.flatnonzero(np.diff(np.concatenate(([0], same.view(np.int8), [0]))))
    found, free = [], 0
    for start, end in edges.reshape(-1, 2).tolist():
        start = max(start, free)
        count = (end - start) // period + 1
        if count > 1:
            found.append((start, count))
            free = start + count * period
    return found


def _with_runs(
    blocks: list[Block],
    tokens: Any,
    runs: Sequence[tuple[int, int]],
    period: int,
    numbers: dict[Any, int],
) -> tuple[list[Block], Any]:
    """Return blocks and their tokens with each run as one block."""
    left, new, at = list[Block](), list[int](), 0
    for start, count in runs:
        end = start + count * period
        key = (count, *tokens[start : start + period].tolist())
        left += [*blocks[at:start], _merged(blocks[start:end], count)]
        new += [*tokens[at:start].tolist(), numbers.setdefault(key, len(numbers))]
        at = end
    return [*left, *blocks[at:]], np.array([*new, *tokens[at:].tolist()], dtype=np.int64)


def _merged(blocks: Sequence[Block], count: int) -> Block:
    """Return repetitions of a sequence as one block."""
    period = len(blocks) // count
    parts = tuple(_together([*blocks[k::period]]) for k in range(period))
    if len(parts) > 1:
        return Block(_named(parts), count, parts)
    (only,) = parts
    if only.children:
        return Block(only.name, count, (only,))
    return Block(only.name, only.count * count, (), only.nodes)


def _together(same: Sequence[Block]) -> Block:
    """Return the block of all repetitions of equal blocks."""
    first = same[0]
    children = tuple(map(_together, zip(*(block.children for block in same), strict=True)))
    nodes = tuple(itertools.chain.from_iterable(block.nodes for block in same))
    return Block(first.name, first.count, children, nodes)


def _named(parts: Sequence[Block]) -> str:
    names = list(dict.fromkeys(part.name for part in parts))
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


# -- at most so many -------------------------------------------------------------------------------
def _grouped(blocks: Sequence[Block], key: Callable[[Block], str]) -> list[Block]:
    """Return blocks with neighbours of one key as one block."""
    found: list[Block] = []
    for name, group in itertools.groupby(blocks, key):
        parts = tuple(group)
        found += parts if len(parts) == 1 or not name else [Block(name, 1, _chunked(parts))]
    return found


def _chunked(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Return blocks in groups of neighbours, so that there are no more than fit at each level."""
    left = tuple(_opened(block) for block in blocks)
    while len(left) > MOST:
        size = max(2, min(MOST, -(-len(left) // MOST)))
        chunks = [left[k : k + size] for k in range(0, len(left), size)]
        left = tuple(Block(_named(chunk), 1, chunk) for chunk in chunks)
    return left


def _opened(block: Block) -> Block:
    if len(block.children) <= MOST:
        return block
    return Block(block.name, block.count, _chunked(block.children), block.nodes)
