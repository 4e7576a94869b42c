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

class Parallel {
  constructor(canvas, onChoose, onCount) {
    this.canvas = canvas;
    this.onChoose = onChoose;
    this.onCount = onCount;
    this.axes = axisOrder.slice(0, MOST_AXES);
    this.trials = goodTrials();
    this.brushes = new Map(); // place of the axis \u2192 [low, high] as shares
    this.hover = null;
    canvas.style.setProperty('--least-width', `${(this.axes.length + 1) * 74}px`);
    this.chart = makeCanvas(canvas, (...args) => this.draw(...args));
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.release(event));
    canvas.addEventListener('pointerleave', () => this.setHover(null));
  }

  columns() {
    return this.axes.length + 1;
  }

  /** Where a trial crosses an axis, as a share from the bottom; null where the parameter is not active. */
  share(i, column) {
    if (column < this.axes.length) {
      const axis = study.axes[this.axes[column]];
      const value = study.values[this.axes[column]][i];
      return value === null ? null : share(axis, value) + (isDiscrete(axis) ? (0.5 / nOptions(axis)) * jitter(i) : 0);
    }
    // A chosen trial may be worse than all that are drawn.
    return Math.max(0, (study.scores[state.objective][i] - this.range.low) / (this.range.high - this.range.low));
  }

  passes(i) {
    for (const [column, [low, high]] of this.brushes) {
      const at = this.share(i, column);
      if (at === null || at < low || at > high) return false;
    }
    return true;
  }

  layout(width, height) {
    const [left, right] = [34, width - 34];
    this.box = { left, right, top: 34, bottom: height - 26 };
    this.x = (column) => left + (column / (this.columns() - 1)) * (right - left);
    this.y = (at) => this.box.bottom - at * (this.box.bottom - this.box.top);
    const own = this.trials.map((i) => study.scores[state.objective][i]);
    this.range = { low: Math.min(...own), high: Math.max(...own) };
    if (this.range.low === this.range.high) this.range.low -= Math.abs(this.range.low) * 0.05 || 1;
  }

  trace(context, i) {
    context.beginPath();
    let pen = false;
    for (let column = 0; column < this.columns(); column++) {
      const at = this.share(i, column);
      if (at === null) pen = false;
      else if (pen) context.lineTo(this.x(column), this.y(at));
      else context.moveTo(this.x(column), this.y(at));
      if (at !== null) pen = true;
    }
    context.stroke();
  }

  draw(context, width, height, colours) {
    this.layout(width, height);
    const passing = [];
    const failing = [];
    for (const i of this.trials) (this.passes(i) ? passing : failing).push(i);
    const order = (i) => (study.scores[state.objective][i] - this.range.low) / (this.range.high - this.range.low);
    context.strokeStyle = colours.line;
    withAlpha(context, 0.25, () => failing.forEach((i) => this.trace(context, i)));
    passing.sort((a, b) => order(a) - order(b));
    for (const i of passing) {
      const rank = order(i);
      context.strokeStyle = rank > 0.5 ? colours.accent : colours.hold;
      context.lineWidth = rank > 0.9 ? 1.6 : 1;
      const strength = 0.12 + 0.5 * rank ** 2;
      withAlpha(context, Math.min(1, strength * Math.max(1, 60 / passing.length)), () => this.trace(context, i));
    }
    for (const [i, colour] of [[state.chosen, colours.down], [this.hover, colours.ink]]) {
      if (i === null || study.scores[state.objective][i] === null) continue;
      context.strokeStyle = colour;
      context.lineWidth = 2.2;
      this.trace(context, i);
    }
    context.lineWidth = 1;
    this.drawAxes(context, colours);
    this.onCount(passing.length, this.brushes.size > 0);
  }

  drawAxes(context, colours) {
    const gap = this.x(1) - this.x(0);
    for (let column = 0; column < this.columns(); column++) {
      const axis = study.axes[this.axes[column]];
      const x = this.x(column);
      context.strokeStyle = colours.line;
      line(context, x, this.box.top, x, this.box.bottom);
      const brush = this.brushes.get(column);
      if (brush) {
        context.fillStyle = colours.accent;
        withAlpha(context, 0.3, () => context.fillRect(x - 6, this.y(brush[1]), 12, this.y(brush[0]) - this.y(brush[1])));
      }
      const ticks = axis
        ? axisTicks(axis, 5)
        : niceTicks(this.range.low, this.range.high, 4).map((value) => ({ at: (value - this.range.low) / (this.range.high - this.range.low), text: tickText(value) }));
      context.textAlign = 'left';
      for (const { at, text } of ticks) {
        const shown = clip(context, text, gap - 10);
        const left = x + 5;
        const size = context.measureText(shown).width;
        withAlpha(context, 0.75, () => {
          context.fillStyle = colours.paper;
          context.fillRect(left - 2, this.y(at) - 7, size + 4, 14);
        });
        context.fillStyle = colours.muted;
        context.fillText(shown, left, this.y(at));
      }
      context.textAlign = column === 0 ? 'left' : column === this.columns() - 1 ? 'right' : 'center';
      context.fillStyle = colours.ink;
      const name = axis ? axis.name : study.objectives[state.objective];
      const shift = column === 0 ? -30 : column === this.columns() - 1 ? 30 : 0;
      // Neighbouring names take turns in two rows.
      context.fillText(clip(context, name, 1.8 * gap), x + shift, column % 2 ? 22 : 8);
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  press(event) {
    if (event.pointerType === 'touch' || !this.box) return;
    const { x, y } = this.at(event);
    for (let column = 0; column < this.columns(); column++) {
      if (Math.abs(this.x(column) - x) < 14) this.drag = { column, from: this.shareAt(y), moved: false };
    }
    if (this.drag) this.canvas.setPointerCapture(event.pointerId);
  }

  shareAt(y) {
    return Math.max(0, Math.min(1, (this.box.bottom - y) / (this.box.bottom - this.box.top)));
  }

  move(event) {
    if (!this.box) return;
    const { x, y } = this.at(event);
    if (this.drag) {
      const to = this.shareAt(y);
      this.drag.moved ||= Math.abs(to - this.drag.from) > 0.015;
      if (this.drag.moved) this.brushes.set(this.drag.column, [Math.min(to, this.drag.from) - 1e-9, Math.max(to, this.drag.from) + 1e-9]);
      this.chart.redraw();
      return;
    }
    this.setHover(this.nearest(x, y));
  }

  release(event) {
    const { x, y } = this.at(event);
    if (this.drag && !this.drag.moved && this.brushes.has(this.drag.column)) this.brushes.delete(this.drag.column);
    else if (!this.drag?.moved) this.onChoose(this.nearest(x, y));
    this.drag = null;
    this.chart.redraw();
  }

  clear() {
    this.brushes.clear();
    this.chart.redraw();
  }

  setHover(i) {
    if (this.hover === i) return;
    this.hover = i;
    this.canvas.title = i === null ? '' : `Trial ${number(study.trials[i], 0)}: ${short(study.scores[state.objective][i])}`;
    this.chart.redraw();
  }

  /** The passing line nearest above or below the pointer. */
  nearest(x, y) {
    const step = this.x(1) - this.x(0);
    const column = Math.max(0, Math.min(this.columns() - 2, Math.floor((x - this.box.left) / step)));
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

/** Text cut to a width. */
function clip(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  while (text.length > 1 && context.measureText(text + '\u2026').width > width) text = text.slice(0, -1);
  return text + '\u2026';
}
