// The strip below the price chart, to navigate a long history.
import { makeCanvas, withAlpha } from './canvas.js';

export const LEAST_BARS = 12; // of which a view may consist

/** The strip below the chart: the whole history with the visible window, which can be dragged and resized. */
export class Overview {
  constructor(canvas, owner) {
    this.owner = owner;
    this.canvas = canvas;
    this.chart = makeCanvas(canvas, (...args) => this.draw(...args));
    this.listen();
  }

  draw(context, width, height, colours) {
    const { whole: bars, from, to } = this.owner;
    if (!bars?.n) return;
    const right = width - (width < 520 ? 54 : 68);
    this.right = right;
    const points = [];
    for (let i = 0; i < bars.n; i++) {
      const x = Math.floor((bars.start[i] / bars.nBars) * right);
      const last = points[points.length - 1];
      if (last && last.x === x) last.y = bars.close[i];
      else points.push({ x, y: bars.close[i] });
    }
    if (this.owner.log) for (const point of points) point.y = Math.log(point.y);
    context.fillStyle = colours.wash;
    context.fillRect(0, 0, right, height);
    const low = points.reduce((a, p) => Math.min(a, p.y), Infinity);
    const high = points.reduce((a, p) => Math.max(a, p.y), -Infinity);
    const y = (price) => height - 5 - ((price - low) / (high - low || 1)) * (height - 10);
    context.beginPath();
    for (const point of points) context.lineTo(point.x, y(point.y));
    context.strokeStyle = colours.muted;
    withAlpha(context, 0.8, () => context.stroke());
    const left = (from / bars.nBars) * right;
    const end = (to / bars.nBars) * right;
    if (end - left > right - 1) return;
    withAlpha(context, 0.72, () => {
      context.fillStyle = colours.paper;
      context.fillRect(0, 0, left, height);
      context.fillRect(end, 0, right - end, height);
    });
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.5, 1, Math.max(3, end - left), height - 2);
    context.lineWidth = 1;
  }

  listen() {
    const { canvas, owner } = this;
    let drag = null;
    const index = (event) => {
      const x = event.clientX - canvas.getBoundingClientRect().left;
      return (x / (this.right || 1)) * owner.bars.nBars;
    };
    canvas.addEventListener('pointerdown', (event) => {
      if (!owner.bars?.n) return;
      owner.run = null;
      canvas.setPointerCapture(event.pointerId);
      const at = index(event);
      const edge = (7 / (this.right || 1)) * owner.bars.nBars;
      const whole = owner.to - owner.from >= owner.bars.nBars;
      if (whole) drag = { kind: 'new', at };
      else if (Math.abs(at - owner.from) < edge) drag = { kind: 'from' };
      else if (Math.abs(at - owner.to) < edge) drag = { kind: 'to' };
      else {
        const half = (owner.to - owner.from) / 2;
        if (at < owner.from || at > owner.to) owner.pan(at - half - owner.from);
        drag = { kind: 'move', offset: at - owner.from };
      }
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!drag) return;
      const at = index(event);
      if (drag.kind === 'move') owner.pan(at - drag.offset - owner.from);
      else if (drag.kind === 'from') owner.setView(Math.min(at, owner.to - LEAST_BARS), owner.to);
      else if (drag.kind === 'to') owner.setView(owner.from, Math.max(at, owner.from + LEAST_BARS));
      else if (Math.abs(at - drag.at) > owner.bars.nBars / 100) {
        owner.setView(Math.min(at, drag.at), Math.max(at, drag.at));
      }
    });
    for (const name of ['pointerup', 'pointercancel']) canvas.addEventListener(name, () => (drag = null));
  }
}
