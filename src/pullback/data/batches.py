"""Batches: rows of arrays that belong together, a few at a time.

The order of an epoch follows from the seed and the number of the epoch alone, so that two numbers
say where training stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.hints import hinted


class Batches:
    """An iterable of batches, made by `batches`: a new epoch at each ``for``.

    Attributes
    ----------
    epoch : int
        The number of the epoch that the next ``for`` gives, or the running one is in; from 0.
    position : int
        How many batches of it were given.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> batches = pb.data.batches(np.arange(5), size=2, seed=0)
    >>> for (x,) in batches:
    ...     if batches.position == 2:
    ...         state = batches.state_dict()  # the rest of the epoch: one batch
    >>> batches.load_state_dict(state)
    >>> len(list(batches)), len(list(batches))
    (1, 3)
    """

    def __init__(
        self, arrays: tuple[Any, ...], size: int, seed: int | None, drop_last: bool
    ) -> None:
        self.arrays, self.size, self.seed, self.drop_last = arrays, size, seed, drop_last
        self.epoch, self.position = 0, 0
        self._resumes = False  # whether the next epoch is one that was begun before

    def __len__(self) -> int:
        rows = len(self.arrays[0])
        return rows // self.size if self.drop_last else -(-rows // self.size)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        if not self._resumes:
            self.epoch, self.position = self.epoch + (self.position > 0), 0
        self._resumes = False
        epoch, rows = self.epoch, len(self.arrays[0])
        order = None if self.seed is None else np.random.default_rng([epoch, self.seed])
        numbers = np.arange(rows) if order is None else order.permutation(rows)
        for k in range(self.position, len(self)):
            self.epoch, self.position = epoch, k + 1
            chosen = numbers[k * self.size : (k + 1) * self.size]
            # Rows in order are a view of each array.
            index = slice(chosen[0], chosen[-1] + 1) if order is None else chosen
            yield tuple(array[index] for array in self.arrays)
        self.epoch, self.position = epoch + 1, 0

    def state_dict(self) -> dict[str, int]:
        """Return where the order stands; inside a loop the batch at hand counts as done."""
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state_dict: Mapping[str, int]) -> None:
        """Go on from a state: the next ``for`` gives the rest of its epoch."""
        self.epoch, self.position = int(state_dict["epoch"]), int(state_dict["position"])
        self._resumes = True

    def __repr__(self) -> str:
        return f"Batches({len(self)} of {self.size}, epoch {self.epoch}, {self.position} done)"


@hinted
def batches(*arrays: Any, size: int, seed: int | None = None, drop_last: bool = False) -> Batches:
    """Return the rows of arrays in batches, an epoch at each ``for``.

    Parameters
    ----------
    *arrays : Tensor or array
        Of one length along axis 0: inputs and targets.
    size : int
        The rows of a batch.
    seed : int, optional
        Shuffle each epoch anew, the same seed in the same way; without it rows keep their order.
    drop_last : bool
        Leave out a last batch that is smaller.

    Returns
    -------
    Batches
        An iterable of tuples, one item an array, with `state_dict` and `load_state_dict`.

    Raises
    ------
    ShapeError
        If the arrays differ in length, or have no axis.
    ArgumentError
        If there is no array, or `size` or `seed` is out of range.

    Examples
    --------
    >>> import numpy as np, pullback as pb
    >>> x, y = np.arange(5.0), np.arange(5)
    >>> [labels.tolist() for _, labels in pb.data.batches(x, y, size=2)]
    [[0, 1], [2, 3], [4]]
    """
    if not arrays:
        raise ArgumentError("batches: at least 1 array required, got none")
    for name, value, least in (("size", size, 1), ("seed", 0 if seed is None else seed, 0)):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            required = f"an integer required as {name}"
            raise ArgumentTypeError(compose("batches", required, type(value).__name__))
        if value < least:
            raise ArgumentError(
                compose("batches", f"a {name} of at least {least} required", str(value))
            )
    for i, array in enumerate(arrays):
        shape = getattr(array, "shape", None)
        if shape is None:
            required = "tensors or arrays required"
            hint = "make an array of it with np.asarray"
            came = f"{type(array).__name__} as number {i}"
            raise ArgumentTypeError(compose("batches", required, came, hint=hint))
        if not shape or shape[0] != arrays[0].shape[0]:
            required = "arrays of one length along axis 0 required"
            raise ShapeError(compose("batches", required, ", ".join(str(a.shape) for a in arrays)))
    return Batches(arrays, int(size), None if seed is None else int(seed), drop_last)
