// Puts the page together: header, charts, table, and what happens when a trial is chosen.

const FIRST_SLICES = 12;
const several = study.objectives.length > 1;
const objectiveName = () => study.objectives[state.objective];

const history = new Cloud(byId('history-canvas'), drawHistory, choose, showReadout);
const tradeoff = several ? new Cloud(byId('tradeoff-canvas'), drawTradeoff, choose) : null;
const parallel = study.n_best && study.axes.length ? makeParallel(byId('parallel-canvas'), choose, showPassing) : null;
const trialTable = new TrialTable(byId('trial-table'), byId('more-trials'), choose);

/** Marks a trial everywhere, or none. */
function choose(i) {
  state.chosen = state.chosen === i ? null : i;
  trialTable.mark();
  showDetail();
  parallel?.update();
  redrawAll();
}

function showDetail() {
  const box = byId('trial-detail');
  const i = state.chosen;
  if (i === null) {
    box.replaceChildren(h('span', { class: 'hint' }, 'Choose a trial in a chart or in the table to see its parameters and to find it in the other charts.'));
    return;
  }
  const field = (name, value) => h('span', {}, h('i', {}, name), h('b', {}, value));
  box.replaceChildren(
    field('Trial', number(study.trials[i], 0)),
    ...study.objectives.map((name, at) => field(name, short(study.scores[at][i]))),
    ...axisOrder.map((at) => field(study.axes[at].name, valueText(study.axes[at], study.values[at][i]))),
  );
}

function showReadout(i) {
  const pair = (name, value) => h('span', {}, h('i', {}, name), h('b', {}, value));
  const last = study.n_trials - 1;
  const trial = i === null ? last : study.trials[i];
  byId('history-readout').replaceChildren(
    ...(i === null ? [] : [pair('Trial', number(trial, 0)), pair(objectiveName(), short(study.scores[state.objective][i]))]),
    pair(i === null ? 'Best' : 'Best so far', short(bestAt(state.objective, trial))),
  );
}

function showPassing(passing, brushed) {
  byId('parallel-count').textContent = brushed ? `${number(passing.length, 0)} of ${number(parallel.trials.length, 0)} trials` : '';
  byId('clear-brush').hidden = !brushed;
}

// ---- header ----

function showHeader() {
  byId('title').textContent = study.title;
  byId('eyebrow').textContent = study.state === 'running' ? 'Study, still running' : study.state === 'stopped' ? 'Study, stopped early' : 'Study';
  byId('subtitle').textContent = study.subtitle;
  byId('made').textContent = study.made;
  showObjective();
}

/** The parts of the header that follow the objective. */
function showObjective() {
  const steps = study.improvements[state.objective];
  const [trial, best] = steps.length ? steps[steps.length - 1] : [null, null];
  const late = trial === null ? null : (study.n_trials - 1 - trial) / study.n_trials;
  const found = best === null
    ? 'No trial was valid: none traded, or none met the requirements.'
    : several
      ? `${count(study.front, 'trial')} that no other trial beats in every objective, of ${number(study.n_trials, 0)}; the best ${objectiveName()} is ${short(best)}.`
      : `The best ${objectiveName()} is ${short(best)}, found by trial ${number(trial, 0)} of ${number(study.n_trials, 0)}.`;
  const still = late === null ? '' : late < 0.1 ? ' It was still improving at the end; more trials may find better.' : ` The last ${percent(late, 0)} of the trials brought no improvement.`;
  byId('verdict').replaceChildren(...(study.verdict ? [h('strong', { id: 'judged' }, study.verdict), h('br')] : []), found + still);
  const table = partsTable(study.parts);
  byId('parts').hidden = table === null;
  byId('parts').replaceChildren(...(table ? [table] : []));
  byId('headline-of').textContent = [study.verdict ? '' : 'The winners were not judged.', study.edges ?? ''].filter(Boolean).join(' ');
  byId('heat-note').textContent = `Each cell has the median ${objectiveName()} of its trials; the framed one holds the best trial. A plateau is a wide area of one colour, a spike a cell that differs from those around it.${plateauText()}`;
  const figure = (name, value, unit = '') => h('div', { class: 'figure' }, h('dt', { title: name }, name), h('dd', {}, value, unit ? h('small', {}, unit) : ''));
  byId('headline').replaceChildren(
    figure(`Best ${objectiveName()}`, short(best)),
    figure('Trials', number(study.n_trials, 0), study.asked && study.asked !== study.n_trials ? `of ${number(study.asked, 0)}` : ''),
    figure('Valid', percent(study.n_trials ? study.n_valid / study.n_trials : null, 1)),
    figure('Improvements', number(study.n_improvements[state.objective] ?? 0, 0)),
    figure('Parameters', number(study.axes.length, 0)),
  );
  const { clipped } = scoreRange(state.objective);
  byId('clip-note').textContent = clipped ? 'Trials far below the others lie on the lower edge.' : '';
  byId('history-canvas').setAttribute('aria-label', `${objectiveName()} of the trials over the study, and the best so far. ${byId('verdict').textContent}`);
  byId('parallel-canvas').setAttribute('aria-label', `Good trials as lines across their parameters, ending at ${objectiveName()}. The table below lists the best.`);
  byId('tradeoff-canvas').setAttribute('aria-label', 'One objective against another; the trials that no other one beats are highlighted.');
  for (const canvas of document.querySelectorAll('#slice-grid canvas')) {
    canvas.setAttribute('aria-label', `${objectiveName()} against ${canvas.dataset.name}`);
  }
  showReadout(null);
}

// ---- sections ----

function showImportance() {
  const shares = axisOrder.map((at) => study.axes[at]).filter((axis) => axis.importance >= 0);
  const largest = Math.max(...shares.map((axis) => axis.importance), 0);
  setShown('importance', largest > 0);
  byId('importance-table').replaceChildren(
    h('tbody', {}, ...shares.slice(0, 30).map((axis) => {
      const bar = h('span', {});
      bar.style.setProperty('--size', `${(100 * axis.importance) / (largest || 1)}%`);
      return h('tr', {}, h('th', { scope: 'row', title: axis.name }, axis.name), h('td', { class: 'share' }, percent(axis.importance, 1)), h('td', { class: 'bar', 'aria-hidden': 'true' }, bar));
    })),
  );
  const rest = shares.slice(30);
  if (rest.length) byId('importance-note').prepend(`${number(rest.length, 0)} more parameters have ${percent(rest.reduce((all, axis) => all + axis.importance, 0), 1)} together. `);
}

function addSlices(from, to) {
  for (const at of axisOrder.slice(from, to)) {
    const axis = study.axes[at];
    const canvas = h('canvas', { role: 'img', 'data-name': axis.name, 'aria-label': `${objectiveName()} against ${axis.name}` });
    byId('slice-grid').append(h('figure', {}, h('figcaption', {}, h('b', { title: axis.name }, axis.name), h('span', {}, percent(axis.importance, 1))), canvas));
    new Cloud(canvas, drawSlice(at), choose);
  }
}

function showSlices() {
  setShown('slices', study.axes.length > 0 && study.n_valid > 0);
  addSlices(0, FIRST_SLICES);
  const button = byId('more-slices');
  button.hidden = study.axes.length <= FIRST_SLICES;
  button.textContent = `Show all ${number(study.axes.length, 0)}`;
  button.addEventListener('click', () => {
    addSlices(FIRST_SLICES, study.axes.length);
    button.hidden = true;
  });
}

function showParallel() {
  setShown('parallel', parallel !== null);
  if (!parallel) return;
  const axes = study.axes.length > MOST_AXES ? `the ${MOST_AXES} most important of ${number(study.axes.length, 0)} parameters` : 'their parameters';
  const others = parallel.trials.length - study.n_best;
  const which = several
    ? `${number(study.n_best, 0)} trials of the front`
    : `The best ${count(study.n_best, 'trial')}${others ? ` and ${number(others, 0)} other good ones` : ''}`;
  byId('parallel-note').textContent = `${which} across ${axes}; the stronger the line, the better the trial.${matchMedia('(pointer: fine)').matches ? ' Drag along an axis to keep the lines that pass there.' : ''}`;
  byId('clear-brush').addEventListener('click', () => parallel.clear());
}

function showSetup() {
  const list = (id, pairs) => byId(id).replaceChildren(...pairs.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
  list('facts', study.setup);
  list('fixed', study.fixed);
  byId('fixed-box').hidden = study.fixed.length === 0;
  byId('source-box').hidden = study.source.trim() === '';
  byId('source').textContent = study.source.trimEnd();
}

// ---- controls ----

byId('objective-box').hidden = !several;
byId('objective').replaceChildren(...study.objectives.map((name, at) => h('option', { value: at }, name)));
byId('objective').addEventListener('change', (event) => {
  state.objective = Number(event.target.value);
  showObjective();
  parallel?.update();
  updateHeat();
  redrawAll();
});

// ---- start ----

const sampled = study.trials.length - study.n_best;
byId('sample-note').textContent = study.trials.length < study.n_trials ? `${number(sampled, 0)} other trials, evenly chosen from all` : 'other trials';
byId('best-note').textContent = several ? 'trials of the front' : `the best ${number(study.n_best, 0)}`;
setShown('history', study.n_valid > 0);
setShown('tradeoff', several && study.n_valid > 0);
byId('tradeoff-note').textContent = study.objectives.length > 2
  ? `${study.objectives[0]} across; the objective chosen above up. Highlighted: trials that no other trial beats in every objective.`
  : 'Highlighted: trials that no other one beats in both.';
showSlices();
showHeader();
showHolding();
showHeat();
showUnseen();
showImportance();
showParallel();
setShown('trials', study.n_best > 0);
byId('trials-title').textContent = several ? 'Pareto front' : 'Best trials';
trialTable.show();
showDetail();
showSetup();
document.documentElement.classList.add('ready');
