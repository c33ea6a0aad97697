"""Random programs in the words that pullback and PyTorch share, a list of statements each.

Owns what is drawn. `draw(seed)` gives the same statements for the same seed; each is run in PyTorch
at once, so that shapes are known when the next one is drawn. ``lib`` stands for either library.
What statements do in both is compared in `program_runs`.
"""

import random

import torch
from tests.peers.program_names import DIRTY, Log, is_tensor, memory_of, namespace
from tests.peers.program_runs import attempt, eval_or_none


def words(text):
    """Return the words of a text: one that stands twice is drawn twice as often."""
    return text.split()


MODES = ("with lib.no_grad(): ", "with lib.enable_grad(): ", "with lib.set_grad_enabled(False): ")
MODES += ("with copied(): ", "with watched(): ")

UNARY = words("""sin() cos() tanh() exp() sigmoid() neg() abs() square() relu() clone() clone()
  mul(2.5)
  mul(-1) add(1.5) sub(0.5) div(1.25) pow(2) pow(3) clamp(min=0) clamp(-0.75,0.75) contiguous()
  softmax(0) cumsum(0) flip(0) logsumexp(0) tril() atan() expm1() sign()
  detach() floor() masked_fill({mask},0.5) var(0) nansum() amax(0) cumprod(0)
  triu(1) logcumsumexp(0) log_softmax(-1) sort(0).values cummax(0).values roll(1) median()
  repeat(2) msort() diff() prod()""")
BINARY = ("+", "-", "*", "*", "/")
METHODS = ("mul", "add", "sub", "maximum", "minimum", "atan2", "rsub", "hypot", "div")
REDUCTIONS = words(
    "sum() sum() mean() amax() amin() prod() std() norm() logsumexp({d}) sum({d}) mean({d})"
)
REDUCTIONS += ["sum({d},keepdim=True)", "amax({d})", "max({d}).values", "std({d})", "prod({d})"]
VIEWS = words("""[0] [-1] [1:] [:-1] [::2] [None] [...,0] [...,1:] [...,None] [:] t()
  transpose(0,-1)
  transpose(0,1) unsqueeze(0) unsqueeze(-1) squeeze() squeeze(0) reshape(-1) view(-1)
  diagonal() movedim(0,-1) narrow(0,0,1) select(0,0) detach() data swapaxes(0,-1)
  unbind(0)[0] unbind()[-1] split(1)[0] chunk(2)[0] chunk(2,-1)[-1] unflatten(0,(1,-1))
  expand_as({same}) view_as({same})""")
VIEWS += ["expand(2,*{t}.shape)", "reshape({t}.shape[::-1])", "[:,None]"]
VIEWS_OF_MANY = [*VIEWS, "flatten()", "ravel()", "mT", "T"]
IN_PLACE = words("""neg_() zero_() fill_(0.5) mul_(2.0) add_(1.0) sub_(0.25) div_(2.0) tanh_()
  sin_()
  abs_() clamp_(min=-0.5) relu_() exp_() sigmoid_() square_() masked_fill_({mask},0.25)
  pow_(2) reciprocal_() tril_() cumsum_(0) index_fill_(0,{index},0.5) mul_(-1) add_({t})
  mul_({t}) cos_() triu_()""")
IN_PLACE_BINARY = words("mul_ add_ sub_ copy_ copy_ div_ addcmul_ lerp_")
AUGMENTED = ("+=", "-=", "*=", "/=")
CUSTOM_ONE = words(
    "Setup Inner Sine Same Same Viewing Doubled DoubledSaved Once Counting ViaItem CloneInPlace"
)
CUSTOM_TWO = words("Named Product NoneForSecond DirtyFirst BothSame")
CUSTOM_PAIR = words("Pair PairMarked PairUnmaterialized PairDirty PairNone")
GRAD_HOOKS = ("lambda g: log({n}, g)", "lambda g: log({n}, g) or g * 2", "lambda g: g.clone()")
GRAD_HOOKS += ("lambda g: log({n}, g) or g.clone().mul_(3)", "lambda g: -g", "lambda g: inner(g)")


class Draw:
    """A program that grows: its statements, and their names in PyTorch."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = namespace(torch, Log())
        self.lines = []
        self.count = 0

    # -- choosing ---------------------------------------------------------------------------------
    def choice(self, items):
        return self.random.choice(list(items))

    def chance(self, probability):
        return self.random.random() < probability

    def tensors(self, fits=lambda t: True):
        """Return the names of tensors that there are."""
        found = [n for n, v in self.names.items() if n[0] == "t" and is_tensor(v)]
        return [n for n in found if holds(fits, self.names[n])]

    def tensor(self, fits=lambda t: True, otherwise=True):
        """Return the name of a tensor, rather a late one."""
        found = self.tensors(fits)
        if not found and otherwise:
            found = self.tensors()
        if not found:
            return None
        late = found[-4:]
        return self.choice(late if self.chance(0.6) else found)

    def mate(self, name):
        """Return the name of a tensor that broadcasts against this one, perhaps itself."""
        shape = tuple(self.names[name].shape)
        if self.chance(0.04):
            return self.tensor()
        return self.tensor(lambda t: broadcasts(tuple(t.shape), shape))

    def number(self):
        return self.choice(("2.0", "-1.5", "0.5", "3", "1.25"))

    def array(self, shape):
        count = 1
        for length in shape:
            count *= length
        numbers = [
            round(self.random.uniform(0.2, 1.8) * self.choice((1, -1)), 2) for _ in range(count)
        ]
        return f"array({nested(numbers, shape)})"

    def fresh(self, letter="t"):
        self.count += 1
        return f"{letter}{self.count}"

    # -- stating ----------------------------------------------------------------------------------
    def say(self, line):
        """Add a statement and run it; return whether it ran without an error."""
        self.lines.append(line)
        error = attempt(line, self.names)
        return error is None

    def bind(self, expression, letter="t"):
        name = self.fresh(letter)
        prefix = self.choice(MODES) if self.chance(0.08) else ""
        self.say(f"{prefix}{name} = {expression}")
        return name

    def fill(self, template, name):
        """Put in what a template leaves open."""
        t = self.names[name]
        first = t.shape[0] if t.dim() else 1
        words = {
            "t": name,
            "d": str(self.random.randrange(-1, max(t.dim(), 1))),
            "mask": f"{name} > {self.choice(('0', '0.5', '9'))}",
            "index": f"lib.tensor(array([{self.random.randrange(max(first, 1))}]))",
            "same": self.mate(name),
        }
        for word, text in words.items():
            template = template.replace("{" + word + "}", text)
        return template

    # -- steps ------------------------------------------------------------------------------------
    def leaf(self):
        shape = self.choice([(), (1,), (2,), (3,), (2, 3), (2, 3), (3, 2), (2, 2), (2, 2), (1, 3)])
        shape = self.choice([(0,), (2, 0)]) if self.chance(0.03) else shape
        grad = ", requires_grad=True" if self.chance(0.75) else ""
        self.say(f"{self.fresh()} = lib.tensor({self.array(shape)}{grad})")

    def unary(self):
        name = self.tensor()
        self.bind(f"{name}.{self.fill(self.choice(UNARY), name)}")

    def binary(self):
        a = self.tensor()
        b = self.mate(a) if self.chance(0.8) else self.number()
        kind = self.random.random()
        if kind < 0.7:
            pair = (a, b) if self.chance(0.7) else (b, a)
            self.bind(f"{pair[0]} {self.choice(BINARY)} {pair[1]}")
        elif kind < 0.85 and b.startswith("t"):
            self.bind(f"{a}.{self.choice(METHODS)}({b})")
        elif b.startswith("t"):
            self.bind(f"lib.where({a}.detach() > 0, {a}, {b})")

    def reduction(self):
        name = self.tensor()
        self.bind(f"{name}.{self.fill(self.choice(REDUCTIONS), name)}")

    def product(self):
        a = self.tensor(lambda t: t.dim() in (1, 2))
        inner = self.names[a].shape[-1] if self.names[a].dim() else 1
        b = self.tensor(lambda t: t.dim() and t.shape[-2 if t.dim() > 1 else -1] == inner)
        self.bind(self.choice((f"{a} @ {b}", f"{a} @ {b}", f"lib.matmul({a}, {b})")))

    def view(self):
        name = self.tensor()
        if self.chance(0.1):
            parts = self.choice(("unbind(0)", "split(1)", "chunk(2)", "unbind(-1)"))
            self.say(f"{self.fresh()}, *{self.fresh('rest')} = {name}.{parts}")
            return
        flat = self.names[name].dim() < 2  # then these give torch the tensor itself, or nothing
        template = self.fill(self.choice(VIEWS if flat else VIEWS_OF_MANY), name)
        self.bind(f"{name}{template}" if template[0] == "[" else f"{name}.{template}")

    def gather(self):
        name = self.tensor()
        index = self.fill(
            self.choice(("[{index}]", "[{mask}]", "[lib.tensor(array([0,0]))]")), name
        )
        self.bind(f"{name}{index}")

    def join(self):
        a = self.tensor()
        b = self.tensor(lambda t: t.shape == self.names[a].shape)
        self.bind(f"lib.{self.choice(('cat', 'cat', 'stack'))}([{a}, {b}])")

    def target(self):
        """Return a tensor to change in place, and the mode to do it in."""
        if self.chance(0.15):
            return self.tensor(), self.choice((*MODES[:1], ""))
        return self.tensor(lambda t: not (t.is_leaf and t.requires_grad)), ""

    def in_place(self):
        name, prefix = self.target()
        kind = self.random.random()
        if kind < 0.45:
            line = f"{name}.{self.fill(self.choice(IN_PLACE), name)}"
        elif kind < 0.7:
            b = self.other(name) if self.chance(0.8) else self.number()
            method = self.choice(IN_PLACE_BINARY)
            rest = {"addcmul_": f", {self.other(name)}", "lerp_": ", 0.25"}.get(method, "")
            if not b.startswith("t") and method in ("copy_", "addcmul_", "lerp_"):
                method, rest = "mul_", ""
            line = f"{name}.{method}({b}{rest})"
        elif kind < 0.8:
            line = f"{name} {self.choice(AUGMENTED)} {self.other(name)}"
        else:
            line = self.assignment(name)
        self.say(prefix + line)

    def assignment(self, name):
        """Return ``x[index] = value``."""
        index = self.choice(
            ("[0]", "[1:]", "[...,0]", "[:]", "[...]", "[{mask}]", "[{index}]", "[-1]")
        )
        index = self.fill(index, name)
        part = eval_or_none(f"{name}.detach(){index}", self.names)
        value = self.number()
        if part is not None and self.chance(0.7):
            shape = tuple(part.shape)
            value = self.tensor(
                lambda t: spreads(tuple(t.shape), shape) and not same_memory(t, self.names[name]),
                otherwise=False,
            )
        return f"{name}{index} = {value or self.number()}"

    def other(self, name):
        """Return an operand for a change in place of a tensor, of other memory or just it."""
        own = self.names[name]
        found = self.tensor(
            lambda t: (
                spreads(tuple(t.shape), tuple(own.shape)) and (t is own or not same_memory(t, own))
            )
        )
        return found if not same_memory(self.names[found], own) or found == name else name

    def marks(self):
        name = self.tensor()
        kind = self.choice(("detach_", "freeze", "unfreeze", "unfreeze", "retain", "freeze leaf"))
        if kind == "detach_":
            self.say(f"{name}.detach_()")
        elif kind == "retain":
            name = self.tensor(can_be_retained, otherwise=False)
            if name is not None:
                self.say(f"{name}.retain_grad()")
        elif kind == "unfreeze":
            name = self.tensor(lambda t: not t.requires_grad)
            self.say(self.choice((f"{name}.requires_grad_()", f"{name}.requires_grad = True")))
        else:
            name = self.tensor(lambda t: t.is_leaf) if kind == "freeze leaf" else name
            self.say(f"{name}.requires_grad_(False)")

    def hook(self):
        name = self.tensor(can_be_hooked, otherwise=False)
        if name is None:
            return
        n = self.count + 1
        kind = self.random.random()
        if kind < 0.45:
            self.bind(
                f"{name}.register_hook({self.choice(GRAD_HOOKS).replace('{n}', str(n))})", "h"
            )
        elif kind < 0.55:
            name = self.tensor(lambda t: can_be_hooked(t) and t.is_leaf, otherwise=False) or name
            hook = f"lambda t: log({n}, t.grad)"
            self.bind(f"{name}.register_post_accumulate_grad_hook({hook})", "h")
        elif kind < 0.62:
            found = self.tensors(can_be_hooked)
            names = ", ".join(self.random.sample(found, min(2, len(found))))
            self.bind(f"group([{names}], lambda gs: log({n}, *gs))", "h")
        elif kind < 0.85:
            name = (
                self.tensor(lambda t: can_be_hooked(t) and not t.is_leaf, otherwise=False) or name
            )
            hook = self.choice(
                (
                    f"register_prehook(lambda gs: log({n}, *gs))",
                    "register_prehook(lambda gs: tuple([g if g is None else g * 2 for g in gs]))",
                    f"register_hook(lambda gi, gs: log({n}, *gs))",
                )
            )
            self.bind(f"{name}.grad_fn.{hook}", "h")
        else:
            handles = [n for n, v in self.names.items() if n[0] == "h" and n[1:].isdigit()]
            if handles:
                self.say(f"{self.choice(handles)}.remove()")

    def custom(self):
        name = self.tensor()
        kind = self.random.random()
        freezing = (f"{name}.requires_grad_(False)", f"{name}.detach_()")
        frozen = any(words in line for line in self.lines for words in freezing)
        without = DIRTY if frozen else ()  # a frozen leaf marked dirty makes torch end the process
        if kind < 0.55:
            self.bind(f"{self.choice(left_out(CUSTOM_ONE, without))}.apply({name})")
        elif kind < 0.8:
            operation, mate = self.choice(left_out(CUSTOM_TWO, without)), self.mate(name)
            if operation == "DirtyFirst":
                mate = self.other(name)
            self.bind(f"{operation}.apply({name}, {mate})")
        else:
            operation = self.choice(left_out(CUSTOM_PAIR, without))
            first, second = self.fresh(), self.fresh()
            second = second if self.chance(0.7) else f"_{second}"
            self.say(f"{first}, {second} = {operation}.apply({name})")

    def checkpoint(self):
        """A part that runs again in backward, perhaps with a leaf that it closes over."""
        name, leaf = self.tensor(), self.tensor(lambda t: t.is_leaf)
        mate = self.mate(name)
        self.bind(
            self.choice(
                (
                    f"again(lambda x: x.sin() * x, {name})",
                    f"again(lambda x: x.sin().mul_(x), {name})",
                    f"again(lambda x, y: (x * y).tanh(), {name}, {mate})",
                    f"again(lambda x, w={leaf}: (x * w.sum()).sin(), {name})",
                    f"again(lambda x: Sine.apply(x).square(), {name})",
                )
            )
        )

    def block(self):
        """A few statements under inference mode, whose tensors stay inside."""
        name, result = self.tensor(), self.fresh()
        inside = self.choice(
            (
                f"_u = {name} * 2",
                f"_u = {name}.clone(); _u.mul_(3)",
                f"_u = {name}.view(-1) + 1",
                f"_u = {name}.clone(); _v = _u[0]; _v.neg_()",
            )
        )
        self.say(f"with lib.inference_mode(): {inside}")
        self.say(f"{result} = _u.clone()")

    def copies(self):
        name = self.tensor(lambda t: t.is_leaf)
        self.bind(
            self.choice(
                (
                    f"copy.deepcopy({name})",
                    f"pickle.loads(pickle.dumps({name}))",
                    f"copy.copy({name})",
                )
            )
        )

    def gradient_handling(self):
        name = self.tensor(lambda t: t.is_leaf and t.grad is not None, otherwise=False)
        if name is None:
            return
        self.say(
            self.choice(
                (
                    f"{name}.grad = None",
                    f"{name}.grad.zero_()",
                    f"{self.fresh()} = {name}.grad",
                    f"{name}.grad = {name}.detach().clone()",
                    f"{name}.grad.mul_(2)",
                    f"{self.fresh()} = {name}.grad.clone()",
                )
            )
        )

    def forget(self):
        names = self.tensors(lambda t: not (t._is_view() and t.is_leaf))
        if len(names) > 4:
            self.say(f"del {self.choice(names)}")

    # -- backward ---------------------------------------------------------------------------------
    def roots(self, most=2):
        """Return expressions for roots and for their gradients."""
        count = self.random.randint(1, most)
        found, seeds = [], []
        for _ in range(count):
            name = self.tensor(lambda t: t.requires_grad and not (t.is_leaf and self.chance(0.9)))
            if self.chance(0.6):
                found.append(
                    self.choice((f"{name}.sum()", f"({name} * {name}).sum()", f"{name}.mean()"))
                )
                seeds.append("None")
            else:
                found.append(name)
                seed = f"lib.tensor({self.array(tuple(self.names[name].shape))})"
                numel = self.names[name].numel()
                seeds.append("None" if numel == 1 and self.chance(0.5) else seed)
        return ", ".join(found), ", ".join(seeds)

    def inputs(self):
        """Return names to differentiate by."""
        count = self.choice((1, 1, 2, 3))
        found = [
            self.tensor(lambda t: t.requires_grad and (t.is_leaf or self.chance(0.4)))
            for _ in range(count)
        ]
        return sorted(set(found))

    def options(self):
        kind = self.random.random()
        if kind < 0.45:
            return ""
        return ", retain_graph=True" if kind < 0.75 else ", create_graph=True"

    def backward(self):
        roots, seeds = self.roots()
        rest = self.options()
        if self.chance(0.25):
            kept = [name for name in self.inputs() if holds(can_be_filled, self.names[name])]
            rest += f", inputs=[{', '.join(kept)}]" if kept else ""
        return self.say(f"lib.autograd.backward([{roots}], [{seeds}]{rest})")

    def grad(self):
        roots, seeds = self.roots()
        wanted = self.inputs()
        names = [self.fresh() for _ in wanted]
        rest = self.options()
        rest += self.choice(
            ("", ", allow_unused=True", ", allow_unused=True", ", materialize_grads=True")
        )
        call = f"lib.autograd.grad([{roots}], [{', '.join(wanted)}], [{seeds}]{rest})"
        return self.say(f"{', '.join(names)}, = {call}")

    def last(self):
        """Differentiate what is left, so that every program says something of gradients."""
        found = self.tensors(lambda t: t.requires_grad and not t.is_leaf)
        if found:
            self.random.shuffle(found)
            terms = " + ".join(f"{name}.sum()" for name in found[: self.choice((1, 2, 5))])
            self.say(f"({terms}).backward()")


STEPS = {
    Draw.unary: 9, Draw.binary: 10, Draw.reduction: 3, Draw.product: 2, Draw.view: 13,
    Draw.gather: 2, Draw.join: 3, Draw.in_place: 14, Draw.marks: 6, Draw.hook: 7, Draw.custom: 8,
    Draw.block: 1, Draw.copies: 1, Draw.checkpoint: 2, Draw.gradient_handling: 2, Draw.forget: 2,
    Draw.leaf: 2, Draw.backward: 3, Draw.grad: 3,
}  # fmt: skip


def draw(seed):
    """Return the statements of a program."""
    program = Draw(seed)
    program.leaf()
    program.leaf()
    steps, weights = list(STEPS), list(STEPS.values())
    for _ in range(program.random.randint(4, 22)):
        step = program.random.choices(steps, weights)[0]
        if step(program) is False:
            return program.lines  # what a pass leaves that raised is nowhere said
        if too_large(program.names):
            return program.lines  # of infinities, gradients are NaN here or there
    program.last()
    return program.lines


def holds(fits, tensor):
    """Return whether a tensor is as wished; one whose graph is lost cannot be asked, and is not."""
    try:
        return fits(tensor)
    except RuntimeError:
        return False


def can_be_hooked(t):
    """Return whether a tensor may get hooks: views of changed ones make torch end the process."""
    return t.requires_grad and not (t._is_view() and t._version)


def can_be_retained(t):
    """Return whether a result may be retained: torch's process ends if it is changed later and is
    not the first of its operation.
    """
    return can_be_hooked(t) and not t.is_leaf and t.output_nr == 0


def can_be_filled(t):
    """Return whether backward may fill the gradient of a tensor, which torch then retains."""
    return t.is_leaf or t.output_nr == 0


def left_out(words, without):
    return [word for word in words if word not in without]


def too_large(names):
    """Return whether the last tensors are long, or so large that rounding hides what is wrong."""
    late = [v for n, v in list(names.items())[-3:] if n[0] == "t" and is_tensor(v)]
    return any(v.numel() > 60 or not bool((v.detach().abs() < 1e4).all()) for v in late)


def broadcasts(a, b):
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))


def spreads(a, b):
    """Return whether shape `a` can be broadcast to `b`."""
    return broadcasts(a, b) and len(a) <= len(b) and all(
        m in (1, n) for m, n in zip(a[::-1], b[::-1], strict=False)
    )  # fmt: skip


def same_memory(a, b):
    return memory_of(a) == memory_of(b)


def nested(numbers, shape):
    """Return the text of nested lists."""
    if not shape:
        return repr(numbers[0])
    size = len(numbers) // shape[0] if shape[0] else 0
    rows = [nested(numbers[i * size : (i + 1) * size], shape[1:]) for i in range(shape[0])]
    return f"[{', '.join(rows)}]"
