// Parallel coordinates: one line per trial over all parameters. Dragging along an axis keeps the trials that pass there.

import { link } from "./api.js";
import { h, replace } from "./dom.js";
import { count, number } from "./format.js";
import { axisText, place } from "./parameters.js";
import { canvas, colours, ramp } from "./plot.js";

const HEIGHT = 340;
const TOP = 34;
const BOTTOM = HEIGHT - 26;
const MAX_AXES = 9;
const LISTED = 5;

export const parallelPlot = (run, data, { scores, standing, order, axes, objective }) => {
  const known = scores.filter((score) => score !== null);
  const scoreAxis = {
    name: objective.length > 18 ? "objective" : objective,
    kind: "number",
    low: Math.min(...known),
    high: Math.max(...known),
    is_log: false,
  };
  if (scoreAxis.low === scoreAxis.high) scoreAxis.high += 1;
  const columns = [
    ...axes.slice(0, MAX_AXES).map((at) => ({ axis: data.axes[at], values: data.values[at] })),
    { axis: scoreAxis, values: scores },
  ];
  // From and to, as shares of the axis, or nothing.
  const brushes = columns.map(() => null);
  const shares = columns.map(({ axis, values }) => values.map((value) => place(axis, value)));
  const toX = (at, width) => 26 + (at / Math.max(1, columns.length - 1)) * (width - 52);
  const toY = (share) => BOTTOM - share * (BOTTOM - TOP);

  const isKept = (trial) =>
    brushes.every(
      (brush, at) =>
        !brush ||
        (shares[at][trial] !== null && shares[at][trial] >= brush[0] - 1e-9 && shares[at][trial] <= brush[1] + 1e-9),
    );

  const plot = canvas("Parallel coordinates of the trials", HEIGHT, (pen, width) => {
    const colour = colours();
    const isBrushed = brushes.some(Boolean);
    const kept = order.filter(isKept);
    pen.lineWidth = 1;
    const trace = (trial) => {
      pen.beginPath();
      let isDown = false;
      columns.forEach((_, at) => {
        const share = shares[at][trial];
        if (share === null) return (isDown = false);
        const [x, y] = [toX(at, width), toY(share)];
        if (isDown) pen.lineTo(x, y);
        else pen.moveTo(x, y);
        isDown = true;
      });
      pen.stroke();
    };
    if (isBrushed) {
      pen.strokeStyle = colour("grid");
      pen.globalAlpha = 0.5;
      for (let at = 0; at < order.length; at += Math.ceil(order.length / 600)) trace(order[at]);
    }
    for (const trial of kept) {
      pen.strokeStyle = ramp(standing[trial]);
      pen.globalAlpha = isBrushed ? Math.max(0.35, standing[trial] ** 2) : 0.04 + 0.7 * standing[trial] ** 6;
      trace(trial);
    }
    pen.globalAlpha = 1;
    pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    columns.forEach(({ axis }, at) => {
      const x = toX(at, width);
      pen.strokeStyle = colour("muted");
      pen.beginPath();
      pen.moveTo(x, TOP);
      pen.lineTo(x, BOTTOM);
      pen.stroke();
      const side = at === 0 ? "left" : at === columns.length - 1 ? "right" : "center";
      const shift = at === 0 ? -22 : at === columns.length - 1 ? 22 : 0;
      pen.textAlign = side;
      pen.fillStyle = colour("text");
      const room = (width - 52) / Math.max(1, columns.length - 1) - 6;
      pen.fillText(clipped(pen, axis.name, Math.max(30, room)), x + shift, 13);
      pen.fillStyle = colour("muted");
      const [low, high] = axis.kind === "names" ? [0, axis.options.length - 1] : [axis.low, axis.high];
      pen.fillText(clipped(pen, axisText(axis, high), Math.max(30, room)), x + shift, 27);
      pen.fillText(clipped(pen, axisText(axis, low), Math.max(30, room)), x + shift, HEIGHT - 10);
      const brush = brushes[at];
      if (brush) {
        pen.fillStyle = colour("accent");
        pen.globalAlpha = 0.28;
        pen.fillRect(x - 7, toY(brush[1]), 14, Math.max(2, toY(brush[0]) - toY(brush[1])));
        pen.globalAlpha = 1;
        pen.strokeStyle = colour("accent");
        pen.strokeRect(x - 7, toY(brush[1]), 14, Math.max(2, toY(brush[0]) - toY(brush[1])));
      }
    });
    tell(kept, isBrushed);
  });

  const summary = h("div", { class: "parallel-summary" });
  const tell = (kept, isBrushed) => {
    const best = kept.slice(-LISTED).reverse();
    replace(
      summary,
      h(
        "span",
        { class: "muted" },
        isBrushed
          ? `${count(kept.length)} of ${count(order.length)} trials pass`
          : "Drag along an axis to keep the trials that pass there",
      ),
      isBrushed && h("button", { type: "button", class: "button is-quiet", onclick: clear }, "Clear"),
      isBrushed &&
        best.map((trial) =>
          h(
            "a",
            { href: link("run", run.name, "trial", String(data.trials[trial])) },
            `${count(data.trials[trial])}: ${number(scores[trial])}`,
          ),
        ),
    );
  };
  const clear = () => {
    brushes.fill(null);
    sliders();
    plot.redraw();
  };

  // A brush by keys: one control per axis, seen when it has the focus.
  const controls = columns.map(({ axis }, at) =>
    h("button", {
      type: "button",
      class: "axis-control",
      "aria-label": `${axis.name}: arrows move what is kept, shift and arrows change how much, Escape keeps all`,
      onkeydown: (event) => {
        const moved = { ArrowUp: 0.05, ArrowDown: -0.05 }[event.key];
        if (event.key === "Escape") brushes[at] = null;
        else if (!moved) return;
        else {
          const [low, high] = brushes[at] ?? (moved > 0 ? [0.7, 0.95] : [0.05, 0.3]);
          const next = event.shiftKey ? [low, high + moved] : [low + moved, high + moved];
          const size = Math.max(0.02, next[1] - next[0]);
          const from = Math.max(0, Math.min(1 - size, next[0]));
          brushes[at] = [from, Math.min(1, from + size)];
        }
        event.preventDefault();
        plot.redraw();
      },
    }),
  );
  const sliders = () => {
    const width = plot.holder.clientWidth;
    controls.forEach((control, at) => (control.style.left = `${toX(at, width) - 10}px`));
  };
  new ResizeObserver(sliders).observe(plot.holder);
  plot.holder.append(...controls);
  plot.holder.classList.add("parallel");

  let held = null;
  const at = (event) => {
    const box = plot.node.getBoundingClientRect();
    return {
      x: event.clientX - box.left,
      share: Math.max(0, Math.min(1, (BOTTOM - (event.clientY - box.top)) / (BOTTOM - TOP))),
    };
  };
  const axisAt = (x) => {
    const width = plot.holder.clientWidth;
    return columns.findIndex((_, column) => Math.abs(toX(column, width) - x) < 16);
  };
  plot.node.addEventListener("pointerdown", (event) => {
    const { x, share } = at(event);
    const column = axisAt(x);
    if (column < 0) return;
    held = { column, share };
    brushes[column] = null;
    plot.node.setPointerCapture(event.pointerId);
    plot.redraw();
  });
  plot.node.addEventListener("pointermove", (event) => {
    const { x, share } = at(event);
    plot.node.style.cursor = axisAt(x) >= 0 ? "ns-resize" : "default";
    if (!held) return;
    brushes[held.column] = [Math.min(held.share, share), Math.max(held.share, share)];
    plot.redraw();
  });
  const release = () => {
    // A mere click keeps all.
    if (held && brushes[held.column] && brushes[held.column][1] - brushes[held.column][0] < 0.01)
      brushes[held.column] = null;
    held = null;
    plot.redraw();
  };
  plot.node.addEventListener("pointerup", release);
  plot.node.addEventListener("pointercancel", release);
  const hidden =
    axes.length > MAX_AXES &&
    h("p", { class: "muted note" }, `The ${MAX_AXES} most important of ${axes.length} parameters.`);
  return { node: h("div", {}, plot.holder, summary, hidden), close: plot.close };
};

const clipped = (pen, text, room) => {
  if (pen.measureText(text).width <= room) return text;
  let short = text;
  while (short.length > 1 && pen.measureText(`${short}…`).width > room) short = short.slice(0, -1);
  return `${short}…`;
};
