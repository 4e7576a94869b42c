// Prices with entries, exits and stops. The wheel or + and − zoom, dragging or the arrow keys move; bars come from the server as they are needed.

import { get, runPath } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { moment, number, percent, ticks, tickText, timeTicks } from "./format.js";
import { canvas, colours } from "./plot.js";

const HEIGHT = 380;
const BOX = { left: 10, right: 66, top: 12, bottom: 24 };
const LEAST_BARS = 20;

export const priceChart = (run) => {
  let symbol = null;
  let bars = null;
  let window = null;
  let trades = [];
  let marks = [];
  let chosen = null;
  let asked = null;
  let later = 0;
  let hover = null;
  const status = h("span", { class: "muted num price-status" });
  const tip = h("div", { class: "tip", hidden: true });

  const plot = canvas("Prices with entries, exits and stops", HEIGHT, (pen, width) => {
    if (!bars || !window || bars.ms.length === 0) return;
    const colour = colours();
    const [x0, x1] = [BOX.left, width - BOX.right];
    const [y0, y1] = [HEIGHT - BOX.bottom, BOX.top];
    const toX = (ms) => x0 + ((ms - window.from) / (window.to - window.from)) * (x1 - x0);
    let [low, high] = [Infinity, -Infinity];
    bars.ms.forEach((ms, at) => {
      if (ms < window.from - step() || ms > window.to) return;
      low = Math.min(low, bars.low[at]);
      high = Math.max(high, bars.high[at]);
    });
    if (!(high >= low)) return;
    const room = (high - low) * 0.08 || high * 0.01;
    low -= room;
    high += room;
    const toY = (price) => y0 - ((price - low) / (high - low)) * (y0 - y1);
    plot.view = { toX, toY, x0, x1, low, high };
    pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    pen.textBaseline = "middle";
    pen.lineWidth = 1;
    const prices = ticks(low, high, 6);
    const priceText = tickText(prices);
    for (const price of prices) {
      const y = Math.round(toY(price)) + 0.5;
      pen.strokeStyle = colour("grid");
      pen.beginPath();
      pen.moveTo(x0, y);
      pen.lineTo(x1, y);
      pen.stroke();
      pen.fillStyle = colour("muted");
      pen.textAlign = "left";
      pen.fillText(priceText(price), x1 + 8, y);
    }
    const times = timeTicks(window.from, window.to, Math.max(3, (x1 - x0) / 110));
    pen.textAlign = "center";
    for (const ms of times.at) {
      const x = toX(ms);
      if (x > x0 + 20 && x < x1 - 20) pen.fillText(times.text(ms), x, HEIGHT - 10);
    }
    pen.save();
    pen.beginPath();
    pen.rect(x0, 0, x1 - x0, y0 + 2);
    pen.clip();
    for (const mark of marks) {
      const x = Math.round(toX(mark.ms)) + 0.5;
      pen.strokeStyle = colour("muted");
      pen.setLineDash([3, 3]);
      pen.beginPath();
      pen.moveTo(x, y1);
      pen.lineTo(x, y0);
      pen.stroke();
      pen.setLineDash([]);
      pen.fillStyle = colour("muted");
      pen.textAlign = "left";
      pen.fillText(mark.label, x + 5, y1 + 4);
    }
    drawBars(pen, colour, toX, toY);
    drawTrades(pen, colour, toX, toY, x1 - x0);
    pen.restore();
    if (hover) {
      pen.strokeStyle = colour("muted");
      pen.setLineDash([2, 3]);
      pen.beginPath();
      pen.moveTo(hover.x, y1);
      pen.lineTo(hover.x, y0);
      pen.stroke();
      pen.setLineDash([]);
    }
  });
  const step = () => bars.timeframe_ms * bars.joined;

  const drawBars = (pen, colour, toX, toY) => {
    const body = Math.max(1, Math.min(12, (toX(window.from + step()) - toX(window.from)) * 0.7));
    const [up, down] = [colour("up"), colour("down")];
    bars.ms.forEach((ms, at) => {
      const x = toX(ms + step() / 2);
      const isUp = bars.close[at] >= bars.open[at];
      pen.fillStyle = isUp ? up : down;
      const [top, bottom] = [toY(bars.high[at]), toY(bars.low[at])];
      pen.globalAlpha = 0.75;
      pen.fillRect(Math.round(x) - 0.5, top, 1, Math.max(1, bottom - top));
      if (body > 1.6) {
        pen.globalAlpha = 1;
        const [from, to] = [toY(Math.max(bars.open[at], bars.close[at])), toY(Math.min(bars.open[at], bars.close[at]))];
        pen.fillRect(x - body / 2, from, body, Math.max(1, to - from));
      }
    });
    pen.globalAlpha = 1;
  };

  const inside = () => trades.filter((trade) => trade.exit_ms >= window.from && trade.entry_ms <= window.to);

  const drawTrades = (pen, colour, toX, toY, width) => {
    const shown = inside();
    const isFew = shown.length < width / 12;
    for (const trade of shown) {
      const half = bars.timeframe_ms / 2;
      const [x, to] = [toX(trade.entry_ms + half), toX(trade.exit_ms + half)];
      const [y, toPrice] = [toY(trade.entry), toY(trade.exit)];
      const isChosen = trade === chosen;
      pen.globalAlpha = chosen && !isChosen ? 0.45 : 1;
      pen.strokeStyle = trade.ret >= 0 ? colour("good") : colour("bad");
      pen.lineWidth = isChosen ? 2 : 1.2;
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(to, toPrice);
      pen.stroke();
      pen.lineWidth = 1;
      if (isFew || isChosen) {
        for (const [level, name] of [
          [trade.stop, "bad"],
          [trade.target, "good"],
        ]) {
          if (level === null) continue;
          pen.strokeStyle = colour(name);
          pen.setLineDash([4, 3]);
          pen.beginPath();
          pen.moveTo(x, toY(level));
          pen.lineTo(Math.max(to, x + 4), toY(level));
          pen.stroke();
          pen.setLineDash([]);
        }
      }
      const size = isFew ? 5.5 : 3.5;
      pen.fillStyle = colour("accent");
      arrow(pen, x, y + trade.side * 3, trade.side, size);
      pen.fillStyle = trade.ret >= 0 ? colour("good") : colour("bad");
      pen.beginPath();
      pen.arc(to, toPrice, isFew ? 3.4 : 2, 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
  };

  const load = async () => {
    asked?.abort();
    asked = new AbortController();
    const ask = new URLSearchParams({ points: Math.max(200, Math.min(2000, Math.round(plot.holder.clientWidth / 3))) });
    if (symbol) ask.set("symbol", symbol);
    if (window) {
      // Some more on both sides, so that moving a little shows something at once.
      const room = (window.to - window.from) / 2;
      ask.set("from", Math.round(window.from - room));
      ask.set("to", Math.round(window.to + room));
      ask.set("points", Math.min(4000, Number(ask.get("points")) * 2));
    }
    try {
      bars = await get(runPath(run.name, `/bars?${ask}`), asked.signal);
      window ??= { from: bars.first_ms, to: bars.last_ms + bars.timeframe_ms };
      plot.node.dataset.bars = bars.ms.length;
      tell();
      plot.redraw();
    } catch (error) {
      if (error.name !== "AbortError") setText(status, error.message);
    }
  };

  const tell = () => {
    const shown = inside().length;
    plot.node.dataset.trades = shown;
    setText(
      status,
      `${moment(window.from)} – ${moment(window.to)} · ${shown} trade${shown === 1 ? "" : "s"}${bars.joined > 1 ? ` · ${bars.joined} bars in one` : ""}`,
    );
  };

  const move = (from, to) => {
    if (!bars) return;
    const [first, last] = [bars.first_ms, bars.last_ms + bars.timeframe_ms];
    const size = Math.max(LEAST_BARS * bars.timeframe_ms, Math.min(last - first, to - from));
    const middle = (from + to) / 2;
    const begin = Math.max(first, Math.min(last - size, middle - size / 2));
    window = { from: begin, to: begin + size };
    tell();
    plot.redraw();
    clearTimeout(later);
    later = setTimeout(load, 120);
  };
  const zoom = (factor, share = 0.5) => {
    if (!window) return;
    const at = window.from + share * (window.to - window.from);
    move(at - (at - window.from) * factor, at + (window.to - at) * factor);
  };
  const shift = (share) =>
    window && move(window.from + share * (window.to - window.from), window.to + share * (window.to - window.from));
  const all = () => bars && move(bars.first_ms, bars.last_ms + bars.timeframe_ms);

  const shareAt = (event) => {
    const box = plot.node.getBoundingClientRect();
    return (event.clientX - box.left - BOX.left) / (box.width - BOX.left - BOX.right);
  };
  plot.node.addEventListener(
    "wheel",
    (event) => {
      // The page scrolls as ever; with a key held, or sideways, the chart moves.
      if (
        !event.ctrlKey &&
        !event.metaKey &&
        !event.shiftKey &&
        Math.abs(event.deltaX) <= Math.abs(event.deltaY) &&
        document.activeElement !== plot.node
      )
        return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) shift(event.deltaX / 800);
      else zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, shareAt(event));
    },
    { passive: false },
  );
  let held = null;
  plot.node.addEventListener("pointerdown", (event) => {
    if (!window) return;
    held = { share: shareAt(event), ...window };
    plot.node.setPointerCapture(event.pointerId);
  });
  plot.node.addEventListener("pointermove", (event) => {
    if (held) {
      const by = (held.share - shareAt(event)) * (held.to - held.from);
      move(held.from + by, held.to + by);
      return;
    }
    read(event);
  });
  for (const name of ["pointerup", "pointercancel"]) plot.node.addEventListener(name, () => (held = null));
  plot.node.addEventListener("pointerleave", () => {
    hover = null;
    tip.hidden = true;
    plot.redraw();
  });
  plot.node.tabIndex = 0;
  plot.node.addEventListener("keydown", (event) => {
    const act = {
      ArrowLeft: () => shift(-0.15),
      ArrowRight: () => shift(0.15),
      "+": () => zoom(1 / 1.5),
      "=": () => zoom(1 / 1.5),
      "-": () => zoom(1.5),
      0: all,
      Home: () => bars && move(bars.first_ms, bars.first_ms + window.to - window.from),
      End: () => bars && move(bars.last_ms - (window.to - window.from), bars.last_ms),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // The bar and the trade under the pointer.
  const read = (event) => {
    if (!bars || !window || bars.ms.length === 0) return;
    const ms = window.from + shareAt(event) * (window.to - window.from);
    let at = bars.ms.findIndex((begin) => begin > ms) - 1;
    if (at < 0) at = ms < bars.ms[0] ? 0 : bars.ms.length - 1;
    const box = plot.node.getBoundingClientRect();
    hover = { x: event.clientX - box.left };
    const line = (name, value, kind) =>
      h("div", { class: "tip-line" }, h("span", {}, name), h("b", { class: kind ?? "" }, value));
    const open = trades.find((trade) => trade.entry_ms <= ms && ms <= trade.exit_ms + bars.timeframe_ms);
    replace(
      tip,
      h("div", { class: "tip-head" }, moment(bars.ms[at])),
      ["open", "high", "low", "close"].map((name) => line(name, number(bars[name][at]))),
      open &&
        h(
          "div",
          { class: "tip-part" },
          line(open.side > 0 ? "long" : "short", percent(open.ret, 2), open.ret >= 0 ? "good" : "bad"),
          line("closed by", open.reason),
        ),
    );
    tip.hidden = false;
    const left = hover.x + 14;
    tip.style.left = `${left + tip.offsetWidth > box.width ? hover.x - tip.offsetWidth - 14 : left}px`;
    tip.style.top = "16px";
    plot.redraw();
  };

  const button = (text, label, act) =>
    h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick: act }, text);
  plot.holder.append(tip);
  plot.node.classList.add("price");
  return {
    node: h(
      "div",
      {},
      plot.holder,
      h(
        "div",
        { class: "price-foot" },
        status,
        h("span", { class: "spacer" }),
        button("‹", "Earlier", () => shift(-0.4)),
        button("−", "Zoom out", () => zoom(2)),
        button("+", "Zoom in", () => zoom(0.5)),
        button("›", "Later", () => shift(0.4)),
        button("↔", "Show all", all),
      ),
    ),
    // Trades of another symbol, or of none.
    show: (next, list, moments) => {
      if (next !== symbol) window = null;
      symbol = next;
      trades = list;
      marks = moments;
      chosen = null;
      load();
    },
    choose: (trade) => {
      chosen = trade;
      const size = Math.max(trade.exit_ms - trade.entry_ms, (bars?.timeframe_ms ?? 1) * 30);
      move(trade.entry_ms - size * 0.8, trade.exit_ms + size * 0.8);
      plot.node.scrollIntoView({ block: "nearest", behavior: "smooth" });
    },
    close: () => {
      asked?.abort();
      clearTimeout(later);
      plot.close();
    },
  };
};

const arrow = (pen, x, y, side, size) => {
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x - size * 0.8, y + side * size * 1.5);
  pen.lineTo(x + size * 0.8, y + side * size * 1.5);
  pen.closePath();
  pen.fill();
};
