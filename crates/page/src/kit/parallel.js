// Parallel coordinates: trials as lines across their parameters, ending at the objective. Dragging along an axis keeps the lines that
// pass there; arrow keys do the same on the control of each axis, which is seen when it has the focus.
import { axisTicks, isDiscrete, jitter, place } from './axis.js';
import { clip, line, makeCanvas, withAlpha } from './canvas.js';
import { h } from './dom.js';

/** The axis of an objective, over the trials that are drawn. */
export function scoreAxis(name, scores) {
  const known = scores.filter((score) => score !== null);
  let [low, high] = [Math.min(...known), Math.max(...known)];
  if (low === high) low -= Math.abs(low) * 0.05 || 1;
  return { name, kind: 'number', low, high };
}

export class Parallel {
  /** `canvas` is the only child of an element of the class `parallel`. `colour(standing, palette)` is that of a line, `title(i)` names a trial. */
  constructor(canvas, { colour, title, onChoose, onCount }) {
    Object.assign(this, { canvas, colour, title, onChoose, onCount });
    this.hover = null;
    this.chosen = null;
    this.columns = [];
    this.chart = makeCanvas(canvas, (...args) => this.draw(...args));
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.release(event));
    canvas.addEventListener('pointercancel', () => (this.drag = null));
    canvas.addEventListener('pointerleave', () => this.setHover(null));
  }

  /** `columns`: { axis, values } with a value for each trial, the last of them the objective; `trials`: those that are drawn;
   * `standing(i)`: how good one is, from 0 to 1. */
  show({ columns, trials, standing }) {
    const names = (list) => list.map(({ axis }) => axis.name).join();
    const isOther = names(this.columns.slice(0, -1)) !== names(columns.slice(0, -1));
    Object.assign(this, { columns, trials, standing });
    if (isOther) {
      this.brushes = new Map(); // number of the column -> [low, high] as shares
      this.controls?.forEach((control) => control.remove());
      this.controls = columns.map(({ axis }, column) => this.control(axis, column));
      this.canvas.after(...this.controls);
    }
    this.chart.redraw();
  }

  /** Where a trial crosses an axis, as a share from the bottom; null where the parameter is not active. */
  share(i, column) {
    const { axis, values } = this.columns[column];
    const at = place(axis, values[i]);
    if (at === null) return null;
    // A chosen trial may be worse than all that are drawn.
    return isDiscrete(axis) ? at + (0.5 / axis.options.length) * jitter(i) : Math.max(0, at);
  }

  passes(i) {
    for (const [column, [low, high]] of this.brushes) {
      const at = this.share(i, column);
      if (at === null || at < low - 1e-9 || at > high + 1e-9) return false;
    }
    return true;
  }

  trace(context, i) {
    context.beginPath();
    let pen = false;
    this.columns.forEach((_, column) => {
      const at = this.share(i, column);
      if (at !== null && pen) context.lineTo(this.x(column), this.y(at));
      else if (at !== null) context.moveTo(this.x(column), this.y(at));
      pen = at !== null;
    });
    context.stroke();
  }

  draw(context, width, height, colours) {
    if (!this.columns.length) return;
    const [left, right, last] = [34, width - 34, this.columns.length - 1];
    this.box = { left, right, top: 34, bottom: height - 26 };
    this.x = (column) => left + (column / last) * (right - left);
    this.y = (at) => this.box.bottom - at * (this.box.bottom - this.box.top);
    this.controls.forEach((control, column) => (control.style.left = `${this.canvas.offsetLeft + this.x(column) - 10}px`));
    const passing = [];
    const failing = [];
    for (const i of this.trials) (this.passes(i) ? passing : failing).push(i);
    context.strokeStyle = colours.line;
    const step = Math.ceil(failing.length / 600);
    withAlpha(context, 0.25, () => failing.forEach((i, at) => at % step || this.trace(context, i)));
    passing.sort((a, b) => this.standing(a) - this.standing(b));
    const many = passing.length > 1000;
    for (const i of passing) {
      const standing = this.standing(i);
      context.strokeStyle = this.colour(standing, colours);
      context.lineWidth = standing > 0.9 && !many ? 1.6 : 1;
      // Of thousands of lines only the best may be strong.
      const alpha = many ? 0.04 + 0.7 * standing ** 6 : (0.12 + 0.5 * standing ** 2) * Math.max(1, 60 / passing.length);
      withAlpha(context, Math.min(1, alpha), () => this.trace(context, i));
    }
    for (const [i, colour] of [[this.chosen, colours.down], [this.hover, colours.ink]]) {
      if (i === null || this.share(i, last) === null) continue;
      context.strokeStyle = colour;
      context.lineWidth = 2.2;
      this.trace(context, i);
    }
    context.lineWidth = 1;
    this.columns.forEach((_, column) => this.drawAxis(context, column, last, colours));
    this.onCount(passing, this.brushes.size > 0);
  }

  drawAxis(context, column, last, colours) {
    const gap = this.x(1) - this.x(0);
    const { axis } = this.columns[column];
    const x = this.x(column);
    context.strokeStyle = colours.line;
    line(context, x, this.box.top, x, this.box.bottom);
    const brush = this.brushes.get(column);
    if (brush) {
      context.fillStyle = colours.accent;
      withAlpha(context, 0.3, () => context.fillRect(x - 6, this.y(brush[1]), 12, Math.max(2, this.y(brush[0]) - this.y(brush[1]))));
    }
    context.textAlign = 'left';
    for (const { at, text } of axisTicks(axis, 5)) {
      const shown = clip(context, text, column === last ? 28 : gap - 10);
      const left = x + 5;
      withAlpha(context, 0.75, () => {
        context.fillStyle = colours.paper;
        context.fillRect(left - 2, this.y(at) - 7, context.measureText(shown).width + 4, 14);
      });
      context.fillStyle = colours.muted;
      context.fillText(shown, left, this.y(at));
    }
    context.textAlign = column === 0 ? 'left' : column === last ? 'right' : 'center';
    context.fillStyle = colours.ink;
    const shift = column === 0 ? -30 : column === last ? 30 : 0;
    // Neighbouring names take turns in two rows.
    context.fillText(clip(context, axis.name, 1.8 * gap), x + shift, column % 2 ? 22 : 8);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  axisAt(x) {
    return this.columns.findIndex((_, column) => Math.abs(this.x(column) - x) < 14);
  }

  shareAt(y) {
    return Math.max(0, Math.min(1, (this.box.bottom - y) / (this.box.bottom - this.box.top)));
  }

  press(event) {
    if (event.pointerType === 'touch' || !this.box) return;
    const { x, y } = this.at(event);
    const column = this.axisAt(x);
    if (column < 0) return;
    this.drag = { column, from: this.shareAt(y), moved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (!this.box) return;
    const { x, y } = this.at(event);
    if (!this.drag) {
      this.canvas.style.cursor = this.axisAt(x) < 0 ? '' : 'ns-resize';
      this.setHover(this.nearest(x, y));
      return;
    }
    const { column, from } = this.drag;
    const to = this.shareAt(y);
    this.drag.moved ||= Math.abs(to - from) > 0.015;
    if (this.drag.moved) this.brushes.set(column, [Math.min(to, from), Math.max(to, from)]);
    this.chart.redraw();
  }

  release(event) {
    if (!this.box) return;
    const { x, y } = this.at(event);
    // A click on an axis clears its selection, elsewhere it chooses a line.
    if (this.drag && !this.drag.moved && this.brushes.has(this.drag.column)) this.brushes.delete(this.drag.column);
    else if (!this.drag?.moved) this.onChoose(this.nearest(x, y));
    this.drag = null;
    this.chart.redraw();
  }

  control(axis, column) {
    const move = (event) => {
      const moved = { ArrowUp: 0.05, ArrowDown: -0.05 }[event.key];
      if (event.key === 'Escape') this.brushes.delete(column);
      else if (!moved) return;
      else {
        const [low, high] = this.brushes.get(column) ?? (moved > 0 ? [0.7, 0.95] : [0.05, 0.3]);
        const size = Math.min(1, Math.max(0.02, high - low + (event.shiftKey ? moved : 0)));
        const from = Math.max(0, Math.min(1 - size, event.shiftKey ? low : low + moved));
        this.brushes.set(column, [from, from + size]);
      }
      event.preventDefault();
      this.chart.redraw();
    };
    const label = `${axis.name}: arrow keys move the selection, Shift and arrow keys resize it, Escape clears it`;
    return h('button', { type: 'button', class: 'axis-control', 'aria-label': label, onkeydown: move });
  }

  clear() {
    this.brushes.clear();
    this.chart.redraw();
  }

  setHover(i) {
    if (this.hover === i) return;
    this.hover = i;
    this.canvas.title = i === null ? '' : this.title(i);
    this.chart.redraw();
  }

  /** The passing line nearest above or below the pointer. */
  nearest(x, y) {
    const step = this.x(1) - this.x(0);
    const column = Math.max(0, Math.min(this.columns.length - 2, Math.floor((x - this.box.left) / step)));
    const along = (x - this.x(column)) / step;
    let found = null;
    let least = 10;
    for (const i of this.trials) {
      const [a, b] = [this.share(i, column), this.share(i, column + 1)];
      if (a === null || b === null || !this.passes(i)) continue;
      const distance = Math.abs(this.y(a + (b - a) * along) - y);
      if (distance < least) [found, least] = [i, distance];
    }
    return found;
  }
}
