// Whether the winners hold up: in and out of sample side by side, and every check.

/** How much of a value is lost; nothing where there was none to lose. */
const lost = (before, after) => (before > 0 && after !== null && after !== undefined ? 1 - after / before : null);

function showHolding() {
  const report = study.holding;
  const winners = report?.winners ?? [];
  setShown('holding', winners.length > 0);
  if (!winners.length) return;
  const best = winners[0];
  const overfit = report.overfit ? ` The best of one half of the time ended below the median of the other half in ${percent(report.overfit.probability, 0)} of ${number(report.overfit.n_combinations, 0)} splits.` : '';
  const benchmark = best.has_market ? ` The benchmark is ${report.benchmark}.` : '';
  byId('holding-note').textContent = `Trial ${number(best.trial, 0)} ${best.sentence}. ${number(report.trials, 0)} valid trials are worth ${number(report.independent_trials, 0)} independent ones.${overfit}${benchmark}`;

  const parts = [['out_of_sample', 'out of sample'], ['holdout', 'holdout']]
    .filter(([key]) => winners.some((winner) => winner.objective[key] !== null || winner.sharpe[key] !== null));
  const checks = best.checks.map((check) => check.name);
  const head = ['Trial', 'Verdict', 'Survives', `${study.objectives[0]}, in sample`,
    ...parts.flatMap(([, name]) => [name, 'drop']), ...checks];
  const check = (winner, name) => {
    const found = winner.checks.find((one) => one.name === name);
    if (!found) return h('td', {}, '\u2013');
    const value = name === 'trades' ? percent(found.value, 3) : number(found.value, 2);
    return h('td', { class: found.survived ? 'up' : 'down', title: found.words }, `${value} ${found.survived ? '\u2713' : '\u2717'}`);
  };
  const row = (winner) => h('tr', {},
    h('td', {}, number(winner.trial, 0)),
    h('td', {}, winner.sentence.split(': ').pop()),
    h('td', {}, `${winner.n_survived} of ${winner.n_checks}`),
    h('td', {}, short(winner.objective.in_sample)),
    ...parts.flatMap(([key]) => [h('td', {}, short(winner.objective[key])), h('td', {}, percent(lost(winner.objective.in_sample, winner.objective[key]), 0))]),
    ...checks.map((name) => check(winner, name)));
  byId('holding-table').replaceChildren(
    h('thead', {}, h('tr', {}, ...head.map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, ...winners.map(row)));
  byId('holding-checks').replaceChildren(...best.checks.flatMap((one) => [
    h('dt', { class: one.survived ? 'up' : 'down' }, `${one.survived ? '\u2713' : '\u2717'} ${one.name}`), h('dd', {}, one.words)]));
}
