"""The page docs/zoo.md: what each checker catches; `python -m tests.check.zoo_table` writes it."""

import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from tests.check import _right_hard
from tests.check._entries import as_pullback, as_torch
from tests.check.zoo import RIGHT, WRONG

from pullback.check import check_op

PAGE = Path(__file__).parents[2] / "docs" / "zoo.md"


def ours(entry):
    """Return the cause that pullback's checker names, empty where it finds nothing."""
    inputs = entry.inputs(np.random.default_rng(0))
    report = check_op(as_pullback(entry), *inputs, raise_exception=False, **entry.options)
    return report.failures[0].cause.name if report.failures else ""


def theirs(entry):
    """Say whether PyTorch's gradcheck, or gradgradcheck, finds something wrong."""
    import torch

    def tensor(value):
        if not isinstance(value, np.ndarray):
            return value
        made = torch.from_numpy(np.array(value))
        return made.requires_grad_() if value.dtype.kind in "fc" else made

    function = as_torch(entry)

    def call(*args):  # an operation in place refuses leaves
        return function(*[a.clone() if getattr(a, "requires_grad", False) else a for a in args])

    inputs = tuple(tensor(v) for v in entry.inputs(np.random.default_rng(0)))
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            good = torch.autograd.gradcheck(call, inputs, raise_exception=False)
            if good and not entry.once:
                good = torch.autograd.gradgradcheck(call, inputs, raise_exception=False)
        except Exception:
            return True
    return not good


def is_low(entry):
    """Say whether an operation has inputs in single or half precision."""
    arrays = [v for v in entry.inputs(np.random.default_rng(0)) if isinstance(v, np.ndarray)]
    return any(a.dtype in (np.float16, np.float32, np.complex64) for a in arrays)


HEAD = """# What the checkers catch

`tests/check/zoo.py` has {wrong} operations whose backward is wrong in one known way, {cited} of
them reported in a public issue tracker, and {right} whose backward is right. Many of the right ones
are hard for a checker: kinks, ties, huge and tiny scales, single precision. Both checkers get the
same operations and inputs, and use their default settings. PyTorch's checker is `gradcheck`,
followed by `gradgradcheck` if backward is not marked `once_differentiable`.
`python -m tests.check.zoo_table` writes this page, and `make peers` compares it with both checkers.

"""


def page():
    """Return the text of the page."""
    found, other = {e.name: ours(e) for e in WRONG}, {e.name: theirs(e) for e in WRONG}
    cited = sum(bool(e.source) for e in WRONG)
    lines = [HEAD.format(wrong=len(WRONG), cited=cited, right=len(RIGHT))]
    lines.append("| family | wrong | pullback catches | names the cause | PyTorch catches |\n")
    lines.append("|---|---|---|---|---|\n")
    families = Counter(e.family for e in WRONG)
    for family in [*sorted(families), "all"]:
        some = [e for e in WRONG if family in (e.family, "all")]
        caught = sum(bool(found[e.name]) for e in some)
        named = sum(found[e.name] == e.cause for e in some)
        theirs_ = sum(other[e.name] for e in some)
        lines.append(f"| {family} | {len(some)} | {caught} | {named} | {theirs_} |\n")
    alarms = [[e for e in RIGHT if check(e)] for check in (ours, theirs)]
    low, kinks = sum(map(is_low, alarms[1])), sum(e in _right_hard.ENTRIES for e in alarms[1])
    lines.append(
        f"\nFalse alarms among the {len(RIGHT)} right ones: pullback {len(alarms[0])}, PyTorch "
        f"{len(alarms[1])}. PyTorch's documentation warns of\nmost of these: {low} are for inputs "
        f"below double precision, and {kinks} at kinks, jumps or ties.\n\n## One by one\n\n"
    )
    lines.append(
        "| operation | mistake | pullback says | PyTorch | reported |\n|---|---|---|---|---|\n"
    )
    for e in sorted(WRONG, key=lambda e: (e.family, e.name)):
        link = f"[{'/'.join(e.source.split('/')[3:5])}]({e.source})" if e.source else ""
        caught = "caught" if other[e.name] else "missed"
        lines.append(
            f"| {e.name} | {e.cause} | {found[e.name] or 'missed'} | {caught} | {link} |\n"
        )
    return "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
