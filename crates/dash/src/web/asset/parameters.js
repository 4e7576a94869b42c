// Which parameters matter, and where the good values are.

import { get, link, runPath } from "./api.js";
import { h, replace } from "./dom.js";
import { card, choice, empty, failure, loading } from "./widget.js";
import { axisTicks, isDiscrete, jitter, place, valueText } from "./axis.js";
import { ramp } from "./canvas.js";
import { count, niceTicks, percent, short, tickText } from "./format.js";
import { parallelPlot } from "./combination.js";
import { heatCard, scatterCard } from "./landscape.js";
import { canvas } from "./plot.js";

const importance = (axes) => {
  const sorted = [...axes].sort((a, b) => b.importance - a.importance);
  if (!(sorted[0]?.importance > 0)) return empty("Unknown: too few trials, or all alike");
  return h(
    "div",
    { class: "importance" },
    sorted.map((axis) => {
      const fill = h("span", { class: "share-fill" });
      fill.style.width = `${(axis.importance / sorted[0].importance) * 100}%`;
      return h(
        "div",
        {},
        h("span", { class: "importance-name" }, axis.name),
        h("span", { class: "share" }, fill),
        h("span", { class: "num" }, percent(axis.importance)),
      );
    }),
  );
};

// Ranks from 0 for the worst to 1 for the best, which spreads colours evenly however scores are spread.
const ranks = (scores) => {
  const valid = scores
    .map((score, at) => [score, at])
    .filter(([score]) => score !== null)
    .sort((a, b) => a[0] - b[0]);
  const out = scores.map(() => null);
  valid.forEach(([, at], rank) => (out[at] = valid.length > 1 ? rank / (valid.length - 1) : 1));
  return out;
};

const slice = (run, data, axisIdx, scores, standing, order, range) => {
  const axis = data.axes[axisIdx];
  const values = data.values[axisIdx];
  let spots = [];
  const height = 190;
  const plot = canvas(`Scores over ${axis.name}`, height, (pen, width, _, colours) => {
    const box = { left: 46, right: width - 10, top: 8, bottom: height - 22 };
    const toY = (score) => box.bottom - ((score - range.low) / (range.high - range.low || 1)) * (box.bottom - box.top);
    const toX = (share) => box.left + share * (box.right - box.left);
    const scoreTicks = niceTicks(range.low, range.high, 4);
    const scoreText = tickText(scoreTicks);
    for (const tick of scoreTicks) {
      pen.strokeStyle = colours.grid;
      pen.beginPath();
      pen.moveTo(box.left, Math.round(toY(tick)) + 0.5);
      pen.lineTo(box.right, Math.round(toY(tick)) + 0.5);
      pen.stroke();
      pen.fillStyle = colours.muted;
      pen.textAlign = "right";
      pen.fillText(scoreText(tick), box.left - 7, toY(tick));
    }
    pen.fillStyle = colours.muted;
    for (const { at: share, text } of axisTicks(axis, 4)) {
      const at = toX(share);
      pen.textAlign = at > box.right - 16 ? "right" : at < box.left + 10 ? "left" : "center";
      pen.fillText(text, at, height - 9);
    }
    spots = [];
    for (const at of order) {
      const share = place(axis, values[at]);
      if (share === null || scores[at] === null || scores[at] < range.low) continue;
      // Names are columns; within one, trials are spread so that they do not overlap.
      const spread = isDiscrete(axis) ? (0.6 * jitter(data.trials[at])) / axis.options.length : 0;
      const spot = { x: toX(share + spread), y: toY(scores[at]), at };
      spots.push(spot);
      pen.globalAlpha = 0.3 + 0.6 * standing[at];
      pen.fillStyle = ramp(standing[at]);
      pen.beginPath();
      pen.arc(spot.x, spot.y, 2 + standing[at] ** 4, 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
  });
  const tip = h("div", { class: "tip", hidden: true });
  plot.holder.append(tip);
  const nearest = (event) => {
    const box = plot.node.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    let least = 144;
    for (const spot of spots) {
      const far = (spot.x - x) ** 2 + (spot.y - y) ** 2;
      if (far < least) [best, least] = [spot, far];
    }
    return best;
  };
  plot.node.addEventListener("pointermove", (event) => {
    const spot = nearest(event);
    tip.hidden = !spot;
    plot.node.style.cursor = spot ? "pointer" : "default";
    if (!spot) return;
    replace(
      tip,
      h("div", { class: "tip-head" }, `trial ${count(data.trials[spot.at])}`),
      h("div", { class: "tip-line" }, h("span", {}, axis.name), h("b", {}, valueText(axis, values[spot.at]))),
      h("div", { class: "tip-line" }, h("span", {}, "score"), h("b", {}, short(scores[spot.at]))),
    );
    tip.style.left = `${Math.max(0, Math.min(spot.x + 10, plot.holder.clientWidth - tip.offsetWidth))}px`;
    tip.style.top = `${Math.max(0, spot.y - tip.offsetHeight - 8)}px`;
  });
  plot.node.addEventListener("pointerleave", () => (tip.hidden = true));
  plot.node.addEventListener("click", (event) => {
    const spot = nearest(event);
    if (spot) location.hash = link("run", run.name, "trial", String(data.trials[spot.at]));
  });
  return {
    node: card(
      axis.name,
      { class: "slice", extra: h("span", { class: "muted num" }, percent(axis.importance)) },
      plot.holder,
    ),
    close: plot.close,
  };
};

export const parametersView = (main, run) => {
  const asked = new AbortController();
  let open = [];
  const close = () => {
    for (const one of open) one.close();
    open = [];
  };

  const draw = (data, objective) => {
    close();
    const scores = data.scores[objective];
    const known = scores.filter((score) => score !== null);
    if (data.axes.length === 0 || known.length === 0) {
      replace(
        main,
        empty(data.n_trials === 0 ? "No trial is finished yet" : "No trial is valid, so there is nothing to compare"),
      );
      return;
    }
    const standing = ranks(scores);
    // The best are drawn last, on top.
    const order = scores
      .map((_, at) => at)
      .filter((at) => standing[at] !== null)
      .sort((a, b) => standing[a] - standing[b]);
    // A few very bad trials must not squeeze all others together.
    const sorted = [...known].sort((a, b) => a - b);
    const low = sorted[Math.floor(sorted.length * 0.02)];
    const high = sorted[sorted.length - 1];
    const room = (high - low) * 0.04 || 1;
    const range = { low: low - room, high: high + room };
    const ranked = data.axes.map((_, at) => at).sort((a, b) => data.axes[b].importance - data.axes[a].importance);
    const parallel = parallelPlot(run, data, {
      scores,
      standing,
      order,
      axes: ranked,
      objective: data.objectives[objective],
    });
    const slices = ranked.map((at) => slice(run, data, at, scores, standing, order, range));
    // Two parameters make a map, and only the first objective is evaluated again.
    const heat = ranked.length > 1 ? heatCard(run, data, scores, ranked) : null;
    const scatter = objective === 0 ? scatterCard(run, data, data.objectives[0]) : null;
    open = [parallel, ...slices, heat, scatter].filter(Boolean);
    const drawn = `${count(data.trials.length)} of ${count(data.n_trials)} trials are drawn: the best ${count(data.n_best)} and a sample of all`;
    replace(
      main,
      h(
        "div",
        { class: "tools" },
        h("p", { class: "muted" }, drawn),
        h("div", { class: "spacer" }),
        data.objectives.length > 1 &&
          choice(
            "Objective",
            data.objectives.map((text, at) => [at, text]),
            objective,
            (next) => draw(data, next),
          ),
      ),
      h(
        "div",
        { class: "grid" },
        card(
          "Importance",
          {},
          importance(data.axes),
          h(
            "p",
            { class: "muted note" },
            "The share of each parameter in what separates the best tenth of the trials from the others.",
          ),
        ),
        heat ? heat.node : null,
        card("Parallel coordinates", { class: "span-3" }, parallel.node),
        scatter?.node,
      ),
      h("h2", { class: "section" }, "Slices"),
      h(
        "div",
        { class: "slices" },
        slices.map((one) => one.node),
      ),
    );
  };

  replace(main, loading("Reading all trials"));
  get(runPath(run.name, "/parameters"), asked.signal).then(
    (told) => draw(told, 0),
    (error) => error.name !== "AbortError" && replace(main, failure(error)),
  );
  return {
    close: () => {
      asked.abort();
      close();
    },
  };
};
