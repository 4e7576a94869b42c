// Equity beside the benchmark, drawdown, and the rolling Sharpe ratio, on one time axis.

const ROLLING_DAYS = 90;

/** Prepends the starting value one day before the first, and turns equity into growth and drawdown. */
function growth(start, days, values) {
  if (!days.length) return null;
  const n = days.length + 1;
  const out = { ms: new Float64Array(n), equity: new Float64Array(n), grown: new Float64Array(n), under: new Float64Array(n) };
  let peak = start;
  for (let i = 0; i < n; i++) {
    const value = i ? values[i - 1] : start;
    out.ms[i] = i ? days[i - 1] : days[0] - DAY;
    out.equity[i] = value;
    out.grown[i] = change(start, value);
    peak = Math.max(peak, value);
    out.under[i] = change(peak, value);
  }
  return out;
}

/** Sharpe ratio of the last ROLLING_DAYS daily changes, from the first day that has so many. */
function rollingSharpe(line, yearDays) {
  const n = line.ms.length;
  if (!(yearDays > 0) || n < ROLLING_DAYS * 2) return null;
  const steps = new Float64Array(n);
  for (let i = 1; i < n; i++) steps[i] = change(line.equity[i - 1], line.equity[i]);
  const out = new Float64Array(n).fill(NaN);
  for (let i = ROLLING_DAYS; i < n; i++) {
    const window = steps.subarray(i - ROLLING_DAYS + 1, i + 1);
    const centre = mean([...window]);
    let squares = 0;
    for (const step of window) squares += (step - centre) ** 2;
    const deviation = Math.sqrt(squares / (ROLLING_DAYS - 1));
    if (deviation > 0) out[i] = (centre / deviation) * Math.sqrt(yearDays);
  }
  return out.some(Number.isFinite) ? out : null;
}

/** The deepest separate falls from a peak, with their dates; `back` is null while still under water. */
function worstDrawdowns(line, most) {
  const falls = [];
  let fall = null;
  let peak = 0;
  for (let i = 0; i < line.ms.length; i++) {
    if (line.under[i] < 0) {
      if (!fall) falls.push((fall = { peak: line.ms[peak], low: line.ms[i], depth: 0, back: null }));
      if (line.under[i] < fall.depth) Object.assign(fall, { depth: line.under[i], low: line.ms[i] });
    } else {
      if (fall) fall.back = line.ms[i];
      fall = null;
      peak = i;
    }
  }
  return falls.sort((a, b) => a.depth - b.depth).slice(0, most);
}

class CurveChart {
  constructor({ canvas, readout, onPick }) {
    this.canvas = canvas;
    this.readout = readout;
    this.hover = null;
    this.log = false;
    this.chart = makeCanvas(canvas, (...args) => this.draw(...args));
    const follow = (event) => {
      this.hover = event.clientX - canvas.getBoundingClientRect().left;
      this.chart.redraw();
      this.write();
    };
    canvas.addEventListener('pointermove', follow);
    canvas.addEventListener('pointerdown', follow);
    canvas.addEventListener('pointerleave', () => {
      this.hover = null;
      this.chart.redraw();
      this.write();
    });
    canvas.addEventListener('click', () => {
      const i = this.pointAt();
      if (i !== null) onPick(this.own.ms[i]);
    });
  }

  show(own, hold, marks, yearDays) {
    Object.assign(this, { own, hold, marks, rolling: own ? rollingSharpe(own, yearDays) : null });
    this.canvas.classList.toggle('three', this.rolling !== null);
    this.chart.redraw();
    this.write();
  }

  draw(context, width, height, colours) {
    if (!this.own) return;
    const axis = width < 520 ? 54 : 68;
    const right = (this.right = width - axis);
    const bottom = height - 24;
    const room = bottom - 4;
    const gap = 26;
    const shares = this.rolling ? [0.56, 0.24, 0.2] : [0.7, 0.3];
    const free = room - gap * (shares.length - 1);
    const panes = [];
    let top = 4;
    for (const share of shares) {
      panes.push({ top, bottom: top + free * share });
      top += free * share + gap;
    }
    const first = this.own.ms[0];
    const last = this.own.ms[this.own.ms.length - 1];
    this.x = (ms) => ((ms - first) / (last - first || 1)) * right;
    this.time = (x) => first + (x / right) * (last - first);
    this.drawTime(context, first, last, right, bottom, height, width, colours);
    for (const mark of this.marks) {
      if (mark.ms > first && mark.ms < last) {
        drawMark(context, Math.round(this.x(mark.ms)) + 0.5, 4, bottom, mark.label, colours);
      }
    }
    this.drawEquity(context, panes[0], right, colours);
    this.drawUnder(context, panes[1], right, colours);
    if (this.rolling) this.drawRolling(context, panes[2], right, colours);
    const i = this.pointAt();
    if (i !== null) {
      const x = Math.round(this.x(this.own.ms[i])) + 0.5;
      context.strokeStyle = colours.muted;
      context.setLineDash([2, 3]);
      line(context, x, 4, x, bottom);
      context.setLineDash([]);
      tag(context, date(this.own.ms[i]), Math.max(38, Math.min(right - 38, x)), height - 10, colours.ink, colours.paper, 'center');
    }
  }

  drawTime(context, first, last, right, bottom, height, width, colours) {
    const room = width < 520 ? 64 : 84;
    context.textAlign = 'center';
    context.strokeStyle = colours.grid;
    for (const tick of timeTicks(first, last, ((last - first) * room) / right)) {
      const x = Math.round(this.x(tick.ms)) + 0.5;
      if (x < 16 || x > right - 14) continue;
      line(context, x, 4, x, bottom);
      context.fillStyle = tick.major ? colours.ink : colours.muted;
      context.fillText(tick.text, x, height - 10);
    }
  }

  /** Horizontal lines with labels; returns the vertical axis of the pane. */
  pane(context, { top, bottom }, least, most, right, colours, text, name, rows) {
    if (!(most > least)) [least, most] = [least - 0.01, most + 0.01];
    const pad = (most - least) * 0.06;
    const low = least === 0 ? 0 : least - pad;
    const high = most === 0 ? 0 : most + pad;
    const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
    context.textAlign = 'left';
    const ticks = niceTicks(low, high, rows ?? Math.max(2, Math.floor((bottom - top) / 44)));
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : high - low;
    for (const value of ticks) {
      const at = Math.round(y(value)) + 0.5;
      context.strokeStyle = Math.abs(value) < step / 1e6 ? colours.line : colours.grid;
      line(context, 0, at, right, at);
      context.fillStyle = colours.muted;
      context.fillText(text(value, step), right + 8, at);
    }
    context.fillStyle = colours.muted;
    context.fillText(name, 2, top - (name && top > 10 ? 11 : -10));
    return y;
  }

  /** The same for growth on a logarithmic axis, from one value of equity to another. */
  logPane(context, { top, bottom }, least, most, right, colours) {
    const pad = (Math.log(most) - Math.log(least)) * 0.06;
    const [low, high] = [Math.log(least) - pad, Math.log(most) + pad];
    const y = (grown) => bottom - ((Math.log(Math.max(1e-12, 1 + grown)) - low) / (high - low)) * (bottom - top);
    context.textAlign = 'left';
    for (const value of logTicks(Math.exp(low), Math.exp(high), Math.max(2, Math.floor((bottom - top) / 44)))) {
      const at = Math.round(y(value - 1)) + 0.5;
      context.strokeStyle = Math.abs(value - 1) < 1e-9 ? colours.line : colours.grid;
      line(context, 0, at, right, at);
      context.fillStyle = colours.muted;
      context.fillText(percent(value - 1, value < 2 ? 1 : 0, true), right + 8, at);
    }
    return y;
  }

  trace(context, ms, values, y, colour, width) {
    context.beginPath();
    let open = false;
    for (let i = 0; i < ms.length; i++) {
      if (Number.isNaN(values[i])) {
        open = false;
        continue;
      }
      if (open) context.lineTo(this.x(ms[i]), y(values[i]));
      else context.moveTo(this.x(ms[i]), y(values[i]));
      open = true;
    }
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
    context.lineWidth = 1;
  }

  drawEquity(context, pane, right, colours) {
    const { own, hold } = this;
    const all = [...own.grown, ...(hold ? hold.grown : [])];
    const least = all.reduce((a, b) => Math.min(a, b), 0);
    const most = all.reduce((a, b) => Math.max(a, b), 0);
    const isLog = this.log && !report.additive && least > -1;
    const y = isLog
      ? this.logPane(context, pane, 1 + least, 1 + (most || 1e-9), right, colours)
      : this.pane(context, pane, least || -1e-9, most || 1e-9, right, colours, axisText, '');
    const ends = [];
    if (hold) {
      this.trace(context, hold.ms, hold.grown, y, colours.hold, 1.2);
      ends.push({ at: y(hold.grown[hold.grown.length - 1]), value: hold.grown[hold.grown.length - 1], colour: colours.hold });
    }
    withAlpha(context, 0.07, () => {
      context.beginPath();
      context.moveTo(this.x(own.ms[0]), y(0));
      for (let i = 0; i < own.ms.length; i++) context.lineTo(this.x(own.ms[i]), y(own.grown[i]));
      context.lineTo(this.x(own.ms[own.ms.length - 1]), y(0));
      context.fillStyle = colours.accent;
      context.fill();
    });
    this.trace(context, own.ms, own.grown, y, colours.accent, 1.8);
    const final = own.grown[own.grown.length - 1];
    ends.push({ at: y(final), value: final, colour: colours.accent });
    if (ends.length === 2 && Math.abs(ends[0].at - ends[1].at) < 18) {
      const centre = (ends[0].at + ends[1].at) / 2;
      const above = ends[0].at <= ends[1].at ? 0 : 1;
      ends[above].at = centre - 9;
      ends[1 - above].at = centre + 9;
    }
    for (const end of ends) {
      context.clearRect(right + 2, end.at - 11, 80, 22);
      tag(context, changeText(end.value, Math.abs(end.value) >= 1 ? 0 : 1), right + 3, end.at, end.colour, colours.paper);
    }
  }

  drawUnder(context, pane, right, colours) {
    const { own, hold } = this;
    const least = [...own.under, ...(hold ? hold.under : [])].reduce((a, b) => Math.min(a, b), 0);
    const y = this.pane(context, pane, least || -0.01, 0, right, colours, axisText, 'Drawdown');
    context.beginPath();
    context.moveTo(this.x(own.ms[0]), y(0));
    for (let i = 0; i < own.ms.length; i++) context.lineTo(this.x(own.ms[i]), y(own.under[i]));
    context.lineTo(this.x(own.ms[own.ms.length - 1]), y(0));
    context.fillStyle = colours.down;
    withAlpha(context, 0.22, () => context.fill());
    if (hold) this.trace(context, hold.ms, hold.under, y, colours.hold, 1);
    this.trace(context, own.ms, own.under, y, colours.down, 1.2);
  }

  drawRolling(context, pane, right, colours) {
    let least = 0;
    let most = 0;
    for (const value of this.rolling) {
      if (value < least) least = value;
      if (value > most) most = value;
    }
    const name = `Sharpe ratio, rolling ${ROLLING_DAYS} days`;
    const y = this.pane(context, pane, least, most, right, colours, (v) => number(v, 1), name, 3);
    this.trace(context, this.own.ms, this.rolling, y, colours.ink, 1.1);
  }

  pointAt() {
    if (this.hover === null || !this.own || !this.time || this.hover > this.right) return null;
    const ms = this.time(this.hover);
    const i = lowerBound(this.own.ms, ms);
    const before = Math.max(0, i - 1);
    const nearest = i < this.own.ms.length && this.own.ms[i] - ms < ms - this.own.ms[before] ? i : before;
    return nearest;
  }

  write() {
    if (!this.own) {
      this.readout.replaceChildren();
      return;
    }
    const i = this.pointAt() ?? this.own.ms.length - 1;
    const ms = this.own.ms[i];
    const swatch = (kind, name, value) => h('span', { class: 'key ' + kind }, h('i', {}, name), value);
    const parts = [h('b', {}, date(ms)), swatch('own', 'Strategy', changeText(this.own.grown[i]))];
    if (this.hold) {
      const j = Math.min(this.hold.ms.length - 1, lowerBound(this.hold.ms, ms));
      parts.push(swatch('hold', report.benchmark, changeText(this.hold.grown[j])));
    }
    parts.push(swatch('under', 'Drawdown', changeText(this.own.under[i])));
    if (this.rolling && !Number.isNaN(this.rolling[i])) parts.push(swatch('', 'Sharpe', number(this.rolling[i])));
    this.readout.replaceChildren(...parts);
  }
}

/** Label of a growth axis with just the decimals its step needs. */
function axisText(value, step) {
  const decimals = Math.min(8, stepDecimals(report.additive ? step : step * 100));
  return report.additive ? number(value, decimals, true) : percent(value, decimals, true);
}
