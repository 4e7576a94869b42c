// The parallel coordinates of a study: below them how many trials pass, and the best of those.

import { link } from "./api.js";
import { ramp } from "./canvas.js";
import { h, replace } from "./dom.js";
import { count, short } from "./format.js";
import { Parallel, scoreAxis } from "./parallel.js";

const HEIGHT = 340;
const MAX_AXES = 9;
const LISTED = 5;

export const parallelPlot = (run, data, { scores, standing, order, axes, objective }) => {
  const toTrial = (i) => link("run", run.name, "trial", String(data.trials[i]));
  const summary = h("div", { class: "parallel-summary" });
  const tell = (passing, isBrushed) =>
    replace(
      summary,
      h(
        "span",
        { class: "muted" },
        isBrushed
          ? `${count(passing.length)} of ${count(order.length)} trials pass`
          : "Drag along an axis to keep the trials that pass there",
      ),
      isBrushed && [
        h("button", { type: "button", class: "button is-quiet", onclick: () => plot.clear() }, "Clear"),
        passing
          .slice(-LISTED)
          .reverse()
          .map((i) => h("a", { href: toTrial(i) }, `${count(data.trials[i])}: ${short(scores[i])}`)),
      ],
    );
  const node = h("canvas", { "aria-label": "Parallel coordinates of the trials", role: "img" });
  const holder = h("div", { class: "plot-holder parallel" }, node);
  for (const one of [node, holder]) one.style.height = `${HEIGHT}px`;
  const plot = new Parallel(node, {
    colour: ramp,
    title: (i) => `Trial ${count(data.trials[i])}: ${short(scores[i])}`,
    onChoose: (i) => i !== null && (location.hash = toTrial(i)),
    onCount: tell,
  });
  plot.show({
    columns: [
      ...axes.slice(0, MAX_AXES).map((at) => ({ axis: data.axes[at], values: data.values[at] })),
      { axis: scoreAxis(objective.length > 18 ? "objective" : objective, scores), values: scores },
    ],
    trials: order,
    standing: (i) => standing[i],
  });
  const hidden =
    axes.length > MAX_AXES &&
    h("p", { class: "muted note" }, `The ${MAX_AXES} most important of ${axes.length} parameters.`);
  return { node: h("div", {}, holder, summary, hidden), close: plot.chart.close };
};
