// Clouds of trials: over time, against each parameter, and one objective against another.

/** The frame of a chart with a vertical axis of objective values; returns the places. */
function frame(context, width, height, colours, range, bottom = 24) {
  const labels = niceTicks(range.low, range.high, Math.max(4, Math.floor(height / 60)));
  const texts = labels.map(tickLabel);
  const left = Math.ceil(Math.max(...texts.map((text) => context.measureText(text).width), 12)) + 10;
  const box = { left, right: width - 8, top: 8, bottom: height - bottom };
  const y = (value) => {
    const at = (value - range.low) / (range.high - range.low);
    return box.bottom - Math.max(0, Math.min(1, at)) * (box.bottom - box.top);
  };
  context.textAlign = 'right';
  labels.forEach((value, i) => {
    context.strokeStyle = colours.grid;
    line(context, box.left, y(value), box.right, y(value));
    context.fillStyle = colours.muted;
    context.fillText(texts[i], box.left - 8, y(value));
  });
  context.strokeStyle = colours.line;
  line(context, box.left, box.bottom, box.right, box.bottom);
  return { box, y };
}

/** Draws labels under a chart, leaving out those that would touch. */
function bottomTicks(context, colours, box, ticks) {
  context.fillStyle = colours.muted;
  context.textAlign = 'center';
  let last = -Infinity;
  for (const { at, text } of ticks) {
    const half = context.measureText(text).width / 2;
    const x = Math.max(box.left + half, Math.min(box.right - half, box.left + at * (box.right - box.left)));
    if (x - half < last + 8) continue;
    context.fillText(text, x, box.bottom + 13);
    last = x + half;
  }
}

function dot(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

/** Draws all trials that `place` puts somewhere: the sample faint, the best strong, the chosen one ringed. */
function cloud(context, colours, place, radius) {
  const draw = (from, to, fill, alpha, size) => {
    context.fillStyle = fill;
    withAlpha(context, alpha, () => {
      for (let i = to - 1; i >= from; i--) {
        const spot = place(i);
        if (spot) dot(context, spot.x, spot.y, size);
      }
    });
  };
  const all = study.trials.length;
  draw(study.n_best, all, colours.hold, all > 2000 ? 0.4 : 0.6, radius);
  draw(0, study.n_best, colours.accent, study.n_best < 60 ? 1 : 0.75, radius + (study.n_best < 60 ? 1.3 : 0.3));
  const chosen = state.chosen === null ? null : place(state.chosen);
  if (chosen) {
    context.fillStyle = colours.down;
    dot(context, chosen.x, chosen.y, 4.5);
    context.strokeStyle = colours.paper;
    context.lineWidth = 1.5;
    context.stroke();
    context.lineWidth = 1;
  }
}

/** A canvas of dots, of which a click chooses the nearest. */
class Cloud {
  constructor(canvas, draw, onChoose, onHover) {
    this.canvas = canvas;
    this.place = () => null;
    this.chart = makeCanvas(canvas, (...args) => {
      this.place = draw(...args) ?? (() => null);
    });
    canvas.addEventListener('click', (event) => onChoose(this.nearest(event)));
    if (onHover) {
      canvas.addEventListener('pointermove', (event) => onHover(this.nearest(event)));
      canvas.addEventListener('pointerleave', () => onHover(null));
    }
  }

  /** The trial nearest to the pointer, if one is near. */
  nearest(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let found = null;
    let least = 18 * 18;
    for (let i = 0; i < study.trials.length; i++) {
      const spot = this.place(i);
      if (!spot) continue;
      const distance = (spot.x - x) ** 2 + (spot.y - y) ** 2;
      if (distance < least) [found, least] = [i, distance];
    }
    return found;
  }
}

function drawHistory(context, width, height, colours) {
  const objective = state.objective;
  const { box, y } = frame(context, width, height, colours, scoreRange(objective));
  const last = Math.max(1, study.n_trials - 1);
  const x = (trial) => box.left + (trial / last) * (box.right - box.left);
  bottomTicks(context, colours, box, niceTicks(0, last, Math.max(2, Math.floor(width / 110)))
    .filter(Number.isInteger).map((trial) => ({ at: trial / last, text: number(trial, 0) })));
  const scores = study.scores[objective];
  const place = (i) => (scores[i] === null ? null : { x: x(study.trials[i]), y: y(scores[i]) });
  cloud(context, colours, place, 1.5);
  const steps = study.improvements[objective];
  if (steps.length) {
    context.beginPath();
    steps.forEach(([trial, best], i) => {
      if (i) context.lineTo(x(trial), y(steps[i - 1][1]));
      else context.moveTo(x(trial), y(best));
      context.lineTo(x(trial), y(best));
    });
    context.lineTo(x(last), y(steps[steps.length - 1][1]));
    context.strokeStyle = colours.accent;
    context.lineWidth = 2;
    context.stroke();
    context.lineWidth = 1;
  }
  return place;
}

function drawSlice(axisIdx) {
  const axis = study.axes[axisIdx];
  const values = study.values[axisIdx];
  return (context, width, height, colours) => {
    const { box, y } = frame(context, width, height, colours, scoreRange(state.objective));
    bottomTicks(context, colours, box, axisTicks(axis, Math.max(2, Math.floor(width / 60))));
    const spread = isDiscrete(axis) ? 0.6 / axis.options.length : 0;
    const inset = isDiscrete(axis) ? 0 : 4;
    const scores = study.scores[state.objective];
    const spot = (i) => {
      if (scores[i] === null || values[i] === null) return null;
      const at = place(axis, values[i]) + spread * jitter(study.trials[i]);
      return { x: box.left + inset + at * (box.right - box.left - 2 * inset), y: y(scores[i]) };
    };
    cloud(context, colours, spot, 1.4);
    return spot;
  };
}

/** The first objective across and the shown one up; the second one up while the first is shown. */
function drawTradeoff(context, width, height, colours) {
  const up = state.objective || 1;
  const across = 0;
  const { box, y } = frame(context, width, height, colours, scoreRange(up), 42);
  const range = scoreRange(across);
  const x = (value) => box.left + Math.max(0, Math.min(1, (value - range.low) / (range.high - range.low))) * (box.right - box.left);
  const ticks = niceTicks(range.low, range.high, Math.max(2, Math.floor(width / 90)));
  bottomTicks(context, colours, box, ticks.map((value) => ({ at: (value - range.low) / (range.high - range.low), text: tickLabel(value) })));
  context.textAlign = 'right';
  context.fillText(study.objectives[across] + ' \u2192', box.right, box.bottom + 31);
  context.textAlign = 'left';
  context.fillText('\u2191 ' + study.objectives[up], box.left + 6, box.top + 4);
  const place = (i) => (study.scores[up][i] === null ? null : { x: x(study.scores[across][i]), y: y(study.scores[up][i]) });
  cloud(context, colours, place, 1.6);
  return place;
}
