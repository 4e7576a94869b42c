// What was drawn from the study, which objective is shown, which trial is chosen, and scales from values to places.

const study = JSON.parse(byId('data').textContent);
const state = { objective: 0, chosen: null };

/** A number in about four digits, as the command line shows it. */
function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '\u2013';
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return number(value, 0);
  if (size >= 1e7 || size < 1e-4) return value.toExponential(2).replace('-', MINUS).replace('e+', 'e');
  return number(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.01 ? 3 : 6);
}

/** The places of the axes, most important first, equal ones in the order of the study. */
const axisOrder = study.axes.map((_, i) => i).sort((a, b) => study.axes[b].share - study.axes[a].share);

/** What a value of an axis is called. */
function valueText(axis, value) {
  if (value === null) return 'not active';
  if (axis.kind === 'switch') return value ? 'on' : 'off';
  if (axis.kind === 'names') return axis.options[value];
  return axis.whole ? String(value).replace('-', MINUS) : short(value);
}

const isDiscrete = (axis) => axis.kind !== 'number';
const nOptions = (axis) => (axis.kind === 'names' ? axis.options.length : 2);

/** Where a value lies on its axis, from 0 to 1; options sit in the middles of equal shares. */
function share(axis, value) {
  if (isDiscrete(axis)) return (value + 0.5) / nOptions(axis);
  if (axis.log) return Math.log(value / axis.low) / Math.log(axis.high / axis.low);
  return (value - axis.low) / (axis.high - axis.low);
}

/** Labelled places of an axis, at most about `most`. */
function axisTicks(axis, most) {
  if (isDiscrete(axis)) {
    const step = Math.max(1, Math.ceil(nOptions(axis) / Math.max(1, most)));
    const ticks = [];
    for (let i = 0; i < nOptions(axis); i += step) ticks.push({ at: share(axis, i), text: valueText(axis, i) });
    return ticks;
  }
  const round = axis.log ? logTicks(axis.low, axis.high, most) : niceTicks(axis.low, axis.high, most);
  const values = axis.whole ? round.filter(Number.isInteger) : round;
  if (values.length > 1) return values.map((value) => ({ at: share(axis, value), text: tickText(value) }));
  return [axis.low, axis.high].map((value) => ({ at: share(axis, value), text: tickText(axis.whole ? value : Number(value.toPrecision(2))) }));
}

/** A tick without trailing zeros. */
function tickText(value) {
  const size = Math.abs(value);
  if (size >= 1e5) return compact(value);
  if (size > 0 && size < 1e-3) return value.toExponential(0).replace(/-/g, MINUS);
  return String(Number(value.toPrecision(6))).replace('-', MINUS);
}

/** The range of an objective worth showing: a few hopeless trials must not flatten the others. They are drawn on the lower edge. */
function scoreRange(objective) {
  const known = study.scores[objective].filter((value) => value !== null).sort((a, b) => a - b);
  if (!known.length) return { low: 0, high: 1, clipped: 0 };
  const high = known[known.length - 1];
  const typical = known[Math.floor(known.length * 0.1)];
  let low = Math.max(known[0], typical - 0.6 * (high - typical));
  const pad = (high - low) * 0.04 || Math.abs(high) * 0.05 || 1;
  return { low: low - pad, high: high + pad, clipped: known.filter((value) => value < low).length };
}

/** Each trial's own place between \u22120.5 and 0.5, so that trials with the same option do not hide one another. */
const jitter = (i) => ((study.trials[i] * 0.618033988749895) % 1) - 0.5;

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
