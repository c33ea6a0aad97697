"""One small change of the source that makes a wrong gradient right, sought when a report is read.

What passes all trials is what the author may have meant; nothing is claimed that was not tried, and
nothing that is tried stays.
"""

from __future__ import annotations

import ast
import contextvars
import functools
import itertools
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.check.deadline import Budget, OutOfTimeError, deadline, limited
from pullback.check.explain.evidence import Evidence
from pullback.check.repair.edits import Atom, atoms_of, edits_of, edits_with, made, statement_edits
from pullback.check.repair.reached import why_untried
from pullback.check.repair.source import Source, kind_of, quotation, source_of, value_of
from pullback.check.repair.trials import Edit, Needs, Trials
from pullback.check.report import Cause, quoted
from pullback.check.session import Session
from pullback.check.subject import BackwardError, ForwardError
from pullback.core.custom.operation import CustomOp
from pullback.core.graph.modes import RECORD, STATE
from pullback.transforms.api.checkpoint import kept_globals

SECONDS = 1.5  # of the processor, that a search may take
_LEAVES = (ast.Name, ast.Constant)
_CALLS = 40  # the calls that may be made however long they take
_FOR_ONE = 1.0  # how much unlikelier one change may be than one for each gradient
_IN_FORWARD = 1.0  # how much unlikelier it is that forward should save something else


def fail(session: Session, evidence: Evidence, causes: Sequence[tuple[int, Cause]]) -> None:
    """Report why the gradients of some arguments are wrong; a change of the source is sought later.

    That takes no longer than what is left of the time limit now.
    """
    seconds = deadline().end - time.perf_counter()
    told = [i for i, _ in causes]
    wrong = told + [i for i, w in enumerate(evidence.wrong) if w.any() and i not in told]
    swapped = any(cause.name == "swapped" for _, cause in causes)
    found = functools.cache(lambda: _repairs(evidence, wrong, seconds, swapped))
    for i, cause in causes:
        session.fail(
            cause,
            evidence.names[i],
            find_repair=(lambda i=i: found().get(i, "")) if session.options.repair else None,
            expected=evidence.expected[i],
            got=evidence.got[i],
            wrong=evidence.wrong[i],
        )


def _repairs(
    evidence: Evidence, wrong: Sequence[int], seconds: float, swapped: bool
) -> dict[int, str]:
    """Return a change of the source for arguments, each once; what is not found in time is none.

    None is found where the source cannot be read; of `swapped` gradients only an exchange.
    """
    subject = evidence.session.subject
    op = subject.fn
    if not isinstance(op, CustomOp) or op.given_rule is None:
        return {}
    rule, saver = source_of(op.given_rule), source_of(op.setup_context or op.forward)
    if rule is None or saver is None:
        return {}
    why = why_untried([(op.name, op), *subject.settings()], subject.backend.library.name)
    if why:
        return {wrong[0]: f"no repair was tried: {why}"}

    @np.errstate(all="ignore")  # trials leave the domain, as a check does
    def search() -> dict[int, str]:
        STATE.set(RECORD)
        quiet = warnings.catch_warnings(action="ignore")
        with limited(max(seconds, 0.0)) as limit, limit.leaving_out(_CALLS), kept_globals(), quiet:
            return Search(evidence, wrong, rule, saver).found(swapped)

    try:
        found = contextvars.copy_context().run(search)  # the reader's modes stay as they are
    except (OutOfTimeError, BackwardError, ForwardError):
        return {}
    except Exception as error:  # a report without it is better than none
        return {wrong[0]: f"no change of the source was sought: {error!r}"}
    first = {found[i]: i for i in reversed(wrong) if i in found}
    return {i: text for text, i in first.items()}


class Search:
    """A search for changes of `rule`, or of what saves for it."""

    def __init__(
        self, evidence: Evidence, wrong: Sequence[int], rule: Source, saver: Source
    ) -> None:
        self.time = Budget(SECONDS)
        self.trials = Trials(evidence, wrong, rule, saver)
        self.needs = Needs(self.trials)

    def found(self, swapped: bool = False) -> dict[int, str]:
        """Return one change for all gradients, or one for each: the likeliest are tried first."""
        trials, wrong = self.trials, self.trials.wrong
        names, rule, saver = trials.names, trials.rule, trials.saver
        atoms = {rule: atoms_of(names[rule], names[saver], [*_seen(rule), *_seen(saver)])}
        atoms |= {each: atoms_of(names[each], {}, _seen(each)) for each in trials.helpers}
        parts = [self._of(each, ast.walk(each.tree), known) for each, known in atoms.items()]
        edits = [*itertools.chain(*parts), *self._of(saver, _saving(saver.tree), atoms[rule])]
        found: dict[int, str] = {}
        last = float("inf")  # the cost up to which one change may still replace several
        lent = names[saver].keys()  # all other names have to be those of the module
        edits = [e for e in edits if e.new_names <= lent and (not swapped or _exchanges(e))]
        for edit in sorted(edits, key=lambda edit: edit.cost):
            if not self.time.lasts() or edit.cost > last:
                break
            right = trials.mended_by(edit)
            text = self._told(edit, right) if right else ""
            found |= {i: text for i in right if i not in found or right == wrong}
            if len(found) == len(wrong):
                if len(set(found.values())) == 1:
                    break
                last = min(last, edit.cost + _FOR_ONE)
        return found

    def _of(self, source: Source, nodes: Iterable[Any], atoms: Sequence[Atom]) -> Iterator[Edit]:
        """Yield changes of some nodes of a function."""
        is_saver = source is self.trials.saver
        more = _IN_FORWARD if is_saver else 0.0
        for node in nodes:
            if isinstance(node, ast.Compare) and isinstance(value_of(node.left), str):
                continue  # a name is no slip
            pairs, seen = [*edits_of(node, source)], getattr(node, "seen", None)
            kind = kind_of(seen.value) if seen else ""
            if kind:
                pairs += edits_with(node, atoms, None if is_saver else self.needs.of(node))
            if kind == "f":  # what forward passes its own values through
                pairs += [(made(f"{name}(x)", {"x": node}), 1.7) for name in self.trials.passed]
            if kind and is_saver:  # what it goes on to change
                pairs.append((made("x.copy()", {"x": node}), 0.7))
            yield from (Edit(cost + more, source, [(node, new)]) for new, cost in pairs)
        for places, cost in statement_edits(source):
            yield Edit(cost + more, source, places)

    def _told(self, edit: Edit, right: Sequence[int]) -> str:
        before, after = quotation(edit.source.tree, edit.places)
        roles = {self.trials.rule: "backward", self.trials.saver: "forward"}
        role = roles.get(edit.source, f"`{edit.source.tree.name}`")
        names = [self.trials.evidence.names[i] for i in right]
        lent = self.trials.borrowed(edit)
        borrowed = f" ({quoted(lent)} as in forward)" if lent else ""
        verb = "gradient of {} is" if len(names) == 1 else "gradients of {} are"
        return (
            f"line {min(old.lineno for old, _ in edit.places)} of {role}: with `{after}`{borrowed} "
            f"instead of `{before}` the {verb.format(quoted(names))} right"
        )


def _exchanges(edit: Edit) -> bool:
    """Return whether a change only exchanges names and numbers."""
    old, new = (
        sorted(ast.dump(n) for tree in side for n in ast.walk(tree) if isinstance(n, _LEAVES))
        for side in zip(*edit.places, strict=True)
    )
    return old == new


def _seen(source: Source) -> list[Any]:
    """Return the expressions that were evaluated."""
    return [node for node in ast.walk(source.tree) if hasattr(node, "seen")]


def _saving(tree: Any) -> Iterator[Any]:
    """Yield the nodes of the statements that give something to the context."""
    context = tree.args.args[0].arg
    for statement in ast.walk(tree):
        if isinstance(statement, (ast.Assign, ast.Expr)):
            nodes = [*ast.walk(statement)]
            if any(isinstance(node, ast.Name) and node.id == context for node in nodes):
                yield from nodes
