// What ran when, on which stream: the newest stretch of the run.

import { h, replace } from "./dom.js";
import { s } from "./widget.js";
import { milliseconds, niceTicks } from "./format.js";

// The phases of a sweep always have the same colours; those of other workloads take the next free ones.
const KNOWN = ["ask", "kernel", "tell", "upload", "download", "distinct"];
const kind = (name, at) => `phase-${KNOWN.includes(name) ? KNOWN.indexOf(name) : (at + 3) % KNOWN.length}`;

const ROW = 26;
const LEFT = 84;

export const lanesPlot = () => {
  const picture = s("svg", {
    class: "plot lanes",
    role: "img",
    "aria-label": "Work on each lane over the newest stretch of time",
  });
  const legend = h("div", { class: "legend" });
  const tip = h("div", { class: "tip", hidden: true });
  const holder = h("div", { class: "plot-holder" }, picture, tip);
  let data = null;

  const draw = () => {
    const width = holder.clientWidth;
    if (!data || width < 10) return;
    const { lanes, phases, spans } = data;
    const height = Math.max(1, lanes.length) * ROW + 26;
    holder.style.height = `${height}px`;
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("width", width);
    picture.setAttribute("height", height);
    if (spans.length === 0) {
      replace(
        picture,
        s(
          "text",
          { class: "plot-empty", x: width / 2, y: height / 2, "text-anchor": "middle" },
          "No work was timed yet",
        ),
      );
      return;
    }
    const end = Math.max(...spans.map((span) => span[2] + span[3]));
    // Only the newest that fit: more would blur into one line.
    const shown = spans.slice(-Math.max(40, Math.floor(width / 5)));
    const begin = Math.min(...shown.map((span) => span[2]));
    const toX = (ms) => LEFT + ((ms - begin) / (end - begin || 1)) * (width - LEFT - 8);
    const order = [...lanes.keys()].sort((a, b) => lanes[a].localeCompare(lanes[b], "en", { numeric: true }));
    const rows = new Map(order.map((lane, row) => [lane, row]));
    const back = order.map((lane, row) => [
      s("text", { class: "tick", x: LEFT - 10, y: row * ROW + ROW / 2 + 4, "text-anchor": "end" }, lanes[lane]),
      s("rect", { class: "lane-back", x: LEFT, y: row * ROW + 3, width: width - LEFT - 8, height: ROW - 6, rx: 3 }),
    ]);
    const work = shown.map((span) => {
      const [lane, phase, start, duration] = span;
      const left = Math.max(LEFT, toX(start));
      return s("rect", {
        class: kind(phases[phase], phase),
        x: left.toFixed(1),
        y: rows.get(lane) * ROW + 4,
        width: Math.max(1, toX(start + duration) - left - 0.5).toFixed(1),
        height: ROW - 8,
        rx: 2,
        onpointerenter: () => show(span, left, rows.get(lane)),
        onpointerleave: () => (tip.hidden = true),
      });
    });
    const times = niceTicks(begin, end, Math.max(3, width / 140)).map((ms) =>
      s(
        "text",
        { class: "tick", x: toX(ms), y: height - 6, "text-anchor": toX(ms) > width - 30 ? "end" : "middle" },
        `${(ms / 1000).toFixed(end - begin < 2000 ? 2 : 1)} s`,
      ),
    );
    replace(picture, back, work, times);
    replace(
      legend,
      phases.map((name, at) => h("span", {}, h("i", { class: kind(name, at) }), name)),
    );
  };

  const show = ([lane, phase, start, duration, step], left, row) => {
    replace(
      tip,
      h("div", { class: "tip-head" }, `${data.phases[phase]} ${step}`),
      h("div", { class: "tip-line" }, h("span", {}, data.lanes[lane]), h("b", {}, milliseconds(duration))),
      h("div", { class: "muted" }, `from ${(start / 1000).toFixed(3)} s`),
    );
    tip.hidden = false;
    tip.style.left = `${Math.min(left, holder.clientWidth - tip.offsetWidth - 4)}px`;
    tip.style.top = `${(row + 1) * ROW + 2}px`;
  };

  new ResizeObserver(draw).observe(holder);
  return {
    nodes: [holder, legend],
    update: (next) => {
      data = next;
      draw();
    },
  };
};
