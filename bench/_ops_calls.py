"""The calls that ops.py times, drawn from the registry of declarations.

Owns which operations can be scaled to n elements and how, their inputs, and the programs that run
a call: pullback's, the same NumPy calls without the library, torch's.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pullback as pb
from pullback.core.function.primitive import parameters
from pullback.ops.declare import REGISTRY, Composition, Declaration
from pullback.ops.samples import Domain

Program = Callable[[], Any]
VIEW = "its result shows the memory of its input"
APART = ("fourier",)  # themes whose cost is an algorithm's
TRIED = 100  # elements of the call that shows what an operation makes of n

# Where torch's name is another one; None where that name means something else.
TORCH = {
    "max": "amax",
    "min": "amin",
    "pos": "positive",
    "cumulative_prod": "cumprod",
    "bce_with_logits": "binary_cross_entropy_with_logits",
    "root": None,
}
SPACES = ("", "special.", "linalg.", "nn.functional.", "Tensor.")


class NotScalableError(Exception):
    """Why an operation is not timed."""


@dataclass
class Call:
    """One operation on n elements, with settings.

    Attributes
    ----------
    kind : str
        ``"element-wise"``, ``"reduction"`` or ``"scan"`` (a result of the input's shape, along an
        axis).
    square : bool
        Whether n elements are a square matrix, reduced along its rows, or a vector.
    tracked : list of int
        The inputs that have a gradient.
    composed : bool
        Whether it is made of other operations.
    """

    declaration: Declaration
    settings: dict[str, Any]
    square: bool = False
    kind: str = ""
    tracked: list[int] = field(default_factory=list)
    composed: bool = False

    @property
    def op(self) -> Any:
        return self.declaration.primitive

    @property
    def label(self) -> str:
        return f"{self.op.name}{' of rows' if self.square else ''}{'*' if self.composed else ''}"

    def arrays(self, n: int) -> list[Any]:
        side = math.isqrt(n)
        shape = (side, side) if self.square else (n,)
        rng = np.random.default_rng(0)
        domains = [self.declaration.domain[name] for name in self.op.inputs]
        return [draw(domain, shape, rng) for domain in domains]

    def run(self, tensors: list[Any]) -> Any:
        return self.function(*tensors, **self.settings)

    @functools.cached_property
    def function(self) -> Callable[..., Any]:
        """The public function where it can be called as the tests call it, else their way."""
        declaration = self.declaration
        try:
            declaration.public(*map(pb.asarray, self.arrays(TRIED)), **self.settings)
        except Exception:
            return declaration.call
        return declaration.public


def draw(domain: Domain, shape: tuple[int, ...], rng: Any) -> Any:
    """Draw an input: float64, unless the domain is of another kind."""
    if domain.within is not None:
        raise NotScalableError("its inputs have to be of a special form")
    if domain.kind == "b":
        return rng.random(shape) < 0.5
    if domain.kind == "i":
        return rng.integers(int(domain.low), int(domain.high) + 1, shape)
    values = rng.uniform(domain.low, domain.high, shape)
    if domain.step:
        values = np.round(values / domain.step) * domain.step
    return values + 1j * rng.uniform(-1, 1, shape) if domain.kind == "c" else values


# -- choosing -------------------------------------------------------------------------------------
def themes() -> dict[str, str]:
    """Return the file of `ops` or `nn` that each public name comes from."""
    found: dict[str, str] = {}
    for space in (pb, pb.nn.functional, pb.linalg, pb.fft):
        for node in ast.walk(ast.parse(Path(space.__file__).read_text())):
            if isinstance(node, ast.ImportFrom) and "." in str(node.module):
                theme = str(node.module).rpartition(".")[2]
                found |= {a.name: theme for a in node.names}
    return found


def calls_of(declaration: Declaration) -> Iterator[Call]:
    """Yield the calls of an operation to time, or raise NotScalableError."""
    op = declaration.primitive
    if getattr(op, "variadic", False) or op.multi:
        raise NotScalableError("it takes or gives several arrays in a list")
    if op.view:
        raise NotScalableError(VIEW)
    samples = declaration.samples
    if not samples or len(set(samples[0].shapes)) != 1:
        raise NotScalableError("its inputs differ in shape, or it has none")
    settings = samples[0].settings
    name = "axis" if "axis" in settings else "dim" if "dim" in settings else None
    if name is None:
        yield look_at(Call(declaration, settings))
        return
    if len(samples[0].shapes) > 1:
        raise NotScalableError("several inputs, along an axis")
    given = [s.settings.get(name) for s in samples]
    if None in given:
        yield look_at(Call(declaration, {**settings, name: None}))
    if any(isinstance(axis, int) for axis in given):
        yield look_at(Call(declaration, {**settings, name: -1}, square=True))


def look_at(call: Call) -> Call:
    """Run a call once and fill in its kind and which inputs are tracked."""
    arrays = call.arrays(TRIED)
    tensors = [pb.asarray(a) for a in arrays]
    try:
        result = call.run(tensors)
    except Exception:  # whatever it says, it is not for inputs of this shape
        raise NotScalableError("it takes neither a vector nor rows of a matrix") from None
    if not isinstance(result, pb.Tensor):
        raise NotScalableError("its result is not one tensor")
    if any(np.may_share_memory(result.detach().numpy(), a) for a in arrays):
        raise NotScalableError(VIEW)
    along = "axis" in call.settings or "dim" in call.settings
    if result.shape == arrays[0].shape:
        call.kind = "scan" if along else "element-wise"
    elif result.shape == (arrays[0].shape[:-1] if call.square else ()):
        call.kind = "reduction"
    else:
        raise NotScalableError("its result has another shape")
    if call.op.differentiable:
        pairs = enumerate(zip(call.op.inputs, arrays, strict=True))
        joint = call.op.vjp_all is not None
        call.tracked = [
            i
            for i, (name, a) in pairs
            if a.dtype.kind in "fc" and (joint or call.op.declared.get(name))
        ]
    for i in call.tracked:
        tensors[i].requires_grad_()
    nodes = recorded(call.run(tensors))
    names = [node.op.name for node in nodes]
    call.composed = isinstance(call.op, Composition) or (bool(nodes) and names != [call.op.name])
    return call


# -- running --------------------------------------------------------------------------------------
class Programs:
    """The programs of one call at one size: `ours`, `bare`, `torch`, and each with `_backward`."""

    def __init__(self, call: Call, n: int) -> None:
        self.call, self.arrays = call, call.arrays(n)
        tensors = [pb.asarray(a) for a in self.arrays]
        # Without a derivative, tracked inputs still have to be looked at.
        for i in call.tracked or range(len(tensors)):
            if self.arrays[i].dtype.kind in "fc":
                tensors[i].requires_grad_()
        self.leaves = [tensors[i] for i in call.tracked]
        self.ours: Program = functools.partial(call.function, *tensors, **call.settings)
        self.result = self.ours()
        self.bare = self._bare()
        self.programs = {"ours": self.ours, "bare": self.bare}
        if call.tracked and self.result.requires_grad:
            value = self.result.detach().numpy()
            self.seed = np.random.default_rng(1).uniform(0.5, 1.5, value.shape).astype(value.dtype)
            self.programs["ours_backward"] = self._ours_backward()
            replay = self._replayed if call.composed else self._by_hand
            self.programs["bare_backward"] = replay()
        self.programs |= self._torch()

    @property
    def nodes(self) -> int:
        """How many operations the call records."""
        return len(recorded(self.result))

    def _bare(self) -> Program:
        """Return the forward on arrays; of a composition, the call that records nothing."""
        call, arrays = self.call, self.arrays
        if call.composed:
            plain = [pb.asarray(a) for a in arrays]
            return functools.partial(call.function, *plain, **call.settings)
        return functools.partial(kernel_of(call.op), *arrays, **self._forward_settings())

    def _forward_settings(self) -> dict[str, Any]:
        """Return the settings that forward knows: a face may have more of them."""
        settings = {**self.call.op.settings, **self.call.settings}
        return {name: settings[name] for name in self.call.op.settings}

    def _ours_backward(self) -> Program:
        ours, leaves, seed = self.ours, self.leaves, pb.asarray(self.seed)

        def program() -> None:
            ours().backward(seed)
            for leaf in leaves:
                leaf.grad = None

        return program

    def _by_hand(self) -> Program:
        """Return forward and rules on bare arrays: what one would write without a library."""
        node = self.result._node
        op, saved = node.op, node.record[node.count :]
        rules = {f"rule_{i}": op.rules[i] for i in self.call.tracked}
        if op.vjp_all is not None:
            rules = {"vjp_all": op.vjp_all}
        calls = [f"{name}({', '.join(parameters(rule))})" for name, rule in rules.items()]
        grads = calls[0] if op.vjp_all is not None else f"[{', '.join(calls)}]"
        names = {name: saved[index] for name, index in op.layout.items()} | rules
        names |= {"g": self.seed, "xp": np, "bare": self.bare, "apart": apart}
        text = f"lambda: (lambda out: [apart(grad, g) for grad in {grads}])(bare())"
        program: Program = eval(text, names)
        return program

    def _replayed(self) -> Program:
        """Return the call that records nothing, then the rules of a recorded one, in order."""
        bare, seed, last = self.bare, self.seed, self.result._node
        order = sorted(recorded(self.result), key=lambda node: -node.seq)

        def program() -> Any:
            bare()
            found = {last: seed}
            for node in order:
                grads = node.op.differentiate(node, found.pop(node), None, False)
                for target, g in zip(node.edges, grads, strict=True):
                    if target is not None and g is not None:
                        found[target] = found[target] + g if target in found else g
            return [apart(g, seed) for g in found.values()]

        return program

    def _torch(self) -> dict[str, Program]:
        """Return torch's programs, where torch has the operation and gives the same value."""
        call = self.call
        tensors = [torch.from_numpy(a.copy()) for a in self.arrays]
        leaves = [tensors[i].requires_grad_() for i in call.tracked]
        function = torch_function(call.declaration)
        if function is None:
            return {}
        forward = functools.partial(function, *tensors, **torch_settings(call.settings))
        programs = {"torch": forward}
        try:
            theirs = forward()
            agree = np.allclose(theirs.detach(), self.result.detach().numpy(), equal_nan=True)
            agree &= theirs.data_ptr() not in [t.data_ptr() for t in tensors]  # nothing was done
            if "ours_backward" in self.programs:
                programs["torch_backward"] = torch_backward(
                    forward, leaves, torch.from_numpy(self.seed.copy())
                )
                programs["torch_backward"]()
        except Exception:  # another signature, or no derivative
            return {}
        return programs if agree else {}


def torch_backward(forward: Program, leaves: list[Any], seed: Any) -> Program:
    """Return torch's forward and backward."""

    def program() -> None:
        forward().backward(seed)
        for leaf in leaves:
            leaf.grad = None

    return program


def kernel_of(op: Any) -> Callable[..., Any]:
    """Return the forward on NumPy arrays: NumPy's own function where that is all it calls."""
    direct = op.numpy_kernel or (None if op.unchecked_forward else op.xp_name)
    if direct is not None:
        function: Callable[..., Any] = getattr(np, direct) if isinstance(direct, str) else direct
        return function
    return functools.partial(op.unchecked_forward or op.forward, np)


def apart(g: Any, seed: Any) -> Any:
    """Return a gradient in memory of its own, to be written to, as `.grad` has to be."""
    return g if g.flags.writeable and not np.may_share_memory(g, seed) else g.copy()


def recorded(result: Any) -> list[Any]:
    """Return the nodes of operations behind a result."""
    seen: dict[Any, None] = {}
    waiting = [result._node]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen and node.runs:
            seen[node] = None
            waiting += node.edges
    return list(seen)


def torch_function(declaration: Declaration) -> Callable[..., Any] | None:
    """Return torch's function of an operation, if there is one."""
    names = (declaration.public.__name__, *declaration.names)
    for name in dict.fromkeys(TORCH.get(name, name) for name in names):
        for space in SPACES if name else ():
            found: Any = torch
            for part in f"{space}{name}".split("."):
                found = getattr(found, part, None)
            if callable(found):
                return found
    return None


def torch_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return our settings under torch's names."""
    names = {"axis": "dim", "keepdims": "keepdim"}
    found = {names.get(name, name): value for name, value in settings.items()}
    if found.get("dim", 0) is None:  # over everything, and said by leaving it away
        found.pop("dim")
        found.pop("keepdim", None)
    return found


def chosen(only: set[str]) -> tuple[list[tuple[str, Call]], dict[str, str]]:
    """Return (theme, call) for the operations to time, and why the others are not."""
    theme_of = themes()
    calls: list[tuple[str, Call]] = []
    reasons: dict[str, str] = {}
    for name, declaration in REGISTRY.items():
        names = {name, declaration.public.__name__, *declaration.names}
        if only and not names & only:
            continue
        theme = next((theme_of[n] for n in sorted(names) if n in theme_of), "inner")
        theme = "fourier" if name.startswith("fft") else theme
        try:
            if theme in APART:
                raise NotScalableError(f"one of {theme}, neither element-wise nor a reduction")
            calls += [(theme, call) for call in calls_of(declaration)]
        except NotScalableError as reason:
            reasons[name] = str(reason)
    return calls, reasons
