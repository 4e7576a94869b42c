// Parallel coordinates: good trials as lines across the most important parameters, ending at the objective.
//
// The best trials of a search that has settled are nearly one line. Those of the sample that are among its better quarter join them,
// so that the picture shows what else was good.

const MOST_AXES = 14;
const MOST_OTHERS = 300;

/** The trials that are drawn: the best, and good ones of the sample. Of several objectives the front alone. */
function goodTrials() {
  const best = [...Array(study.n_best).keys()];
  if (study.front !== null) return best;
  const score = (i) => study.scores[0][i];
  const others = [...study.trials.keys()].slice(study.n_best).filter((i) => score(i) !== null).sort((a, b) => score(b) - score(a));
  const good = others.slice(0, Math.ceil(others.length / 4));
  const step = Math.max(1, Math.ceil(good.length / MOST_OTHERS));
  return best.concat(good.filter((_, at) => at % step === 0));
}

/** The chart, which follows the objective and the chosen trial of the page. */
function makeParallel(canvas, onChoose, onCount) {
  const axes = axisOrder.slice(0, MOST_AXES);
  const trials = goodTrials();
  canvas.style.setProperty('--least-width', `${(axes.length + 1) * 74}px`);
  const parallel = new Parallel(canvas, {
    colour: (standing, colours) => (standing > 0.5 ? colours.accent : colours.hold),
    title: (i) => `Trial ${number(study.trials[i], 0)}: ${short(study.scores[state.objective][i])}`,
    onChoose,
    onCount,
  });
  parallel.update = () => {
    const scores = study.scores[state.objective];
    const axis = scoreAxis(objectiveName(), trials.map((i) => scores[i]));
    parallel.chosen = state.chosen;
    parallel.show({
      columns: [...axes.map((at) => ({ axis: study.axes[at], values: study.values[at] })), { axis, values: scores }],
      trials,
      standing: (i) => place(axis, scores[i]),
    });
  };
  parallel.update();
  return parallel;
}
