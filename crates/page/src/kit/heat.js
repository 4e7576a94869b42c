// Two parameters against each other, cut into cells that are coloured by the scores of the trials in them: a plateau is a patch of one
// colour, a spike a single bright cell.
import { axisTicks, isDiscrete, place } from './axis.js';
import { ramp } from './canvas.js';
import { tickLabel } from './format.js';

const MOST_CELLS = 14;
const HEAT_MARGIN = { left: 62, right: 10, top: 8, bottom: 24 };

/** Whether every value of an axis has a cell of its own. */
const hasOwnCells = (axis) => isDiscrete(axis) || (axis.is_whole && !axis.is_log && axis.high - axis.low < MOST_CELLS);

const cellCount = (axis) => (isDiscrete(axis) ? axis.options.length : hasOwnCells(axis) ? axis.high - axis.low + 1 : MOST_CELLS);

const cellOf = (axis, value) => {
  if (isDiscrete(axis)) return value;
  if (hasOwnCells(axis)) return value - axis.low;
  return Math.max(0, Math.min(MOST_CELLS - 1, Math.floor(place(axis, value) * MOST_CELLS)));
};

const cellTicks = (axis, most) => {
  if (!hasOwnCells(axis) || isDiscrete(axis)) return axisTicks(axis, most);
  const n = cellCount(axis);
  const step = Math.ceil(n / Math.max(1, most));
  return Array.from({ length: n }, (_, i) => ({ at: (i + 0.5) / n, text: tickLabel(axis.low + i) })).filter((_, i) => i % step === 0);
};

/** The cells that hold trials: { x, y, n, best, median, trial }, where `trial` is the place of the best one in `scores`. */
export function heatCells(across, up, scores) {
  const found = new Map();
  scores.forEach((score, i) => {
    const [x, y] = [across.values[i], up.values[i]];
    if (score === null || x === null || y === null) return;
    const key = cellOf(up.axis, y) * 1000 + cellOf(across.axis, x);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(i);
  });
  return [...found].map(([key, members]) => {
    members.sort((a, b) => scores[b] - scores[a]);
    const middle = members.length >> 1;
    const median = members.length % 2 ? scores[members[middle]] : (scores[members[middle - 1]] + scores[members[middle]]) / 2;
    return { x: key % 1000, y: Math.floor(key / 1000), n: members.length, best: scores[members[0]], median, trial: members[0] };
  });
}

/** Draws cells by `best` or `median`; returns what is at a place of the canvas. */
export function drawHeat(pen, width, height, colours, { across, up, cells, by }) {
  const box = { left: HEAT_MARGIN.left, right: width - HEAT_MARGIN.right, top: HEAT_MARGIN.top, bottom: height - HEAT_MARGIN.bottom };
  const [nx, ny] = [cellCount(across.axis), cellCount(up.axis)];
  const size = { x: (box.right - box.left) / nx, y: (box.bottom - box.top) / ny };
  const sorted = cells.map((cell) => cell[by]).sort((a, b) => a - b);
  // A few very bad cells must not make all others look alike.
  const [low, high] = [sorted[Math.floor(sorted.length * 0.05)], sorted[sorted.length - 1]];
  pen.fillStyle = colours.wash;
  pen.fillRect(box.left, box.top, box.right - box.left, box.bottom - box.top);
  const corner = (cell) => [box.left + cell.x * size.x, box.bottom - (cell.y + 1) * size.y];
  for (const cell of cells) {
    pen.fillStyle = ramp(Math.max(0, Math.min(1, (cell[by] - low) / (high - low || 1))));
    pen.fillRect(...corner(cell), size.x - 1, size.y - 1);
  }
  const top = cells.reduce((a, b) => (b.best > a.best ? b : a), cells[0]);
  if (top) {
    const [x, y] = corner(top);
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.5;
    pen.strokeRect(x + 0.5, y + 0.5, size.x - 2, size.y - 2);
    pen.lineWidth = 1;
  }
  pen.fillStyle = colours.muted;
  pen.textAlign = 'right';
  for (const { at, text } of cellTicks(up.axis, (box.bottom - box.top) / 26)) pen.fillText(text.slice(0, 9), box.left - 7, box.bottom - at * (box.bottom - box.top));
  for (const { at, text } of cellTicks(across.axis, (box.right - box.left) / 60)) {
    const x = box.left + at * (box.right - box.left);
    pen.textAlign = x > box.right - 14 ? 'right' : x < box.left + 10 ? 'left' : 'center';
    pen.fillText(text, x, height - 10);
  }
  return (x, y) => {
    const [column, row] = [Math.floor((x - box.left) / size.x), Math.floor((box.bottom - y) / size.y)];
    const cell = cells.find((one) => one.x === column && one.y === row);
    return cell ? { cell, x: corner(cell)[0] + size.x / 2, y: corner(cell)[1] } : null;
  };
}
