"""Other ways to ask PyTorch, in which it does as pullback does by its contract.

Where a program gives the same once torch is asked in such a way, its difference is explained.
"""

import re

import torch
from tests.peers.program_names import DIRTY, is_tensor
from tests.peers.program_runs import Way
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

ASSIGNED = re.compile(r"(with lib\.[\w.()]+: |with \w+\(\): )?(t\d+(?:, \*?\w+)*,? = )?(.*)")


def parts(line):
    """Return the mode of a statement, what it makes and the expression; "" where there is none."""
    return [part or "" for part in ASSIGNED.fullmatch(line).groups()]


def copies_saved():
    return saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t)


def not_in_place(line):
    return re.sub(r"^(t\d+)\.detach_\(\)", r"detach_names(globals(), \1)", line)


def detached_under_no_grad(line):
    mode, made, expression = parts(line)
    off = "no_grad" in mode or "set_grad_enabled(False)" in mode
    if not (off and made) or "copy." in line or "pickle." in line:
        return line
    return mode + made + re.sub(r"\b(t\d+)\b", r"\1.detach()", expression)


def without_checkpoint(line):
    return re.sub(r"again\((lambda .*?), (t\d+(?:, t\d+)?)\)$", r"(\1)(\2)", line)


def copies_unexpanded(line):
    mode, made, expression = parts(line)
    is_copy = expression.startswith(("pickle.", "copy.deepcopy("))
    return f"{mode}{made}unexpanded({expression})" if is_copy else line


def retaining(line):
    """Return a statement that retains the graph if it runs backward."""
    if "retain_graph" in line or "create_graph" in line:
        return line
    if line.endswith(".backward()"):
        return line.replace(".backward()", ".backward(retain_graph=True)")
    return f"{line[:-1]}, retain_graph=True)" if "lib.autograd." in line else line


def gradients_apart(line, ran):
    if "autograd." not in line and not line.endswith(".backward()"):
        return ran
    given = re.findall(r"t\d+", parts(line)[1])
    return f"_had = gradients_in(globals())\n{ran}\napart(globals(), _had, {given})"


def gradients_kept(line, ran):
    call = re.match(rf"(?:{'|'.join(DIRTY)})\.apply\((t\d+)", parts(line)[2])
    return f"_kept = {call[1]}.grad\n{ran}\n{call[1]}.grad = _kept" if call else ran


def hooked_where_gained(line):
    return re.sub(r"(t\d+)\.register_post_accumulate_grad_hook\(", r"hook_of_gain(\1, ", line)


def dirtied_itself(line, ran):
    mode, made, expression = parts(line)
    call = re.match(rf"(?:{'|'.join(DIRTY)})\.apply\((t\d+)", expression)
    off = mode.startswith("with lib") and "enable_grad" not in mode
    first = re.match(r"t\d+", made)
    return f"{ran}\n{first[0]} = {call[1]}" if off and first and call else ran


def dropped(line, ran):
    gone = re.fullmatch(r"del (t\d+)", line)
    return f"unseen({gone[1]})\n{ran}" if gone else ran


def counted_together(line, ran):
    hooks = re.search(r"register_|retain_grad\(|group\(", line)
    hooked = re.findall(r"t\d+", line) if hooks else []
    deleted = re.sub(r"^del (t\d+)$", r"_kept_\1 = \1\n", line) if line[:4] == "del " else ""
    before = f"refuse_changed_views({', '.join(hooked)})\n_before = versions_in(globals())"
    return f"{deleted}{before}\n{ran}\ncount_together(_before)"


def copies_no_views(line):
    mode, made, expression = parts(line)
    copying = (
        r"(t\d+)( @ t\d+|\.ravel\(\)|\.flatten\(\)|\.reshape\(.*\))|lib\.matmul\((t\d+), t\d+\)"
    )
    call = re.fullmatch(copying, expression)
    return f"{mode}{made}no_view_of_copy({expression}, {call[1] or call[3]})" if call else line


class Rounding(TorchDispatchMode):
    """Changes the last digits of each result that is computed, as other roundings would."""

    def __init__(self, rounded):
        super().__init__()
        self.rounded = rounded

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if any(r.alias_info is not None for r in func._schema.returns):
            return result  # a view, or changed in place
        return tree_map(self.changed, result)

    def changed(self, value):
        is_number = is_tensor(value) and value.dtype is torch.float64
        return self.rounded(value) if is_number else value


def noisy(seed):
    """Return a way in which torch's last digits are random."""
    random = torch.Generator().manual_seed(seed)

    def rounded(value):
        noise = torch.rand(value.shape, generator=random, dtype=torch.float64) - 0.5
        return value * (1 + 1e-14 * noise)

    return Way(around=lambda: Rounding(rounded))


def coarse(bits):
    """Return a way in which torch's numbers have fewer bits, so that more of them are equal."""

    def rounded(value):
        mantissa, exponent = torch.frexp(value)
        return torch.ldexp(torch.round(mantissa * 2.0**bits) * 2.0**-bits, exponent)

    return Way(around=lambda: Rounding(rounded))


def roundings():
    """Return the ways in which torch rounds otherwise."""
    return (*map(noisy, range(8)), *map(coarse, (47, 46, 45, 44)))


COPIES = Way(around=copies_saved)  # of what is saved, so that it does not change
NOT_IN_PLACE = Way(not_in_place)  # detach_ leaves the tensor as it was
DETACHED = Way(detached_under_no_grad)  # tensors made under no_grad are of what requires none
UNEXPANDED = Way(copies_unexpanded)  # pickled and deep copies have memory of their own
ONE_RUN = Way(without_checkpoint)
RETAINING = Way(retaining)
APART = Way(wrap=gradients_apart)  # each gradient has memory of its own
KEPT = Way(wrap=gradients_kept)  # a tensor that is marked dirty keeps its gradient
GAINED = Way(hooked_where_gained)  # leaves' hooks are called where a gradient was accumulated
DIRTIED = Way(wrap=dirtied_itself)  # the result of a dirty operation is the tensor
DROPPED = Way(wrap=dropped)  # nobody sees what comes to a leaf that is deleted
COUNTED = Way(wrap=counted_together)  # what shares memory shares its version
NO_VIEWS = Way(copies_no_views)  # what has memory of its own is no view
