// A canvas that follows its element's size and the screen's pixel density, plus axis helpers shared by the charts.

/** Colours of the current theme, read from the style sheet. */
function palette() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue('--' + name).trim();
  const names = ['ink', 'muted', 'faint', 'line', 'grid', 'paper', 'wash', 'accent', 'up', 'down', 'hold', 'short'];
  return Object.fromEntries(names.map((name) => [name, read(name)]));
}

const FONT = '11px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Inter, Roboto, "Helvetica Neue", Arial, sans-serif';

const charts = [];

/** Draws `draw(context, width, height, colours)` whenever size, theme or data change; `redraw` asks for it. */
function makeCanvas(canvas, draw) {
  let queued = false;
  const paint = () => {
    queued = false;
    const box = canvas.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) return;
    const ratio = Math.max(1, window.devicePixelRatio || 1);
    const width = Math.round(box.width * ratio);
    const height = Math.round(box.height * ratio);
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, box.width, box.height);
    context.font = FONT;
    context.textBaseline = 'middle';
    context.lineJoin = 'round';
    draw(context, box.width, box.height, palette());
  };
  const chart = {
    paint,
    redraw() {
      if (queued) return;
      queued = true;
      requestAnimationFrame(paint);
    },
  };
  new ResizeObserver(() => chart.redraw()).observe(canvas);
  charts.push(chart);
  return chart;
}

const redrawAll = () => charts.forEach((chart) => chart.redraw());

/** Round step of 1, 2, 2.5 or 5 times a power of ten that cuts `span` into at most `most` parts. */
function niceStep(span, most) {
  const rough = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 2.5, 5, 10]) if (factor * power >= rough * 0.999) return factor * power;
  return 10 * power;
}

/** Round values inside [low, high]. */
function niceTicks(low, high, most) {
  if (!(high > low)) return [];
  const step = niceStep(high - low, most);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) ticks.push(k * step);
  return ticks;
}

/** Round values for a logarithmic axis. */
function logTicks(low, high, most) {
  if (high / low < 3) return niceTicks(low, high, most);
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const factor of [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (value >= low && value <= high) ticks.push(value);
    }
  }
  const keep = Math.ceil(ticks.length / Math.max(2, most));
  return ticks.filter((_, i) => i % keep === 0);
}

const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => minutes * 60_000);
const DAY_STEPS = [1, 2, 4, 7, 14];
const MONTH_STEPS = [1, 2, 3, 6, 12, 24, 60, 120, 240];

/** Round moments in [from, to] at least `gap` ms apart, each with its label; larger units are marked `major`. */
function timeTicks(from, to, gap) {
  const ticks = [];
  const push = (ms, text, major) => {
    if (ms >= from && ms <= to) ticks.push({ ms, text, major });
  };
  const dayText = (d) => `${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]}`;
  const clock = CLOCK_STEPS.find((step) => step >= gap);
  if (clock) {
    for (let ms = Math.ceil(from / clock) * clock; ms <= to; ms += clock) {
      const d = new Date(ms);
      const midnight = ms % DAY === 0;
      push(ms, midnight ? dayText(d) : `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`, midnight);
    }
    return ticks;
  }
  const days = DAY_STEPS.find((step) => step * DAY >= gap);
  const first = new Date(from);
  if (days) {
    for (let month = Date.UTC(first.getUTCFullYear(), first.getUTCMonth(), 1); month <= to; ) {
      const d = new Date(month);
      const nextMonth = Date.UTC(d.getUTCFullYear(), d.getUTCMonth() + 1, 1);
      for (let ms = month; ms < nextMonth && ms <= to; ms += days * DAY) {
        if (ms !== month && nextMonth - ms < 0.75 * days * DAY) break;
        const day = new Date(ms);
        const january = ms === month && d.getUTCMonth() === 0;
        push(ms, january ? String(d.getUTCFullYear()) : ms === month ? MONTHS[d.getUTCMonth()] : dayText(day), ms === month);
      }
      month = nextMonth;
    }
    return ticks;
  }
  const months = MONTH_STEPS.find((step) => step * 30 * DAY >= gap) ?? 600;
  const year = first.getUTCFullYear();
  for (let month = Math.floor((year * 12 + first.getUTCMonth()) / months) * months; ; month += months) {
    const ms = Date.UTC(Math.floor(month / 12), month % 12, 1);
    if (ms > to || ticks.length > 500) break;
    push(ms, month % 12 === 0 ? String(Math.floor(month / 12)) : MONTHS[month % 12], month % 12 === 0);
  }
  return ticks;
}

/** A label on a filled box, for axes under the crosshair. */
function tag(context, text, x, y, fill, ink, align = 'left') {
  const width = context.measureText(text).width + 10;
  const left = align === 'center' ? x - width / 2 : align === 'right' ? x - width : x;
  context.fillStyle = fill;
  context.fillRect(left, y - 9, width, 18);
  context.fillStyle = ink;
  context.textAlign = 'left';
  context.fillText(text, left + 5, y + 0.5);
}

/** Fills with a colour at reduced strength. */
function withAlpha(context, alpha, work) {
  const before = context.globalAlpha;
  context.globalAlpha = before * alpha;
  work();
  context.globalAlpha = before;
}

function line(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

/** A dashed vertical line with a label to its right. */
function drawMark(context, x, top, bottom, label, colours) {
  context.strokeStyle = colours.accent;
  context.setLineDash([5, 4]);
  line(context, x, top, x, bottom);
  context.setLineDash([]);
  context.fillStyle = colours.accent;
  context.textAlign = 'left';
  context.fillText(label, x + 6, top + 10);
}

/** Decimals that write a step between ticks in full. */
function stepDecimals(step) {
  let decimals = 0;
  while (decimals < 10 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6) decimals++;
  return decimals;
}
