// A canvas that follows its element's size and the screen's pixel density, and what charts draw on it.

/** Colours of the current theme, read from the style sheet. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue('--' + name).trim();
  const names = ['ink', 'muted', 'faint', 'line', 'grid', 'paper', 'wash', 'accent', 'up', 'down', 'hold', 'short'];
  return Object.fromEntries(names.map((name) => [name, read(name)]));
}

const FONT = '11px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Inter, Roboto, "Helvetica Neue", Arial, sans-serif';

const charts = new Set();

/** Draws `draw(context, width, height, colours)` whenever size, theme or data change; `redraw` asks for it. */
export function makeCanvas(canvas, draw) {
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
  const observer = new ResizeObserver(() => chart.redraw());
  chart.close = () => {
    observer.disconnect();
    charts.delete(chart);
  };
  observer.observe(canvas);
  charts.add(chart);
  return chart;
}

export const redrawAll = () => charts.forEach((chart) => chart.redraw());
addEventListener('themechange', redrawAll);
// The print dialogue does not wait for a frame.
addEventListener('beforeprint', () => charts.forEach((chart) => chart.paint()));

/** A label on a filled box, for axes under the crosshair. */
export function tag(context, text, x, y, fill, ink, align = 'left') {
  const width = context.measureText(text).width + 10;
  const left = align === 'center' ? x - width / 2 : align === 'right' ? x - width : x;
  context.fillStyle = fill;
  context.fillRect(left, y - 9, width, 18);
  context.fillStyle = ink;
  context.textAlign = 'left';
  context.fillText(text, left + 5, y + 0.5);
}

/** Fills with a colour at reduced strength. */
export function withAlpha(context, alpha, work) {
  const before = context.globalAlpha;
  context.globalAlpha = before * alpha;
  work();
  context.globalAlpha = before;
}

export function line(context, x1, y1, x2, y2) {
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x2, y2);
  context.stroke();
}

/** A dashed vertical line with a label to its right. */
export function drawMark(context, x, top, bottom, label, colours) {
  context.strokeStyle = colours.accent;
  context.setLineDash([5, 4]);
  line(context, x, top, x, bottom);
  context.setLineDash([]);
  context.fillStyle = colours.accent;
  context.textAlign = 'left';
  context.fillText(label, x + 6, top + 10);
}

/** From pale to strong for worse to better. */
export const ramp = (share) => {
  const isDark = document.documentElement.dataset.theme === 'dark';
  const stops = isDark
    ? [
        [51, 65, 92],
        [59, 111, 191],
        [45, 190, 175],
        [245, 214, 92],
      ]
    : [
        [196, 206, 222],
        [92, 143, 214],
        [16, 138, 138],
        [196, 92, 10],
      ];
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(at));
  const mix = stops[low].map((value, channel) => Math.round(value + (stops[low + 1][channel] - value) * (at - low)));
  return `rgb(${mix.join(',')})`;
};

/** Text cut to a width. */
export function clip(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  while (text.length > 1 && context.measureText(text + '\u2026').width > width) text = text.slice(0, -1);
  return text + '\u2026';
}
