// Two parameters against the objective, and in sample against out of sample.

const heat = study.axes.length > 1 ? new HeatMap(byId('heat-canvas'), showCell) : null;
const heatAxes = { across: axisOrder[0], up: axisOrder[1] };

function showHeat() {
  setShown('heat', heat !== null && study.n_valid > 0);
  if (!heat) return;
  for (const side of ['across', 'up']) {
    const select = byId(`heat-${side}`);
    select.replaceChildren(...axisOrder.map((at) => h('option', { value: at }, study.axes[at].name)));
    select.value = String(heatAxes[side]);
    select.addEventListener('change', () => {
      heatAxes[side] = Number(select.value);
      updateHeat();
    });
  }
  updateHeat();
}

function updateHeat() {
  if (!heat) return;
  const side = (at) => ({ axis: study.axes[at], values: study.values[at] });
  heat.show({ across: side(heatAxes.across), up: side(heatAxes.up), scores: study.scores[state.objective], winner: study.n_best ? 0 : null });
  showCell(null);
}

function showCell(cell) {
  const names = [heatAxes.across, heatAxes.up].map((at) => study.axes[at].name);
  byId('heat-readout').textContent = cell
    ? `${names[0]} about ${cell.x}, ${names[1]} about ${cell.y}: ${count(cell.n, 'trial')}, median ${short(cell.median)}, best ${short(cell.best)}`
    : `${names[0]} across, ${names[1]} up`;
}

/** The middle of the trials around the winner, as the verdict found it. */
function plateauText() {
  const around = study.holding?.winners?.[0]?.neighbors;
  if (!around || around.kept === null || around.kept === undefined) return '';
  const share = percent(around.kept, 0);
  return around.kept >= 0.5
    ? ` The best lies on a plateau: the median of ${around.n} points around it keeps ${share} of it.`
    : ` The best lies on a spike: the median of ${around.n} points around it keeps only ${share} of it.`;
}

// ---- in sample against out of sample ----

const unseen = new Cloud(byId('unseen-canvas'), drawUnseen, choose);

function showUnseen() {
  const known = study.unseen.flatMap((value, i) => (value === null || study.scores[0][i] === null ? [] : [i]));
  setShown('unseen', known.length > 0);
  if (!known.length) return;
  const correlation = rankCorrelation(known.map((i) => study.scores[0][i]), known.map((i) => study.unseen[i]));
  byId('unseen-note').textContent = [
    `${study.objectives[0]}, in sample across and out of sample up; on the dashed line both are the same.`,
    known.length < 10 ? `Only the ${count(known.length, 'judged winner')} of this study ${known.length === 1 ? 'has' : 'have'} figures out of sample.` : '',
    known.length >= 10 && Number.isFinite(correlation)
      ? `The rank correlation over ${count(known.length, 'trial')} is ${number(correlation, 2)}: ${correlation > 0.3 ? 'what is good in sample tends to be good out of sample' : 'what is good in sample says little about out of sample'}.`
      : '',
  ].filter(Boolean).join(' ');
}

/** Spearman's: the correlation of ranks, equal values sharing their mean rank. */
function rankCorrelation(xs, ys) {
  const ranks = (values) => {
    const order = values.map((_, i) => i).sort((a, b) => values[a] - values[b]);
    const out = new Array(values.length);
    for (let from = 0; from < order.length; ) {
      let to = from;
      while (to < order.length && values[order[to]] === values[order[from]]) to++;
      for (let k = from; k < to; k++) out[order[k]] = (from + to - 1) / 2;
      from = to;
    }
    return out;
  };
  const [a, b] = [ranks(xs), ranks(ys)];
  const centre = (a.length - 1) / 2;
  let [ab, aa, bb] = [0, 0, 0];
  a.forEach((value, i) => {
    ab += (value - centre) * (b[i] - centre);
    aa += (value - centre) ** 2;
    bb += (b[i] - centre) ** 2;
  });
  return ab / Math.sqrt(aa * bb);
}

function drawUnseen(context, width, height, colours) {
  const known = study.unseen.filter((value, i) => value !== null && study.scores[0][i] !== null).sort((a, b) => a - b);
  if (!known.length) return null;
  const range = scoreRange(0);
  const typical = known[Math.floor(known.length * 0.02)];
  const pad = (known[known.length - 1] - typical) * 0.05 || 1;
  const { box, y } = frame(context, width, height, colours, { low: typical - pad, high: known[known.length - 1] + pad }, 42);
  const x = (value) => box.left + Math.max(0, Math.min(1, (value - range.low) / (range.high - range.low))) * (box.right - box.left);
  const ticks = niceTicks(range.low, range.high, Math.max(2, Math.floor(width / 90)));
  bottomTicks(context, colours, box, ticks.map((value) => ({ at: (value - range.low) / (range.high - range.low), text: tickLabel(value) })));
  context.textAlign = 'right';
  context.fillText('in sample \u2192', box.right, box.bottom + 31);
  context.textAlign = 'left';
  context.fillText('\u2191 out of sample', box.left + 6, box.top + 4);
  context.save();
  context.beginPath();
  context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
  context.clip();
  context.strokeStyle = colours.hold;
  context.setLineDash([3, 4]);
  // Outside the frame `y` holds values at its edge, so that the ends are cut where the line leaves it.
  const from = Math.max(range.low, typical - pad);
  const to = Math.min(range.high, known[known.length - 1] + pad);
  if (to > from) line(context, x(from), y(from), x(to), y(to));
  context.setLineDash([]);
  context.restore();
  const spot = (i) => (study.unseen[i] === null || study.scores[0][i] === null ? null : { x: x(study.scores[0][i]), y: y(study.unseen[i]) });
  cloud(context, colours, spot, 1.6);
  return spot;
}
