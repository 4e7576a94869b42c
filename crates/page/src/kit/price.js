// The price chart: a line with its range when far, candles when near, trades on top.
// The horizontal axis counts source bars, so nights and weekends leave no holes. Bar i covers [i, i + 1).
//
// Bars are { n, nBars, start, end, time, open, high, low, close, volume, decimals, timeframe, marks }: drawn bar i joins the source bars
// from start[i] to before end[i], of nBars. `lines`, if there are any, are { name, onPrice, values } computed from the bars. A caller with too many bars shows a coarse set and supplies finer ones as the view moves.
import { drawMark, line, makeCanvas, tag, withAlpha } from './canvas.js';
import { h } from './dom.js';
import { compact, date, DAY, logTicks, lowerBound, niceTicks, number, percent, short, stepDecimals, timeTicks, tone } from './format.js';
import { LEAST_BARS, Overview } from './overview.js';

const CANDLE_PIXELS = 2.5; // width per bar from which candles are drawn
const MARKER_PIXELS = 12; // width per visible trade below which only the trades' lines are drawn
const LINE_COLOURS = ['hsl(38 75% 45%)', 'hsl(265 45% 60%)', 'hsl(175 60% 38%)', 'hsl(330 50% 55%)', 'hsl(95 40% 45%)', 'hsl(210 55% 58%)'];
const LOG_RATIO = 4; // highest over lowest price from which the axis starts out logarithmic

let lastScroll = -Infinity;
addEventListener('scroll', () => (lastScroll = performance.now()), { passive: true });

/** The values of all computed lines at a bar; those that are drawn in their colours. */
function computedFields({ lines = [] }, i) {
  const drawn = lines.filter((one) => one.onPrice);
  return lines.map((one) => {
    const at = drawn.indexOf(one);
    const colour = at < 0 ? null : `color:${LINE_COLOURS[at % LINE_COLOURS.length]}`;
    return h('span', { class: 'computed' }, h('i', { style: colour }, one.name), short(one.values[i]));
  });
}

export class PriceChart {
  /** The canvases, the callbacks for a chosen trade and a moved view, and whether the wheel zooms only with the focus or a key held. */
  constructor({ canvas, overview, readout, onSelect, onView = null, needsFocus = false }) {
    Object.assign(this, { canvas, readout, onSelect, onView, needsFocus });
    this.log = false;
    this.hover = null;
    this.selected = null;
    this.chart = makeCanvas(canvas, (...args) => this.draw(...args));
    this.overview = new Overview(overview, this);
    this.listen();
  }

  close() {
    this.chart.close();
    this.overview.chart.close();
  }

  /** Shows a symbol with its trades. */
  show(bars, trades) {
    this.bars = bars;
    this.whole = bars;
    this.trades = trades;
    this.selected = null;
    this.from = 0;
    this.to = Math.max(1, bars.nBars);
    const lowest = bars.low.reduce((a, b) => Math.min(a, b), Infinity);
    const highest = bars.high.reduce((a, b) => Math.max(a, b), -Infinity);
    this.log = lowest > 0 && highest / lowest > LOG_RATIO;
    this.redraw();
  }

  /** Draws the same symbol from other bars, coarser or finer ones. */
  feed(bars) {
    this.bars = bars;
    this.redraw();
  }

  redraw() {
    this.chart.redraw();
    this.overview.chart.redraw();
    this.writeReadout();
  }

  /** Sets the visible range, kept inside the data and not narrower than a few bars. */
  setView(from, to) {
    const total = Math.max(1, this.bars.nBars);
    const span = Math.min(total, Math.max(Math.min(LEAST_BARS, total), to - from));
    const centre = (from + to) / 2;
    this.from = Math.max(0, Math.min(total - span, centre - span / 2));
    this.to = this.from + span;
    this.redraw();
    this.onView?.();
  }

  /** Moves the view there in a quarter of a second, or at once for readers who asked for less motion. */
  glide(from, to) {
    const start = [this.from, this.to];
    const begun = performance.now();
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches || document.hidden;
    const run = (this.run = {});
    const step = (now) => {
      if (this.run !== run) return;
      const t = still ? 1 : Math.min(1, (now - begun) / 260);
      const ease = 1 - (1 - t) ** 3;
      this.setView(start[0] + (from - start[0]) * ease, start[1] + (to - start[1]) * ease);
      if (t < 1) requestAnimationFrame(step);
    };
    if (still) step(begun);
    else requestAnimationFrame(step);
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.run = null;
    const total = this.bars.nBars;
    if (factor > 1 && this.to - this.from >= total) return false;
    this.setView(at - (at - this.from) * factor, at + (this.to - at) * factor);
    return true;
  }

  pan(bars) {
    this.run = null;
    const span = this.to - this.from;
    const from = Math.max(0, Math.min(this.bars.nBars - span, this.from + bars));
    this.setView(from, from + span);
  }

  fit() {
    this.glide(0, this.bars.nBars);
  }

  /** Marks a trade and, if asked, brings it into view with room around it. */
  select(trade, reveal = true) {
    this.selected = trade;
    if (trade && reveal) {
      const held = trade.exit_idx - trade.entry_idx + 1;
      const span = Math.max(80, held * 2.6);
      const centre = (trade.entry_idx + trade.exit_idx + 1) / 2;
      this.glide(centre - span / 2, centre + span / 2);
    } else {
      this.redraw();
    }
  }

  /** Brings the bar at a moment into the middle. */
  goTo(ms) {
    const { time, start, n } = this.bars;
    if (!n) return;
    const centre = start[Math.min(n - 1, lowerBound(time, ms))];
    const span = Math.min(this.to - this.from, Math.max(120, this.bars.nBars / 12));
    this.glide(centre - span / 2, centre + span / 2);
  }

  /** Width of a source bar; always that of the present view, since several inputs may come between two frames. */
  get pixels() {
    return (this.plot.right - this.plot.left) / (this.to - this.from);
  }

  // ---- drawing ----

  layout(width, height) {
    const axis = width < 520 ? 54 : 68;
    const plot = { left: 0, top: 6, right: width - axis, bottom: height - 24 };
    plot.volume = this.bars.volume ? Math.round((plot.bottom - plot.top) * 0.14) : 0;
    plot.base = plot.bottom - plot.volume - (plot.volume ? 8 : 0);
    return plot;
  }

  draw(context, width, height, colours) {
    if (!this.bars) return;
    const plot = (this.plot = this.layout(width, height));
    if (!this.bars.n) {
      context.fillStyle = colours.muted;
      context.textAlign = 'center';
      context.fillText('There are no price bars for this symbol.', width / 2, height / 2);
      return;
    }
    this.scale(plot);
    this.drawAxes(context, plot, width, height, colours);
    context.save();
    context.beginPath();
    context.rect(plot.left, 0, plot.right - plot.left, plot.bottom);
    context.clip();
    this.drawMarks(context, plot, colours);
    if (plot.volume) this.drawVolume(context, plot, colours);
    this.drawSelection(context, plot, colours);
    if (this.pixels >= CANDLE_PIXELS) this.drawCandles(context, colours);
    else this.drawLine(context, plot, colours);
    this.drawComputed(context);
    this.drawTrades(context, colours);
    this.drawLevelNames(context, plot, colours);
    context.restore();
    this.drawCrosshair(context, plot, height, colours);
  }

  /** Works out the visible bars, the price range and the two axis functions. */
  scale(plot) {
    const { start, high, low, n } = this.bars;
    this.first = Math.max(0, lowerBound(start, this.from + 1e-9) - 1);
    this.last = Math.min(n - 1, lowerBound(start, this.to) - 1);
    let least = Infinity;
    let most = -Infinity;
    for (let i = this.first; i <= this.last; i++) {
      if (low[i] < least) least = low[i];
      if (high[i] > most) most = high[i];
    }
    const trade = this.selected;
    if (trade && trade.exit_idx >= this.from && trade.entry_idx <= this.to) {
      // A level far away would flatten the bars; it is then named at the edge instead.
      const room = (most - least) * 0.8;
      for (const level of [trade.stop, trade.target]) {
        if (level !== null && level > least - room && level < most + room) {
          least = Math.min(least, level);
          most = Math.max(most, level);
        }
      }
    }
    if (!(most > least)) {
      const pad = Math.abs(most) * 0.01 || 1;
      least -= pad;
      most += pad;
    }
    const log = this.log && least > 0;
    const f = log ? Math.log : (value) => value;
    const pad = (f(most) - f(least)) * 0.07;
    const bottom = f(least) - pad;
    const top = f(most) + pad;
    const inverse = log ? Math.exp : (value) => value;
    this.range = { least: inverse(bottom), most: inverse(top), log };
    this.x = (index) => plot.left + (index - this.from) * this.pixels;
    this.y = (price) => plot.base - ((f(price) - bottom) / (top - bottom)) * (plot.base - plot.top);
    this.price = (y) => inverse(bottom + ((plot.base - y) / (plot.base - plot.top)) * (top - bottom));
  }

  drawAxes(context, plot, width, height, colours) {
    const { least, most, log } = this.range;
    const rows = Math.max(2, Math.floor((plot.base - plot.top) / 52));
    const ticks = (log ? logTicks : niceTicks)(least, most, rows);
    const decimals = ticks.length > 1 ? stepDecimals(ticks[1] - ticks[0]) : this.bars.decimals;
    context.strokeStyle = colours.grid;
    context.fillStyle = colours.muted;
    context.lineWidth = 1;
    context.textAlign = 'left';
    for (const price of ticks) {
      const y = Math.round(this.y(price)) + 0.5;
      if (y < plot.top + 4) continue;
      line(context, plot.left, y, plot.right, y);
      context.fillText(number(price, decimals), plot.right + 8, y);
    }
    context.textAlign = 'center';
    const { time, start } = this.bars;
    const from = time[this.first];
    const to = time[this.last];
    const room = width < 520 ? 74 : 92;
    const gap = ((to - from || 1) * room) / Math.max(1, plot.right - plot.left);
    let previous = -Infinity;
    for (const tick of timeTicks(from, to, gap)) {
      const i = lowerBound(time, tick.ms);
      const x = Math.round(this.x(start[i])) + 0.5;
      if (x - previous < room * 0.6 || x < 22 || x > plot.right - 18) continue;
      previous = x;
      line(context, x, plot.top, x, plot.bottom);
      context.fillStyle = tick.major ? colours.ink : colours.muted;
      context.fillText(tick.text, x, height - 10);
    }
    context.strokeStyle = colours.line;
    line(context, plot.left, plot.bottom + 0.5, plot.right, plot.bottom + 0.5);
  }

  drawMarks(context, plot, colours) {
    for (const mark of this.bars.marks) {
      const x = Math.round(this.x(this.bars.start[lowerBound(this.bars.time, mark.ms)] ?? this.bars.nBars)) + 0.5;
      drawMark(context, x, plot.top, plot.bottom, mark.label, colours);
    }
  }

  drawVolume(context, plot, colours) {
    const { volume, start, end } = this.bars;
    const width = Math.ceil(plot.right - plot.left);
    const columns = new Float64Array(width + 1);
    let most = 0;
    const near = this.pixels >= CANDLE_PIXELS;
    for (let i = this.first; i <= this.last; i++) {
      if (volume[i] > most) most = volume[i];
      const column = Math.floor(this.x(start[i]));
      if (!near && column >= 0 && column <= width && volume[i] > columns[column]) columns[column] = volume[i];
    }
    if (!(most > 0)) return;
    const scale = plot.volume / most;
    context.fillStyle = colours.faint;
    if (near) {
      for (let i = this.first; i <= this.last; i++) {
        const left = this.x(start[i]);
        const wide = Math.max(1, (end[i] - start[i]) * this.pixels * 0.7);
        context.fillRect(left + wide * 0.21, plot.bottom - volume[i] * scale, wide, volume[i] * scale);
      }
    } else {
      for (let x = 0; x <= width; x++) {
        if (columns[x]) context.fillRect(plot.left + x, plot.bottom - columns[x] * scale, 1, columns[x] * scale);
      }
    }
  }

  drawCandles(context, colours) {
    const { open, high, low, close, start, end } = this.bars;
    context.strokeStyle = colours.ink;
    context.lineWidth = 1;
    for (let i = this.first; i <= this.last; i++) {
      const wide = (end[i] - start[i]) * this.pixels;
      const x = Math.round(this.x((start[i] + end[i]) / 2)) + 0.5;
      const body = Math.max(1, Math.min(15, Math.floor(wide * 0.68)));
      const left = Math.round(x - body / 2 - 0.5) + 0.5;
      const top = Math.round(this.y(Math.max(open[i], close[i]))) + 0.5;
      const tall = Math.max(0, Math.round(this.y(Math.min(open[i], close[i]))) + 0.5 - top);
      context.strokeStyle = colours.muted;
      line(context, x, this.y(high[i]), x, this.y(low[i]));
      if (body < 3) {
        context.fillStyle = close[i] >= open[i] ? colours.muted : colours.ink;
        context.fillRect(left - 0.5, top, body + 1, Math.max(1, tall));
        continue;
      }
      // Rising candles are hollow and falling ones filled, so that colour is left to the trades.
      context.fillStyle = close[i] >= open[i] ? colours.paper : colours.muted;
      context.fillRect(left, top, body, tall);
      context.strokeRect(left, top, body, tall);
    }
  }

  drawLine(context, plot, colours) {
    const { high, low, close, start, end } = this.bars;
    const points = [];
    for (let i = this.first; i <= this.last; i++) {
      const x = Math.floor(this.x((start[i] + end[i]) / 2));
      const last = points[points.length - 1];
      if (last && last.x === x) {
        last.close = close[i];
        if (high[i] > last.high) last.high = high[i];
        if (low[i] < last.low) last.low = low[i];
      } else {
        points.push({ x, high: high[i], low: low[i], close: close[i] });
      }
    }
    context.beginPath();
    for (const point of points) context.lineTo(point.x, this.y(point.high));
    for (const point of points.reverse()) context.lineTo(point.x, this.y(point.low));
    context.closePath();
    context.fillStyle = colours.faint;
    context.fill();
    context.beginPath();
    for (const point of points) context.lineTo(point.x, this.y(point.close));
    context.strokeStyle = colours.muted;
    context.lineWidth = 1.1;
    context.stroke();
    context.lineWidth = 1;
  }

  /** What the strategy computed, where it lies among the prices. */
  drawComputed(context) {
    const { start, end, lines = [] } = this.bars;
    lines.filter((one) => one.onPrice).forEach(({ values }, which) => {
      context.beginPath();
      let open = false;
      for (let i = Math.max(0, this.first - 1); i <= Math.min(this.bars.n - 1, this.last + 1); i++) {
        if (Number.isFinite(values[i])) {
          const x = this.x((start[i] + end[i]) / 2);
          if (open) context.lineTo(x, this.y(values[i]));
          else context.moveTo(x, this.y(values[i]));
        }
        open = Number.isFinite(values[i]);
      }
      context.strokeStyle = LINE_COLOURS[which % LINE_COLOURS.length];
      context.lineWidth = 1.2;
      context.stroke();
    });
    context.lineWidth = 1;
  }

  /** The path of a stop that trails the best price of the bars before. */
  drawTrail(context, trade, colours) {
    if (trade.trail === null || trade.trail === undefined) return;
    const { start, end, high, low, n } = this.bars;
    const long = trade.side > 0;
    let best = trade.entry;
    context.beginPath();
    for (let i = lowerBound(start, trade.entry_idx); i < n && start[i] <= trade.exit_idx; i++) {
      const level = long ? best - trade.trail : best + trade.trail;
      context.lineTo(this.x(start[i]), this.y(level));
      context.lineTo(this.x(end[i]), this.y(level));
      best = long ? Math.max(best, high[i]) : Math.min(best, low[i]);
    }
    context.strokeStyle = colours.down;
    context.stroke();
  }

  visibleTrades() {
    return this.trades.filter((trade) => trade.exit_idx + 1 >= this.from && trade.entry_idx <= this.to);
  }

  drawTrades(context, colours) {
    const visible = this.visibleTrades();
    const markers = visible.length * MARKER_PIXELS <= this.plot.right - this.plot.left;
    const size = this.pixels >= CANDLE_PIXELS ? 5.5 : 4;
    context.lineWidth = markers ? 1.4 : 1.8;
    for (const trade of visible) {
      const dim = this.selected && trade !== this.selected;
      withAlpha(context, dim ? 0.35 : 0.9, () => {
        context.strokeStyle = trade.pnl >= 0 ? colours.up : colours.down;
        const left = this.x(trade.entry_idx + 0.5);
        const right = this.x(trade.exit_idx + 0.5);
        line(context, left, this.y(trade.entry), right, this.y(trade.exit));
        if (!markers && right - left < 2) {
          context.fillStyle = context.strokeStyle;
          context.fillRect(left - 1.5, this.y(trade.exit) - 1.5, 3, 3);
        }
      });
    }
    if (markers && this.pixels >= CANDLE_PIXELS) visible.forEach((trade) => trade === this.selected || this.drawLevels(context, trade, colours));
    for (const trade of markers ? visible : visible.filter((trade) => trade === this.selected)) {
      const dim = this.selected && trade !== this.selected;
      withAlpha(context, dim ? 0.4 : 1, () => this.drawMarkers(context, trade, size, colours));
    }
    context.lineWidth = 1;
  }

  /** Stop and target of a trade that is not chosen. */
  drawLevels(context, trade, colours) {
    const [left, right] = [this.x(trade.entry_idx), this.x(trade.exit_idx + 1)];
    context.setLineDash([4, 3]);
    for (const [level, colour] of [[trade.stop, colours.down], [trade.target, colours.up]]) {
      context.strokeStyle = colour;
      if (level !== null) withAlpha(context, 0.6, () => line(context, left, this.y(level), right, this.y(level)));
    }
    withAlpha(context, 0.6, () => this.drawTrail(context, trade, colours));
    context.setLineDash([]);
  }

  /** Entry: a triangle in the direction of the trade, its tip at the fill. Exit: a dot in the colour of the result. */
  drawMarkers(context, trade, size, colours) {
    const x = this.x(trade.entry_idx + 0.5);
    const y = this.y(trade.entry);
    const reach = size * 1.7 * trade.side;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x - size, y + reach);
    context.lineTo(x + size, y + reach);
    context.closePath();
    context.fillStyle = trade.side > 0 ? colours.accent : colours.short;
    context.strokeStyle = colours.paper;
    context.lineWidth = 1;
    context.fill();
    context.stroke();
    context.beginPath();
    context.arc(this.x(trade.exit_idx + 0.5), this.y(trade.exit), size * 0.72, 0, 2 * Math.PI);
    context.fillStyle = trade.pnl >= 0 ? colours.up : colours.down;
    context.fill();
    context.stroke();
  }

  /** The chosen trade's span with its stop and target. */
  drawSelection(context, plot, colours) {
    const trade = this.selected;
    if (!trade) return;
    const left = this.x(trade.entry_idx);
    const right = Math.max(left + 2, this.x(trade.exit_idx + 1));
    withAlpha(context, 0.55, () => {
      context.fillStyle = colours.grid;
      context.fillRect(left, plot.top, right - left, plot.base - plot.top);
    });
    const entry = this.y(trade.entry);
    for (const { y, colour } of this.levels(colours)) {
      withAlpha(context, 0.12, () => {
        context.fillStyle = colour;
        context.fillRect(left, Math.min(entry, y), right - left, Math.abs(y - entry));
      });
      context.strokeStyle = colour;
      context.setLineDash([4, 3]);
      line(context, left, y, right, y);
      context.setLineDash([]);
    }
    context.setLineDash([4, 3]);
    this.drawTrail(context, trade, colours);
    context.setLineDash([]);
  }

  /** Stop and target of the chosen trade, those outside the price range held at its edge. */
  levels(colours) {
    const trade = this.selected;
    const all = trade ? [[trade.stop, 'Stop', colours.down], [trade.target, 'Target', colours.up]] : [];
    return all.filter(([level]) => level !== null).map(([level, name, colour]) => ({
      y: Math.max(this.plot.top - 1, Math.min(this.plot.base + 1, this.y(level))),
      text: `${name} ${number(level, levelDecimals(level, this.bars.decimals))}`,
      colour,
    }));
  }

  drawLevelNames(context, plot, colours) {
    for (const { y, text, colour } of this.levels(colours)) {
      const left = Math.min(this.x(this.selected.exit_idx + 1) + 4, plot.right - context.measureText(text).width - 12);
      tag(context, text, left, Math.max(plot.top + 9, Math.min(plot.base - 9, y)), colours.paper, colour);
    }
  }

  drawCrosshair(context, plot, height, colours) {
    if (!this.hover) return;
    const { x, y } = this.hover;
    if (x > plot.right || y > plot.bottom) return;
    const i = this.barAt(x);
    const centre = Math.round(this.x((this.bars.start[i] + this.bars.end[i]) / 2)) + 0.5;
    context.strokeStyle = colours.muted;
    context.setLineDash([2, 3]);
    line(context, centre, plot.top, centre, plot.bottom);
    line(context, plot.left, Math.round(y) + 0.5, plot.right, Math.round(y) + 0.5);
    context.setLineDash([]);
    if (y <= plot.base) {
      tag(context, number(this.price(y), Math.min(this.bars.decimals, 6)), plot.right + 3, y, colours.ink, colours.paper);
    }
    const text = date(this.bars.time[i], this.bars.timeframe < DAY);
    tag(context, text, Math.max(58, Math.min(plot.right - 58, centre)), height - 10, colours.ink, colours.paper, 'center');
  }

  /** Number of the drawn bar under a horizontal position. */
  barAt(x) {
    const index = this.from + (x - this.plot.left) / this.pixels;
    return Math.max(0, Math.min(this.bars.n - 1, lowerBound(this.bars.start, index + 1e-9) - 1));
  }

  writeReadout() {
    if (!this.bars || !this.bars.n) {
      this.readout.textContent = '';
      return;
    }
    const bars = this.bars;
    const i = this.hover && this.plot && this.hover.x <= this.plot.right
      ? this.barAt(this.hover.x)
      : Math.max(0, Math.min(bars.n - 1, lowerBound(bars.start, this.to) - 1));
    const field = (name, value) => h('span', {}, h('i', {}, name), value);
    const price = (column) => number(column[i], bars.decimals);
    const merged = bars.end[i] - bars.start[i];
    const trade = this.hover ? this.trades.find((one) => one.entry_idx < bars.end[i] && one.exit_idx >= bars.start[i]) : null;
    this.readout.replaceChildren(
      h('b', {}, date(bars.time[i], bars.timeframe < DAY)),
      field('O', price(bars.open)),
      field('H', price(bars.high)),
      field('L', price(bars.low)),
      field('C', price(bars.close)),
      ...(bars.volume ? [field('Vol', compact(bars.volume[i]))] : []),
      ...computedFields(bars, i),
      ...(merged > 1 ? [field('', `${merged} bars in one`)] : []),
      ...(trade ? [field(trade.side > 0 ? 'Long' : 'Short', h('span', { class: tone(trade.ret) }, percent(trade.ret, 2, true))), field('closed by', trade.reason)] : []),
    );
  }

  // ---- input ----

  /** The trade whose line or markers lie under a point, if any. */
  tradeAt(x, y) {
    let best = null;
    let nearest = 12;
    for (const trade of this.visibleTrades()) {
      const distance = distanceToSegment(
        x, y,
        this.x(trade.entry_idx + 0.5), this.y(trade.entry),
        this.x(trade.exit_idx + 0.5), this.y(trade.exit),
      );
      if (distance < nearest) {
        nearest = distance;
        best = trade;
      }
    }
    return best;
  }

  listen() {
    const canvas = this.canvas;
    const pointers = new Map();
    let moved = 0;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, at(event));
      moved = 0;
    });
    canvas.addEventListener('pointermove', (event) => {
      const now = at(event);
      const before = pointers.get(event.pointerId);
      if (!this.bars?.n || !this.plot) return;
      if (before && pointers.size === 1) {
        moved += Math.abs(now.x - before.x);
        if (moved > 3) {
          canvas.classList.add('dragging');
          this.pan(-(now.x - before.x) / this.pixels);
        }
      } else if (before && pointers.size === 2) {
        moved = 99;
        const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
        const spread = Math.abs(before.x - other.x) / Math.max(8, Math.abs(now.x - other.x));
        this.zoom(spread, this.from + (other.x - this.plot.left) / this.pixels);
      }
      if (before) pointers.set(event.pointerId, now);
      this.hover = now;
      canvas.classList.toggle('over-trade', pointers.size === 0 && this.tradeAt(now.x, now.y) !== null);
      this.chart.redraw();
      this.writeReadout();
    });
    const lift = (event) => {
      const down = pointers.delete(event.pointerId);
      canvas.classList.remove('dragging');
      if (event.type === 'pointerup' && down && moved <= 3 && this.bars?.n && this.plot) {
        const { x, y } = at(event);
        this.onSelect(this.tradeAt(x, y), false);
      }
    };
    canvas.addEventListener('pointerup', lift);
    canvas.addEventListener('pointercancel', lift);
    canvas.addEventListener('pointerleave', () => {
      this.hover = null;
      this.redraw();
    });
    canvas.addEventListener('dblclick', () => this.fit());
    this.listenWheel();
    canvas.addEventListener('keydown', (event) => this.key(event));
  }

  /** A wheel gesture that began on the page goes on scrolling it; one that begins on the chart zooms. */
  listenWheel() {
    this.canvas.addEventListener('wheel', (event) => {
      if (!this.bars?.n || !this.plot || performance.now() - lastScroll < 250) return;
      const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      const isMeant = isSideways || event.ctrlKey || event.metaKey || event.shiftKey || document.activeElement === this.canvas;
      if (this.needsFocus && !isMeant) return;
      const x = event.clientX - this.canvas.getBoundingClientRect().left;
      if (isSideways) {
        event.preventDefault();
        this.pan((event.deltaX / this.pixels) * 0.8);
        return;
      }
      const notch = event.deltaMode === 1 ? event.deltaY * 30 : event.deltaY;
      const at = this.from + (x - this.plot.left) / this.pixels;
      if (this.zoom(Math.exp(Math.max(-120, Math.min(120, notch)) * 0.0022), at)) event.preventDefault();
    }, { passive: false });
  }

  key(event) {
    if (!this.bars?.n || event.ctrlKey || event.metaKey || event.altKey) return;
    const span = this.to - this.from;
    const actions = {
      ArrowLeft: () => this.pan(-span * (event.shiftKey ? 0.5 : 0.1)),
      ArrowRight: () => this.pan(span * (event.shiftKey ? 0.5 : 0.1)),
      '+': () => this.zoom(0.7),
      '=': () => this.zoom(0.7),
      '-': () => this.zoom(1 / 0.7),
      Home: () => this.pan(-this.bars.nBars),
      End: () => this.pan(this.bars.nBars),
      0: () => this.fit(),
      n: () => this.step(1),
      p: () => this.step(-1),
      Escape: () => this.onSelect(null, false),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  /** Goes to the next or previous trade, or to the first one in view. */
  step(direction) {
    if (!this.trades.length) return;
    const at = this.trades.indexOf(this.selected);
    const inView = this.trades.findIndex((trade) => trade.entry_idx >= this.from);
    const next = at < 0 ? Math.max(0, inView) : at + direction;
    this.onSelect(this.trades[Math.max(0, Math.min(this.trades.length - 1, next))], true);
  }
}

/** Decimals for a computed level: one more than the quotes have. */
const levelDecimals = (level, quoted) => (Number.isInteger(level) ? quoted : Math.min(10, quoted + 1));

function distanceToSegment(px, py, x1, y1, x2, y2) {
  const dx = x2 - x1;
  const dy = y2 - y1;
  const length = dx * dx + dy * dy;
  const t = length ? Math.max(0, Math.min(1, ((px - x1) * dx + (py - y1) * dy) / length)) : 0;
  return Math.hypot(px - x1 - t * dx, py - y1 - t * dy);
}
