"""The search for one small change of the source that makes a wrong gradient right.

What passes all trials is what the author may have meant; nothing is claimed that was not tried.
"""

from __future__ import annotations

import ast
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.explain.evidence import Evidence
from pullback.check.naming import quoted
from pullback.check.repair.atoms import Atom, Names, atoms_of, can_repeat, kind_of
from pullback.check.repair.combining import (
    by_groups,
    completed,
    copied,
    edits_with,
    own_functions,
    passed,
    repeated,
)
from pullback.check.repair.edits import Edit, Values, edits_of, exchanged
from pullback.check.repair.needed import Needs
from pullback.check.repair.quoting import quotation, replaced
from pullback.check.repair.sites import Rewritten, Seen
from pullback.check.repair.source import Source, source_of
from pullback.check.repair.statements import statements
from pullback.check.repair.terms import Terms
from pullback.check.repair.trials import Candidate, Trials
from pullback.check.report import Report
from pullback.check.session import Session
from pullback.core.custom.operation import CustomOp

_PLAIN = (ast.Name, ast.Attribute)
_FOR_ONE = 1.0  # how much unlikelier one change may be than one for each gradient
_SLIP = 3.5  # the cost of what is likelier than a missing term
_SPOILS = 4  # changes at one place that made right gradients wrong, after which it is left alone
SECONDS = 1.5  # of the processor, that a search may take


# A change that is made only if its turn comes, with what it costs.
_Choice = tuple[float, Callable[[], Candidate]]


@dataclasses.dataclass(frozen=True)
class Mending:
    """A change of the source that makes a gradient right.

    Attributes
    ----------
    arguments : tuple of str
        Whose gradients it makes right.
    where : str
        The function and its line.
    before, after : str
        The source.
    borrowed : tuple of str
        The variables of forward in it.
    here_alone : bool
        Whether gradients that were right at other inputs are not right with it.
    """

    arguments: tuple[str, ...]
    where: str
    before: str
    after: str
    borrowed: tuple[str, ...] = ()
    here_alone: bool = False

    def __str__(self) -> str:
        borrowed = f" ({quoted(self.borrowed)} as in forward)" if self.borrowed else ""
        what = "gradient of" if len(self.arguments) == 1 else "gradients of"
        verb = "is" if len(self.arguments) == 1 else "are"
        here = " here, though not at the inputs given" if self.here_alone else ""
        return (
            f"{self.where}: with `{self.after}`{borrowed} instead of `{self.before}` the {what} "
            f"{quoted(self.arguments)} {verb} right{here}"
        )


def mendings(evidence: Evidence, wrong: Sequence[int]) -> list[Mending]:
    """Return changes of the source that make the gradients of these arguments right.

    None are found where the source cannot be read, or within `SECONDS`.
    """
    sources = sources_of(evidence.session.subject.fn)
    if sources is None:
        return []
    try:
        return Search(evidence, wrong, *sources).found()
    except (BackwardError, ForwardError):
        return []


def sources_of(op: Any) -> tuple[Source, Source] | None:
    """Return the sources of an operation's backward, and of what saves for it; None without."""
    if not isinstance(op, CustomOp) or op.given_rule is None:
        return None
    rule, saver = source_of(op.given_rule), source_of(op.setup_context or op.forward)
    return None if rule is None or saver is None else (rule, saver)


def _of_statements(rewritten: Rewritten, places: list[tuple[Any, Any]], cost: float) -> Candidate:
    return Candidate(cost, rewritten, replaced(rewritten.source.tree, places), places)


class Search:
    """One search.

    Parameters
    ----------
    evidence : Evidence
    wrong : sequence of int
        The arguments whose gradients are wrong.
    rule, saver : Source
        Of backward, and of what saves values for it.
    """

    def __init__(
        self, evidence: Evidence, wrong: Sequence[int], rule: Source, saver: Source
    ) -> None:
        self.time = Budget(SECONDS)
        self.evidence, self.wrong = evidence, tuple(wrong)
        self.backward, self.saver = Rewritten(rule), Rewritten(saver)
        self.trials = Trials(evidence, wrong, self.backward, self.saver)
        self.needs = Needs(self.trials)
        self.forward_calls = own_functions(saver)
        self.names: dict[int, Names] = {}
        self.spoiling: Counter[tuple[Rewritten, int]] = Counter()
        base = evidence.session.subject.base
        self.base = None if base is None else Session(base, evidence.session.options, Report("", 0))

    def found(self) -> list[Mending]:
        """Return one change for all gradients, or one for each; those that hold elsewhere first."""
        found: dict[int, Mending] = {}
        here: dict[int, Mending] = {}
        last = float("inf")  # the cost up to which one change may still replace several
        for candidate in self._candidates():
            if not self.time.lasts() or candidate.cost > last:
                break
            if self._spoils(candidate):
                continue
            mended = self.trials.mended_by(candidate)
            self._learn_from(candidate)
            if not mended:
                continue
            made = self._quoted(candidate, mended)
            kept = here if made.here_alone else found
            if set(mended) == set(self.wrong):
                kept.update(dict.fromkeys(mended, made))
            for i in mended:
                kept.setdefault(i, made)
            if set(found) == set(self.wrong):
                single = len(set(found.values())) == 1
                last = min(last, -1.0 if single else candidate.cost + _FOR_ONE)
        return list(dict.fromkeys((here | found).values()))

    def _learn_from(self, candidate: Candidate) -> None:
        """Count how often a change at one place made gradients wrong that were right."""
        change = candidate.change
        if self.trials.spoiled and isinstance(change, dict) and len(change) == 1:
            self.spoiling[candidate.rewritten, next(iter(change))] += 1

    def _spoils(self, candidate: Candidate) -> bool:
        """Return whether other changes at the same place have made right gradients wrong."""
        if not isinstance(candidate.change, dict):
            return False
        return any(self.spoiling[candidate.rewritten, k] >= _SPOILS for k in candidate.change)

    # -- changes -----------------------------------------------------------------------------------
    def _candidates(self) -> Iterator[Candidate]:
        """Yield all changes, the likeliest first."""
        forward, seen = self.trials.main.seen, self.trials.seen
        own = [self._own(self.backward, seen), self._own(self.saver, forward)]
        pairs = [(each.sites[k], at) for each, found in own for k, at in found.items()]
        names = self.backward.names_in(seen)
        atoms = atoms_of(pairs, names, self.trials.main.names)
        self.needs.solve()
        found: list[_Choice] = []
        for rewritten, own_seen in own:
            found += self._statements(rewritten, atoms)
            found += self._expressions(rewritten, own_seen, atoms)
        for source in self._helpers():
            found += self._in_helper(source)
        terms = (self._candidate(self.backward, edit) for edit in self._terms(atoms))
        for cost, make in sorted(found, key=itemgetter(0)):
            if cost > _SLIP or not self.time.lasts(SECONDS / 2):
                yield from terms  # they fit the numbers already
            yield make()
        yield from terms

    def _own(
        self, rewritten: Rewritten, seen: dict[int, Seen], source: Source | None = None
    ) -> tuple[Rewritten, dict[int, Seen]]:
        """Return what was seen of a function itself, or of one that it calls."""
        source = source or rewritten.source
        return rewritten, {k: at for k, at in seen.items() if rewritten.sites[k].source is source}

    def _helpers(self) -> list[Source]:
        """Return the functions that backward calls and forward does not."""
        sources = {id(site.source): site.source for site in self.backward.sites}
        return [
            source
            for source in sources.values()
            if source is not self.backward.source and source.function not in self.saver.helpers
        ]

    def _in_helper(self, source: Source) -> Iterator[_Choice]:
        """Yield changes of a function that backward calls."""
        rewritten, seen = self._own(self.backward, self.trials.seen, source)
        pairs = [(rewritten.sites[k], at) for k, at in seen.items()]
        atoms = atoms_of(pairs, rewritten.names_in(seen, source), {})
        yield from self._expressions(rewritten, seen, atoms)

    def _statements(self, rewritten: Rewritten, atoms: Sequence[Atom]) -> Iterator[_Choice]:
        more = 0.0 if rewritten is self.backward else 0.5
        for places, cost in statements(rewritten.source.tree, self._indices(atoms)):
            yield cost + more, partial(_of_statements, rewritten, places, cost + more)

    def _indices(self, atoms: Sequence[Atom]) -> dict[str, Any]:
        """Return the integers at hand by how they are written."""
        whole = [atom for atom in atoms if kind_of(atom.value) == "i"]
        return {atom.text: atom.node for atom in whole if isinstance(atom.node, _PLAIN)}

    def _expressions(
        self, rewritten: Rewritten, seen: dict[int, Seen], atoms: Sequence[Atom]
    ) -> Iterator[_Choice]:
        """Yield changes of backward's expressions, or of those that forward saves."""
        own = rewritten is self.backward
        values = Values(rewritten.sites, seen)
        edits = [*exchanged(rewritten.sites, seen, can_repeat)]
        edits += repeated(rewritten.sites, seen, atoms)
        for k, at in seen.items():
            site = rewritten.sites[k]
            if (own or site.role == "saved") and can_repeat(site.node):
                need = self.needs.of(k) if own else None
                need = need if need is not None and need.unique else None
                is_met = None if need is None else need.is_met_by
                edits += edits_of(k, site.node, at.then, values, is_met)
                if not own or not self.needs.is_hopeless(k):
                    edits += edits_with(k, site.node, at.then, atoms, need)
                edits += completed(k, site.node, site.source.known(), atoms)
                edits += by_groups(k, site.node, values, atoms)
                edits += passed(k, site.node, at.value, self.forward_calls)
                edits += () if own else copied(k, site.node, at.value)
        for edit in edits:
            roles = {rewritten.sites[k].role for k in edit.sites}
            if own or roles == {"saved"}:
                edit.cost += 1.0 * ("test" in roles) + 0.5 * (not own)
                yield edit.cost, partial(self._candidate, rewritten, edit)

    def _candidate(self, rewritten: Rewritten, edit: Edit) -> Candidate:
        nodes = edit.nodes
        names = self._names(rewritten.sites[next(iter(nodes))].source)
        change = {k: names.change(node) for k, node in nodes.items()}
        places = [(rewritten.sites[k].node, node) for k, node in nodes.items()]
        return Candidate(edit.cost, rewritten, change, places)

    def _names(self, source: Source) -> Names:
        if id(source) not in self.names:
            self.names[id(source)] = Names(source, self.trials.beside, self.backward.lent)
        return self.names[id(source)]

    def _terms(self, atoms: Sequence[Atom]) -> Iterator[Edit]:
        """Yield what gives expressions the values that they would need."""
        terms = Terms(atoms)
        needs = []
        for need in self.needs.all():
            if np.any(need.needed) and self.time.lasts():
                seen = self.trials.seen[need.site]
                at_hand = terms if seen.count == 1 else Terms(atoms_of([], seen.names, {}))
                of = need.site, self.backward.sites[need.site].node, need.value, need.needed
                needs.append((at_hand, of))
                yield from at_hand.edits(*of)
        for at_hand, of in needs:
            if not self.time.lasts():
                return
            yield from at_hand.products(*of)

    # -- what is said ------------------------------------------------------------------------------
    def _quoted(self, candidate: Candidate, mended: Sequence[int]) -> Mending:
        rewritten, change = candidate.rewritten, candidate.change
        source = rewritten.source
        if isinstance(change, dict):
            source = rewritten.sites[next(iter(change))].source
        before, after = quotation(source.tree, candidate.places)
        role = "backward" if rewritten is self.backward else "forward"
        role = role if source is rewritten.source else f"`{source.tree.name}`"
        line = min(old.lineno for old, _ in candidate.places)
        here_alone = self.base is not None and not self.trials.keeps(candidate, self.base, mended)
        names = [self.evidence.names[i] for i in mended]
        return Mending(
            tuple(names),
            f"line {line} of {role}",
            before,
            after,
            self._borrowed(candidate),
            here_alone,
        )

    def _borrowed(self, candidate: Candidate) -> tuple[str, ...]:
        """Return the variables of forward that a change of backward uses."""
        if candidate.rewritten is self.saver or not isinstance(candidate.change, dict):
            return ()
        names: dict[str, Any] = {}
        for k, (_, new) in zip(candidate.change, candidate.places, strict=True):
            own = self.trials.seen[k].names
            for node in ast.walk(new):
                if isinstance(node, ast.Name) and node.id not in own:
                    names[node.id] = None
        return tuple(name for name in names if name in self.trials.main.names)
