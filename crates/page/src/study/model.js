// What was drawn from the study, which objective is shown, which trial is chosen, and scales from values to places.

const study = JSON.parse(byId('data').textContent);
const state = { objective: 0, chosen: null };

/** The places of the axes, most important first, equal ones in the order of the study. */
const axisOrder = study.axes.map((_, i) => i).sort((a, b) => study.axes[b].importance - study.axes[a].importance);

/** The range of an objective worth showing: a few very bad trials must not flatten the others. They are drawn on the lower edge. */
function scoreRange(objective) {
  const known = study.scores[objective].filter((value) => value !== null).sort((a, b) => a - b);
  if (!known.length) return { low: 0, high: 1, clipped: 0 };
  const high = known[known.length - 1];
  const typical = known[Math.floor(known.length * 0.1)];
  let low = Math.max(known[0], typical - 0.6 * (high - typical));
  const pad = (high - low) * 0.04 || Math.abs(high) * 0.05 || 1;
  return { low: low - pad, high: high + pad, clipped: known.filter((value) => value < low).length };
}

/** The best value after each improvement, at a trial. */
function bestAt(objective, trial) {
  const steps = study.improvements[objective];
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle][0] <= trial) low = middle + 1;
    else high = middle;
  }
  return low ? steps[low - 1][1] : null;
}
