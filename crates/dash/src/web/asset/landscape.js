// Where the good trials lie: two parameters against each other, and scores in sample against those out of sample.

import { get, link, runPath } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { card, empty } from "./widget.js";
import { HeatMap } from "./heat.js";
import { count, niceTicks, short, tickText } from "./format.js";
import { canvas } from "./plot.js";

const HEIGHT = 320;

// Trials that are evaluated out of sample: of the best, one for each group of neighbours, and of all others.
const SCATTERED = { best: 100, others: 200 };

const tipped = (plot, find, lines, choose) => {
  const tip = h("div", { class: "tip", hidden: true });
  plot.holder.append(tip);
  const at = (event) => {
    const box = plot.node.getBoundingClientRect();
    return find(event.clientX - box.left, event.clientY - box.top);
  };
  plot.node.addEventListener("pointermove", (event) => {
    const found = at(event);
    tip.hidden = !found;
    plot.node.style.cursor = found ? "pointer" : "default";
    if (!found) return;
    const [head, ...rest] = lines(found);
    replace(
      tip,
      h("div", { class: "tip-head" }, head),
      rest.map(([name, text]) => h("div", { class: "tip-line" }, h("span", {}, name), h("b", {}, text))),
    );
    tip.style.left = `${Math.max(0, Math.min(found.x + 10, plot.holder.clientWidth - tip.offsetWidth))}px`;
    tip.style.top = `${Math.max(0, found.y - tip.offsetHeight - 8)}px`;
  });
  plot.node.addEventListener("pointerleave", () => (tip.hidden = true));
  plot.node.addEventListener("click", (event) => {
    const found = at(event);
    if (found) choose(found);
  });
};

// The heat map of two parameters; the two that matter most to begin with.
export const heatCard = (run, data, scores, ranked) => {
  const chosen = { across: ranked[0], up: ranked[1] };
  const node = h("canvas", { role: "img", "aria-label": "Median scores over two parameters" });
  const holder = h("div", { class: "plot-holder" }, node);
  for (const one of [node, holder]) one.style.height = `${HEIGHT}px`;
  const told = h("p", { class: "muted note", role: "status" });
  const read = (cell) =>
    setText(
      told,
      cell
        ? `${data.axes[chosen.across].name} about ${cell.x}, ${data.axes[chosen.up].name} about ${cell.y}: ${count(cell.n, "trial")}, median ${short(cell.median)}, best ${short(cell.best)}`
        : "Cells are coloured by the median of their trials; the framed one holds the best trial. Neighbours of one colour are a plateau; a bright cell alone is a spike, which is rarely found again.",
    );
  const map = new HeatMap(node, read);
  const winner = scores.reduce((best, score, at) => (score !== null && (best === null || score > scores[best]) ? at : best), null);
  const side = (at) => ({ axis: data.axes[at], values: data.values[at] });
  const show = () => {
    map.show({ across: side(chosen.across), up: side(chosen.up), scores, winner });
    node.dataset.cells = map.data.cells.size;
  };
  const select = (label, key) =>
    h(
      "select",
      {
        class: "select",
        "aria-label": label,
        onchange: (event) => {
          chosen[key] = Number(event.target.value);
          show();
        },
      },
      ranked.map((at) => h("option", { value: String(at), selected: at === chosen[key] }, data.axes[at].name)),
    );
  const tools = h(
    "div",
    { class: "card-tools" },
    select("Parameter across", "across"),
    h("span", { class: "muted" }, "against"),
    select("Parameter upwards", "up"),
  );
  read(null);
  show();
  return { node: card("Heat map", { class: "span-2 heat", extra: tools }, holder, told), close: map.chart.close };
};

// How alike the orders of two columns are, from −1 to 1 (Spearman).
export const rankCorrelation = (pairs) => {
  const ranks = (values) => {
    const order = values.map((_, at) => at).sort((a, b) => values[a] - values[b]);
    const out = [];
    // Equal values share the mean of their places.
    for (let from = 0, to; from < order.length; from = to) {
      for (to = from + 1; to < order.length && values[order[to]] === values[order[from]]; ) to += 1;
      for (let at = from; at < to; at += 1) out[order[at]] = (from + to - 1) / 2;
    }
    return out;
  };
  const [a, b] = [0, 1].map((side) => ranks(pairs.map((pair) => pair[side])));
  const middle = (pairs.length - 1) / 2;
  let [ab, aa, bb] = [0, 0, 0];
  a.forEach((rank, at) => {
    ab += (rank - middle) * (b[at] - middle);
    aa += (rank - middle) ** 2;
    bb += (b[at] - middle) ** 2;
  });
  return aa > 0 && bb > 0 ? ab / Math.sqrt(aa * bb) : null;
};

// Scores in sample against those out of sample, of the best trials and of some others.
export const scatterCard = (run, data, objective) => {
  const asked = new AbortController();
  let spots = [];
  let points = [];
  const words = h("p", { class: "muted note" }, "Evaluating trials out of sample …");
  const plot = canvas("Scores in sample against out of sample", HEIGHT, (pen, width, height, colours) => {
    spots = [];
    if (points.length === 0) return;
    const box = { left: 50, right: width - 10, top: 8, bottom: height - 36 };
    const range = (side) => {
      const values = points.map((point) => point[side]);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const room = (high - low) * 0.05 || 1;
      return { low: low - room, high: high + room };
    };
    const [across, up] = [range("seen"), range("unseen")];
    const toX = (value) => box.left + ((value - across.low) / (across.high - across.low)) * (box.right - box.left);
    const toY = (value) => box.bottom - ((value - up.low) / (up.high - up.low)) * (box.bottom - box.top);
    const line = (x0, y0, x1, y1, colour, dash = []) => {
      pen.strokeStyle = colour;
      pen.setLineDash(dash);
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.lineTo(x1, y1);
      pen.stroke();
      pen.setLineDash([]);
    };
    const ticks = niceTicks(up.low, up.high, 5);
    const text = tickText(ticks);
    pen.textAlign = "right";
    for (const tick of ticks) {
      line(box.left, toY(tick), box.right, toY(tick), tick === 0 ? colours.muted : colours.grid);
      pen.fillStyle = colours.muted;
      pen.fillText(text(tick), box.left - 7, toY(tick));
    }
    const below = niceTicks(across.low, across.high, 6);
    const belowText = tickText(below);
    pen.textAlign = "center";
    pen.fillStyle = colours.muted;
    for (const tick of below) pen.fillText(belowText(tick), toX(tick), box.bottom + 12);
    pen.fillText("in sample", (box.left + box.right) / 2, height - 8);
    // Where a trial would be that does as well on what the search did not see.
    const [from, to] = [Math.max(across.low, up.low), Math.min(across.high, up.high)];
    if (to > from) line(toX(from), toY(from), toX(to), toY(to), colours.muted, [4, 4]);
    for (const point of points) {
      const spot = { ...point, x: toX(point.seen), y: toY(point.unseen) };
      spots.push(spot);
      pen.globalAlpha = point.isBest ? 0.85 : 0.4;
      pen.fillStyle = point.isBest ? colours.accent : colours.muted;
      pen.beginPath();
      pen.arc(spot.x, spot.y, point.isBest ? 3 : 2.2, 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
  });
  const nearest = (x, y) => {
    const far = (spot) => (spot.x - x) ** 2 + (spot.y - y) ** 2;
    const found = spots.reduce((a, b) => (a === null || far(b) < far(a) ? b : a), null);
    return found && far(found) < 144 ? found : null;
  };
  tipped(
    plot,
    nearest,
    (spot) => [`trial ${count(spot.trial)}`, ["in sample", short(spot.seen)], ["out of sample", short(spot.unseen)]],
    (spot) => (location.hash = link("run", run.name, "trial", String(spot.trial))),
  );
  const node = card(`In sample against out of sample: ${objective}`, { class: "span-3 scatter" }, plot.holder, words);
  const load = async () => {
    const [scores] = data.scores;
    const others = data.trials.map((_, at) => at).filter((at) => at >= data.n_best && scores[at] !== null);
    const step = Math.max(1, others.length / SCATTERED.others);
    const some = Array.from({ length: Math.min(SCATTERED.others, others.length) }, (_, at) => others[Math.floor(at * step)]);
    // The best of each group of neighbours: the best trials alone would be one place a hundred times.
    const best = await get(runPath(run.name, `/trials?fold=groups&limit=${SCATTERED.best}`), asked.signal);
    const column = best.columns.findIndex((one) => one.kind === "objective");
    const wanted = new Map(some.map((at) => [data.trials[at], { seen: scores[at], isBest: false }]));
    for (const row of best.rows) if (row[column] !== null) wanted.set(row[0], { seen: row[column], isBest: true });
    if (wanted.size < 3) return (node.hidden = true);
    const told = await get(runPath(run.name, `/unseen?trials=${[...wanted.keys()]}`), asked.signal);
    if (told.columns.length === 0) return (node.hidden = true);
    const place = told.columns.findIndex((one) => one.name === "test_objective");
    points = told.rows
      .map(([trial, values]) => ({ trial, ...wanted.get(trial), unseen: values[place] }))
      .filter((point) => point.unseen !== null)
      // The best are drawn last, on top.
      .sort((a, b) => a.isBest - b.isBest);
    plot.node.dataset.points = points.length;
    const alike = rankCorrelation(points.map((point) => [point.seen, point.unseen]));
    setText(
      words,
      `${count(points.filter((point) => point.isBest).length)} of the best (coloured; neighbours are one) and ${count(points.filter((point) => !point.isBest).length)} others. ` +
        `Rank correlation ${alike === null ? "–" : short(alike)}: 1 where the order in sample is the order out of sample, 0 where it says nothing. ` +
        "On the dashed line a trial does as well on what the search did not see.",
    );
    plot.redraw();
  };
  load().catch((error) => {
    if (error.name === "AbortError") return;
    replace(node, node.firstChild, empty("No scores out of sample", h("p", { class: "muted" }, error.message)));
  });
  return {
    node,
    close: () => {
      asked.abort();
      plot.close();
    },
  };
};
