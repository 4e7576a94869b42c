// Parameters as axes: { name, kind: 'number' or 'names', low, high, is_whole, is_log, options }; a value of a name is its place among the options.
import { logTicks, MINUS, niceTicks, short, tickLabel } from './format.js';

export const isDiscrete = (axis) => axis.kind === 'names';

/** What a value of an axis is called. */
export function valueText(axis, value) {
  if (value === null) return 'not active';
  if (isDiscrete(axis)) return axis.options[value];
  return axis.is_whole ? String(value).replace('-', MINUS) : short(value);
}

/** Where a value lies on its axis, from 0 to 1, or nothing; options sit in the middles of equal shares. */
export function place(axis, value) {
  if (value === null) return null;
  if (isDiscrete(axis)) return (value + 0.5) / axis.options.length;
  if (axis.is_log) return Math.log(value / axis.low) / Math.log(axis.high / axis.low);
  return (value - axis.low) / (axis.high - axis.low);
}

/** Labelled places of an axis, at most about `most`. */
export function axisTicks(axis, most) {
  if (isDiscrete(axis)) {
    const step = Math.max(1, Math.ceil(axis.options.length / Math.max(1, most)));
    const shown = axis.options.map((text, i) => ({ at: place(axis, i), text }));
    return shown.filter((_, i) => i % step === 0);
  }
  const round = axis.is_log ? logTicks(axis.low, axis.high, most) : niceTicks(axis.low, axis.high, most);
  const values = axis.is_whole ? round.filter(Number.isInteger) : round;
  if (values.length > 1) return values.map((value) => ({ at: place(axis, value), text: tickLabel(value) }));
  return [axis.low, axis.high].map((value) => ({ at: place(axis, value), text: tickLabel(axis.is_whole ? value : Number(value.toPrecision(2))) }));
}

/** Each trial's own place between -0.5 and 0.5, so that trials with the same option do not hide one another. */
export const jitter = (trial) => ((trial * 0.618033988749895) % 1) - 0.5;
