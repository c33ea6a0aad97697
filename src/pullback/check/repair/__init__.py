"""What the sources tell of a wrong gradient, when a report is read.

The parts of forward through which it is wrong, and one small change of the source that makes it
right. What passes all trials is what the author may have meant; nothing is claimed that was not
tried, and nothing that is tried stays.
"""

from __future__ import annotations

import ast
import functools
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import Budget, OutOfTimeError, deadline, limited
from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.explain.evidence import Evidence
from pullback.check.naming import quoted
from pullback.check.repair.at_hand import Atom, Terms, atoms_of, edits_with
from pullback.check.repair.edits import edits_of, exchanges, made, statements
from pullback.check.repair.held import held
from pullback.check.repair.sites import kind_of, shape_of
from pullback.check.repair.source import Source, quotation, source_of
from pullback.check.repair.trials import Edit, Needs, Trials, UnsafeError, evaluated
from pullback.check.report import Cause, Report
from pullback.check.session import Session
from pullback.core.custom.operation import CustomOp
from pullback.core.graph.modes import RECORD, STATE

SECONDS = 1.5  # of the processor, that a search may take
_CALLS = 40  # the calls that may be made however long they take
_FOR_ONE = 1.0  # how much unlikelier one change may be than one for each gradient
_SLIP = 3.5  # the cost of what is likelier than a missing term


def fail(session: Session, evidence: Evidence, causes: Sequence[tuple[int, Cause]]) -> None:
    """Report why the gradients of some arguments are wrong; what the source tells is sought later.

    That takes no longer than what is left of the time limit now.
    """
    seconds = deadline().end - time.perf_counter()
    told = [i for i, _ in causes]
    wrong = told + [i for i, w in enumerate(evidence.wrong) if w.any() and i not in told]
    found = functools.cache(lambda: _repairs(evidence, wrong, told, seconds))
    for i, cause in causes:
        session.fail(
            cause,
            evidence.names[i],
            find_repair=_of(found, i) if session.options.repair else None,
            expected=evidence.expected[i],
            got=evidence.got[i],
            wrong=evidence.wrong[i],
        )


def _of(found: Callable[[], dict[int, str]], i: int) -> Callable[[], str]:
    return lambda: found().get(i, "")


def _repairs(
    evidence: Evidence, wrong: Sequence[int], told: Sequence[int], seconds: float
) -> dict[int, str]:
    """Return for arguments what the sources tell; what is not found in time is left out."""
    mode = STATE.get()
    try:
        STATE.set(RECORD)  # whatever the reader's mode
        with (
            warnings.catch_warnings(),
            np.errstate(all="ignore"),  # trials leave the domain, as those of the check do
            limited(max(seconds, 0.0)),
            deadline().leaving_out(_CALLS),
        ):
            warnings.simplefilter("ignore")
            parts, changes = held(evidence, told), repairs(evidence, wrong)
    except OutOfTimeError:
        return {}
    except Exception as error:  # a report without it is better than none
        return {wrong[0]: f"no change of the source was sought: {error!r}"}
    finally:
        STATE.set(mode)
    texts: dict[int, str] = {}
    for i in wrong:
        own = [each for each in changes if evidence.names[i] in each.arguments]
        texts[i] = "\n".join([*filter(None, [parts.get(i)]), *(each.text for each in own)])
        changes = [each for each in changes if each not in own]
    return texts


# -- the search ------------------------------------------------------------------------------------
class Repair(NamedTuple):
    """A change of the source that makes the gradients of some arguments right.

    If it holds here alone, gradients that were right at other inputs are not right with it.
    """

    arguments: tuple[str, ...]
    text: str
    here_alone: bool


def repairs(evidence: Evidence, wrong: Sequence[int]) -> list[Repair]:
    """Return changes of the source that make the gradients of these arguments right.

    None are found where the source cannot be read, or within `SECONDS`.
    """
    op = evidence.session.subject.fn
    if not isinstance(op, CustomOp) or op.given_rule is None:
        return []
    rule, saver = source_of(op.given_rule), source_of(op.setup_context or op.forward)
    if rule is None or saver is None:
        return []
    try:
        return Search(evidence, wrong, rule, saver).found()
    except (BackwardError, ForwardError):
        return []


class Search:
    """A search for changes of `rule`, or of what saves for it: the likeliest are tried first."""

    def __init__(
        self, evidence: Evidence, wrong: Sequence[int], rule: Source, saver: Source
    ) -> None:
        self.time = Budget(SECONDS)
        self.evidence, self.wrong, self.rule, self.saver = evidence, tuple(wrong), rule, saver
        self.trials = Trials(evidence, wrong, rule, saver)
        self.needs = Needs(self.trials)
        base = evidence.session.subject.base
        self.base = None if base is None else Session(base, evidence.session.options, Report("", 0))

    def found(self) -> list[Repair]:
        """Return one change for all gradients, or one for each; those that hold elsewhere first."""
        found: dict[int, Repair] = {}
        here: dict[int, Repair] = {}
        last = float("inf")  # the cost up to which one change may still replace several
        for edit in self._edits():
            if not self.time.lasts() or edit.cost > last:
                break
            right = self.trials.mended_by(edit) if self._may_do(edit) else ()
            if not right:
                continue
            new = self._told(edit, right)
            kept = here if new.here_alone else found
            if set(right) == set(self.wrong):
                kept.update(dict.fromkeys(right, new))
            for i in right:
                kept.setdefault(i, new)
            if set(found) == set(self.wrong):
                single = len(set(found.values())) == 1
                last = min(last, -1.0 if single else edit.cost + _FOR_ONE)
        return list(dict.fromkeys((here | found).values()))

    def _edits(self) -> Iterator[Edit]:
        """Yield all changes, the likeliest first."""
        trials, names = self.trials, self.trials.names
        nodes = {each: _seen(each.tree) for each in names}
        both = [*nodes[self.rule], *nodes[self.saver]]
        atoms = atoms_of(names[self.rule], names[self.saver], both)
        found = [*self._of(self.rule, nodes[self.rule], atoms, 0.0)]
        for source in trials.backward.sources.values():
            if source is not self.rule and source.function not in trials.saver.sources:
                own = nodes[source]  # forward, which is right, does not use it
                found += self._of(source, own, atoms_of(names[source], {}, own), 0.0)
        found += self._of(self.saver, _saved(self.saver.tree), atoms, 0.5)
        found.sort(key=lambda edit: edit.cost)
        slips = list(itertools.takewhile(lambda edit: edit.cost <= _SLIP, found))
        yield from slips
        yield from self._terms(Terms(atoms))
        yield from found[len(slips) :]

    def _of(
        self, source: Source, nodes: Sequence[Any], atoms: Sequence[Atom], more: float
    ) -> Iterator[Edit]:
        """Yield changes of one function."""
        used = self.trials.saver.sources.values()
        single = [each.tree.name for each in used if each.function.__code__.co_argcount == 1]
        for node in nodes:
            needs = None if source is self.saver else self.needs.of(node)
            pairs = [*edits_of(node, source)]
            if kind_of(node.seen.value):
                pairs += edits_with(node, atoms, needs)
            if kind_of(node.seen.value) == "f":  # what forward passes its own values through
                pairs += [
                    (made(f"{name}(x)", x=node), 1.7) for name in single if name.isidentifier()
                ]
            yield from (Edit(cost + more, source, [(node, new)]) for new, cost in pairs)
        for places, cost in (*exchanges(source.tree), *statements(source)):
            yield Edit(cost + more, source, places)

    def _terms(self, terms: Terms) -> Iterator[Edit]:
        """Yield what gives expressions the values that they would need."""
        told: set[Any] = set()
        nodes = sorted(_seen(self.rule.tree), key=lambda node: node.site)
        for need in (need for node in nodes for need in self.needs.of(node) or ()):
            key = need.value.tobytes(), need.needed.round(9).tobytes()
            if key not in told and self.time.lasts():
                told.add(key)
                for new, cost in terms.edits(need):
                    yield Edit(cost, self.rule, [(need.node, new)])

    def _may_do(self, edit: Edit) -> bool:
        """Return whether the values that a change leads to make gradients right, if that is known.

        It is of expressions that are evaluated once.
        """
        nodes = [old for old, _ in edit.places]
        once = all(hasattr(node, "seen") and node.seen.count == 1 for node in nodes)
        if not once or edit.source is self.saver:
            return True
        names = {**self.trials.names[self.saver], **self.trials.names[edit.source]}
        try:
            values = [evaluated(new, edit.source, names) for _, new in edit.places]
            alike = shape_of(values[0]) == shape_of(nodes[0].seen.value)
            if len(nodes) == 1 and alike and self.needs.of(nodes[0]) == []:
                return False
            changes = {node.site: _put(new) for node, new in zip(nodes, values, strict=True)}
            grads, e = self.trials.gradients_with(changes), self.evidence
            return bool(self.trials.right_of(grads, e.expected, self.wrong, e))
        except UnsafeError:
            return True
        except Exception:  # what the change leads to raises
            return False

    def _told(self, edit: Edit, right: Sequence[int]) -> Repair:
        before, after = quotation(edit.source.tree, edit.places)
        roles = {self.rule: "backward", self.saver: "forward"}
        role = roles.get(edit.source, f"`{edit.source.tree.name}`")
        names = tuple(self.evidence.names[i] for i in right)
        lent = self.trials.borrowed(edit) if edit.source is not self.saver else ()
        borrowed = f" ({quoted(lent)} as in forward)" if lent else ""
        whose, verb = ("gradient", "is") if len(names) == 1 else ("gradients", "are")
        here_alone = self.base is not None and not self.trials.keeps(edit, self.base, right)
        here = " here, though not at the inputs given" if here_alone else ""
        text = (
            f"line {min(old.lineno for old, _ in edit.places)} of {role}: with `{after}`{borrowed} "
            f"instead of `{before}` the {whose} of {quoted(names)} {verb} right{here}"
        )
        return Repair(names, text, here_alone)


def _put(new: Any) -> Callable[[Any], Any]:
    return lambda value: new


def _seen(tree: ast.AST) -> list[Any]:
    """Return the expressions that were evaluated."""
    return [node for node in ast.walk(tree) if hasattr(node, "seen")]


def _saved(tree: ast.AST) -> list[Any]:
    """Return the expressions of what is given to the context."""
    given: list[Any] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            given.append(node.value)
        elif (
            isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1][:9] == "save_for_"
        ):
            given += [*node.args, *node.keywords]
    return [node for each in given for node in _seen(each)]
