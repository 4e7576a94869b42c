// Lines over an axis, as SVG. One plot is one focusable picture: the mouse or the arrow keys move along it and read values.

import { h, replace } from "./dom.js";
import { s } from "./widget.js";
import { makeCanvas } from "./canvas.js";
import { logTicks, niceTicks, short, tickText, timeTicks } from "./format.js";

const MARGIN = { left: 56, right: 14, top: 10, bottom: 24 };

// `options`: label, height, empty; x { kind, low, high, read }, y { kind, base, low, high, zero, isLog, read }. A kind is "number", "percent", "seconds" or, of x,
// "time"; `read` is the text of one value.
// `update({ series: [{ name, points: [[x, y]…], class, isStep, isArea }], marks: [{ x, label }] })`
export const linePlot = (options) => {
  const picture = s("svg", { class: "plot", role: "img", tabindex: "0", "aria-label": options.label });
  const tip = h("div", { class: "tip", hidden: true });
  const holder = h("div", { class: "plot-holder" }, picture, tip);
  holder.style.height = `${options.height}px`;
  let data = { series: [], marks: [] };
  let area = null;
  let cursor = null;
  let { height } = options;

  const bounds = () => {
    const all = data.series.flatMap((line) => line.points);
    if (all.length === 0) return null;
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const [x, y] of all) {
      if (x < left) left = x;
      if (x > right) right = x;
      if (y < low) low = y;
      if (y > high) high = y;
    }
    left = options.x?.low ?? left;
    right = Math.max(data.right ?? -Infinity, options.x?.high ?? right);
    low = options.y?.low ?? (options.y?.zero ? Math.min(0, low) : low);
    high = options.y?.high ?? (options.y?.zero ? Math.max(0, high) : high);
    if (right === left) right = left + 1;
    // A logarithm needs values above 0; equity that fell to nothing is drawn on a linear scale.
    if (options.y?.isLog && low > 0) {
      const factor = (high / low) ** 0.06 || 1;
      return { left, right, low: low / Math.max(factor, 1.001), high: high * Math.max(factor, 1.001), isLog: true };
    }
    const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    if (options.y?.low === undefined && !(options.y?.zero && low === 0)) low -= room;
    if (options.y?.high === undefined && !(options.y?.zero && high === 0)) high += room;
    return { left, right, low, high };
  };

  const draw = () => {
    const width = holder.clientWidth;
    if (width < 10) return;
    // On a phone a tall picture would be a page of its own.
    height = width < 560 ? Math.min(options.height, 250) : options.height;
    holder.style.height = `${height}px`;
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("width", width);
    picture.setAttribute("height", height);
    area = bounds();
    if (!area) {
      replace(
        picture,
        s(
          "text",
          { class: "plot-empty", x: width / 2, y: height / 2, "text-anchor": "middle" },
          options.empty ?? "Nothing yet",
        ),
      );
      return;
    }
    const inner = { x0: MARGIN.left, x1: width - MARGIN.right, y0: height - MARGIN.bottom, y1: MARGIN.top };
    const toX = (x) => inner.x0 + ((x - area.left) / (area.right - area.left)) * (inner.x1 - inner.x0);
    const place = (y) =>
      area.isLog ? Math.log(y / area.low) / Math.log(area.high / area.low) : (y - area.low) / (area.high - area.low);
    const toY = (y) => inner.y0 - place(y) * (inner.y0 - inner.y1);
    Object.assign(area, { toX, toY, inner });
    // Values relative to a base have their ticks relative to it too.
    const base = options.y?.base ?? 0;
    const nTicks = Math.max(2, (inner.y0 - inner.y1) / 42);
    const yTicks = area.isLog
      ? logTicks(area.low, area.high, nTicks)
      : niceTicks(area.low - base, area.high - base, nTicks).map((y) => y + base);
    const isTime = options.x?.kind === "time";
    const wanted = Math.max(3, (inner.x1 - inner.x0) / 110);
    const { at: xTicks, text: xText } = isTime
      ? timed(timeTicks(area.left, area.right, (area.right - area.left) / wanted))
      : numbered(niceTicks(area.left, area.right, wanted), options.x?.kind);
    const yText = tickText(yTicks, options.y?.kind);
    const grid = yTicks.map((y) => [
      s("line", { class: "grid", x1: inner.x0, x2: inner.x1, y1: toY(y), y2: toY(y) }),
      s(
        "text",
        { class: "tick", x: inner.x0 - 8, y: toY(y) + 3.5, "text-anchor": "end" },
        yText(y - (options.y?.base ?? 0)),
      ),
    ]);
    const below = xTicks.map((x) => {
      const at = toX(x);
      const anchor = at > inner.x1 - 24 ? "end" : at < inner.x0 + 12 ? "start" : "middle";
      return s("text", { class: "tick", x: at, y: height - 7, "text-anchor": anchor }, xText(x));
    });
    // A label that would run into the one before it stands below that.
    let [end, row] = [-Infinity, 0];
    const marks = (data.marks ?? [])
      .filter((mark) => mark.x > area.left && mark.x < area.right)
      .map((mark) => {
        const x = toX(mark.x);
        if (mark.label) [row, end] = [x < end ? row + 1 : 0, x + 12 + 6 * mark.label.length];
        return [
          s("line", { class: "mark", x1: x, x2: x, y1: inner.y1, y2: inner.y0 }),
          mark.label && s("text", { class: "tick", x: x + 5, y: inner.y1 + 10 + 13 * row }, mark.label),
        ];
      });
    replace(picture, grid, below, marks, data.series.map(line), s("g", { class: "cursor" }));
    if (cursor !== null) point(cursor);
  };

  const line = ({ points, class: kind, isStep, isArea }) => {
    if (points.length === 0) return null;
    const { toX, toY, inner } = area;
    const parts = points.map(([x, y], at) => {
      const [px, py] = [toX(x).toFixed(1), toY(y).toFixed(1)];
      if (at === 0) return `M${px} ${py}`;
      return isStep ? `H${px}V${py}` : `L${px} ${py}`;
    });
    const last = points[points.length - 1];
    if (isStep && data.right > last[0]) parts.push(`H${toX(data.right).toFixed(1)}`);
    const path = parts.join("");
    const end = toX(isStep ? Math.max(last[0], data.right ?? last[0]) : last[0]);
    const floor = Math.max(inner.y1, Math.min(inner.y0, toY(Math.max(area.low, Math.min(area.high, 0)))));
    return [
      isArea &&
        s("path", {
          class: `fill ${kind}`,
          d: `${path}L${end.toFixed(1)} ${floor}L${toX(points[0][0]).toFixed(1)} ${floor}Z`,
        }),
      s("path", { class: `line ${kind}`, d: path }),
      points.length === 1 && s("circle", { class: `dot ${kind}`, cx: toX(points[0][0]), cy: toY(points[0][1]), r: 3 }),
    ];
  };

  // Reads the values at a place.
  const point = (x) => {
    const group = picture.querySelector(".cursor");
    if (!group || !area) return;
    const found = data.series
      .filter((one) => one.points.length > 0)
      .map((one) => ({ one, at: nearest(one.points, x, one.isStep) }));
    if (found.length === 0) return;
    const [px, py] = found[0].at;
    const shownX = found[0].one.isStep ? Math.max(area.left, Math.min(area.right, x)) : px;
    cursor = x;
    replace(
      group,
      s("line", { x1: area.toX(shownX), x2: area.toX(shownX), y1: area.inner.y1, y2: area.inner.y0 }),
      found.map(({ one, at }) =>
        s("circle", {
          class: `dot ${one.class}`,
          cx: area.toX(one.isStep ? shownX : at[0]),
          cy: area.toY(at[1]),
          r: 3.5,
        }),
      ),
    );
    const text = options.x?.read ?? short;
    replace(
      tip,
      h("div", { class: "tip-head" }, text(shownX)),
      found.map(({ one, at }) =>
        h(
          "div",
          { class: "tip-line" },
          h("i", { class: one.class }),
          h("span", {}, one.name),
          h("b", {}, (options.y?.read ?? short)(at[1])),
        ),
      ),
    );
    tip.hidden = false;
    const left = area.toX(shownX) + 12;
    const room = holder.clientWidth - tip.offsetWidth - 4;
    tip.style.left = `${left > room ? Math.max(0, area.toX(shownX) - tip.offsetWidth - 12) : left}px`;
    tip.style.top = `${Math.max(0, Math.min(area.toY(py) - 20, height - tip.offsetHeight - 4))}px`;
  };

  const leave = () => {
    cursor = null;
    tip.hidden = true;
    const group = picture.querySelector(".cursor");
    if (group) replace(group);
  };

  picture.addEventListener("pointermove", (event) => {
    if (!area?.inner) return;
    const box = picture.getBoundingClientRect();
    const share = (event.clientX - box.left - area.inner.x0) / (area.inner.x1 - area.inner.x0);
    point(area.left + share * (area.right - area.left));
  });
  picture.addEventListener("pointerleave", leave);
  picture.addEventListener("blur", leave);
  picture.addEventListener("keydown", (event) => {
    if (!area?.inner) return;
    const step = (area.right - area.left) / 50;
    const moved = { ArrowLeft: -step, ArrowRight: step }[event.key];
    if (moved) {
      event.preventDefault();
      point(Math.max(area.left, Math.min(area.right, (cursor ?? area.right) + moved)));
    } else if (event.key === "Escape") leave();
  });
  new ResizeObserver(draw).observe(holder);
  return {
    node: holder,
    // Later data may be of another kind.
    tell: (x, y) => {
      Object.assign(options.x, x);
      Object.assign(options.y, y);
    },
    update: (next) => {
      data = next;
      draw();
    },
  };
};

const timed = (found) => ({
  at: found.map((tick) => tick.ms),
  text: (ms) => found.find((tick) => tick.ms === ms).text,
});
const numbered = (at, kind) => ({ at, text: tickText(at, kind) });

// The point at a place: of a step the last before it, otherwise the nearest.
const nearest = (points, x, isStep) => {
  let [low, high] = [0, points.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (points[middle][0] <= x) low = middle;
    else high = middle - 1;
  }
  const next = points[low + 1];
  return !isStep && next && next[0] - x < x - points[low][0] ? next : points[low];
};

const SPARK = { width: 110, height: 30 };

// Equity as a small line without axes, its benchmark fainter behind it.
export const sparkline = ({ start, equity, buy_hold: held }) => {
  const all = [start, ...equity, ...held];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const toY = (y) => SPARK.height - 2 - ((y - low) / (high - low || 1)) * (SPARK.height - 4);
  const path = (values) => {
    const points = [start, ...values];
    const toX = (at) => 1 + (at / Math.max(1, points.length - 1)) * (SPARK.width - 2);
    return points.map((y, at) => `${at === 0 ? "M" : "L"}${toX(at).toFixed(1)} ${toY(y).toFixed(1)}`).join("");
  };
  const { width, height } = SPARK;
  return s(
    "svg",
    { class: "plot-spark", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Equity of the best trial" },
    held.length > 0 && s("path", { class: "line c3", d: path(held) }),
    s("path", { class: "line c0", d: path(equity) }),
  );
};

// A canvas in a box of a height.
export const canvas = (label, height, draw) => {
  const node = h("canvas", { "aria-label": label, role: "img" });
  const holder = h("div", { class: "plot-holder" }, node);
  for (const one of [node, holder]) one.style.height = `${height}px`;
  const { redraw, close } = makeCanvas(node, draw);
  return { node, holder, redraw, close };
};
