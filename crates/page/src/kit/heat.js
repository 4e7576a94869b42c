// A heat map of two parameters: whether good trials lie on a plateau or on a spike.
import { axisTicks, isDiscrete, place, valueText } from './axis.js';
import { line, makeCanvas, ramp } from './canvas.js';
import { tickLabel } from './format.js';

const MOST_CELLS = 18;

/** Number of cells along an axis: one for each option or whole number if they are few. */
const cellCount = (axis) => {
  if (isDiscrete(axis)) return axis.options.length;
  const whole = axis.is_whole && !axis.is_log ? axis.high - axis.low + 1 : Infinity;
  return Math.min(MOST_CELLS, whole);
};

export class HeatMap {
  /** `onCell` gets the cell under the pointer, or null: { x, y, n, median, best }. */
  constructor(canvas, onCell) {
    this.canvas = canvas;
    this.data = null;
    this.chart = makeCanvas(canvas, (...args) => this.draw(...args));
    canvas.addEventListener('pointermove', (event) => onCell(this.cellAt(event)));
    canvas.addEventListener('pointerleave', () => onCell(null));
  }

  /** Shows scores over two axes, each { axis, values }; `winner` is the place of the trial that is marked, or null. */
  show({ across, up, scores, winner }) {
    const [columns, rows] = [cellCount(across.axis), cellCount(up.axis)];
    const index = (axis, value, n) => Math.max(0, Math.min(n - 1, Math.floor(place(axis, value) * n)));
    const spot = (i) => {
      if (across.values[i] === null || up.values[i] === null) return null;
      return [index(across.axis, across.values[i], columns), index(up.axis, up.values[i], rows)];
    };
    const cells = new Map();
    scores.forEach((score, i) => {
      const at = score === null ? null : spot(i);
      if (!at) return;
      const key = at[1] * columns + at[0];
      if (!cells.has(key)) cells.set(key, []);
      cells.get(key).push(score);
    });
    for (const [key, found] of cells) {
      found.sort((a, b) => a - b);
      cells.set(key, { n: found.length, median: found[(found.length - 1) >> 1], best: found[found.length - 1] });
    }
    const medians = [...cells.values()].map((cell) => cell.median).sort((a, b) => a - b);
    // A few very bad cells must not make all others look alike.
    const low = medians[Math.floor(medians.length * 0.1)] ?? 0;
    const high = medians[medians.length - 1] ?? 1;
    this.data = { across: across.axis, up: up.axis, columns, rows, cells, low, high, winner: winner === null ? null : spot(winner) };
    this.chart.redraw();
  }

  draw(context, width, height, colours) {
    if (!this.data) return;
    const { across, up, columns, rows, cells, low, high, winner } = this.data;
    const ticks = axisTicks(up, Math.max(2, Math.floor(height / 50)));
    const left = Math.ceil(Math.max(...ticks.map(({ text }) => context.measureText(text).width), 12)) + 12;
    const box = (this.box = { left, right: width - 70, top: 8, bottom: height - 24 });
    const [wide, tall] = [(box.right - box.left) / columns, (box.bottom - box.top) / rows];
    for (const [key, { median }] of cells) {
      const [x, y] = [key % columns, Math.floor(key / columns)];
      context.fillStyle = ramp((median - low) / (high - low || 1));
      context.fillRect(box.left + x * wide, box.bottom - (y + 1) * tall, Math.ceil(wide) - 1, Math.ceil(tall) - 1);
    }
    if (winner) {
      context.strokeStyle = colours.ink;
      context.lineWidth = 2;
      context.strokeRect(box.left + winner[0] * wide, box.bottom - (winner[1] + 1) * tall, wide - 1, tall - 1);
      context.lineWidth = 1;
    }
    context.strokeStyle = colours.line;
    line(context, box.left, box.bottom + 0.5, box.right, box.bottom + 0.5);
    context.fillStyle = colours.muted;
    context.textAlign = 'right';
    for (const { at, text } of ticks) context.fillText(text, box.left - 8, box.bottom - at * (box.bottom - box.top));
    context.textAlign = 'center';
    let last = -Infinity;
    for (const { at, text } of axisTicks(across, Math.max(2, Math.floor(width / 80)))) {
      const half = context.measureText(text).width / 2;
      const x = Math.max(box.left + half, Math.min(box.right - half, box.left + at * (box.right - box.left)));
      if (x - half < last + 8) continue;
      context.fillText(text, x, box.bottom + 13);
      last = x + half;
    }
    this.drawScale(context, width, box, colours);
  }

  /** What the colours mean. */
  drawScale(context, width, box, colours) {
    const { low, high } = this.data;
    const left = width - 56;
    const steps = 40;
    const tall = (box.bottom - box.top) / steps;
    for (let i = 0; i < steps; i++) {
      context.fillStyle = ramp(i / (steps - 1));
      context.fillRect(left, box.bottom - (i + 1) * tall, 10, Math.ceil(tall));
    }
    context.fillStyle = colours.muted;
    context.textAlign = 'left';
    context.fillText(tickLabel(Number(high.toPrecision(3))), left + 14, box.top + 6);
    context.fillText(tickLabel(Number(low.toPrecision(3))), left + 14, box.bottom - 6);
  }

  cellAt(event) {
    if (!this.data || !this.box) return null;
    const bounds = this.canvas.getBoundingClientRect();
    const { left, right, top, bottom } = this.box;
    const x = Math.floor(((event.clientX - bounds.left - left) / (right - left)) * this.data.columns);
    const y = Math.floor(((bottom - (event.clientY - bounds.top)) / (bottom - top)) * this.data.rows);
    if (x < 0 || y < 0 || x >= this.data.columns || y >= this.data.rows) return null;
    const cell = this.data.cells.get(y * this.data.columns + x);
    return cell ? { x: cellText(this.data.across, x, this.data.columns), y: cellText(this.data.up, y, this.data.rows), ...cell } : null;
  }
}

/** The middle of a cell as a value of its axis. */
function cellText(axis, index, n) {
  if (isDiscrete(axis)) return axis.options[index];
  const share = (index + 0.5) / n;
  const value = axis.is_log ? axis.low * (axis.high / axis.low) ** share : axis.low + share * (axis.high - axis.low);
  return valueText(axis, axis.is_whole ? Math.round(value) : value);
}
