// How the search weighs what it finds: the entry whose bare name was typed comes first.
var Scorer = {
  objNameMatch: 200,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 40,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  // What changed, and what is for contributors, comes last.
  score: ([page, , , , score]) => (/^(project|bench)|internals/.test(page) ? score - 50 : score),
};
