// Prices of a symbol with the trades of a trial; bars come from the server as they are needed.

import { get, runPath } from "./api.js";
import { h, setText } from "./dom.js";
import { count, moment } from "./format.js";
import { PriceChart } from "./price.js";

// Bars of the server as the chart draws them, at their times: nights and weekends are gaps.
const drawn = (told, marks) => {
  const { ms, open, high, low, close, first_ms: first, last_ms: last, timeframe_ms: timeframe, joined } = told;
  const start = ms.map((at) => (at - first) / timeframe);
  const digits = (price) => (String(price).split(".")[1] ?? "").length;
  return {
    n: ms.length,
    nBars: (last - first) / timeframe + 1,
    start,
    end: start.map((at) => at + joined),
    time: ms,
    open,
    high,
    low,
    close,
    decimals: Math.min(8, Math.max(0, ...close.slice(0, 200).map(digits))),
    timeframe,
    marks,
    first,
    joined,
  };
};

export const priceChart = (run) => {
  let symbol = null;
  let marks = [];
  let asked = null;
  let later = 0;
  let wanted = null;
  // The trades of the page, and what the chart draws of each.
  let own = new Map();
  const node = h("canvas", { class: "price", role: "img", "aria-label": "Prices with entries, exits and stops" });
  node.tabIndex = 0;
  const overview = h("canvas", { class: "price-overview", "aria-hidden": "true" });
  const readout = h("p", { class: "readout num" });
  const status = h("span", { class: "muted num price-status" });

  const ask = async (view) => {
    asked?.abort();
    asked = new AbortController();
    const points = Math.max(200, Math.min(2000, Math.round(node.clientWidth / 3)));
    const query = new URLSearchParams({ symbol, points, ...view });
    if (view) query.set("points", Math.min(4000, points * 2));
    try {
      return drawn(await get(runPath(run.name, `/bars?${query}`), asked.signal), marks);
    } catch (error) {
      if (error.name !== "AbortError") setText(status, error.message);
      return null;
    }
  };

  const tell = () => {
    const { bars, from, to } = chart;
    const shown = chart.visibleTrades().length;
    node.dataset.bars = bars.n;
    node.dataset.trades = shown;
    const time = (at) => moment(bars.first + at * bars.timeframe);
    const joined = bars.joined > 1 ? ` · ${bars.joined} bars in one` : "";
    setText(status, `${time(from)} – ${time(to)} · ${count(shown, "trade")}${joined}`);
  };

  const moved = () => {
    const { bars, whole, from, to } = chart;
    if (bars.covers && (from < bars.covers[0] || to > bars.covers[1])) chart.feed(whole);
    tell();
    clearTimeout(later);
    later = setTimeout(async () => {
      // Some more on both sides, so that moving a little shows something at once.
      const room = (chart.to - chart.from) / 2;
      const covers = [chart.from - room, chart.to + room];
      const [from, to] = covers.map((at) => Math.round(whole.first + at * whole.timeframe));
      const finer = await ask({ from, to });
      if (!finer?.n) return;
      finer.covers = covers;
      chart.feed(finer);
      tell();
    }, 120);
  };

  const chart = new PriceChart({
    canvas: node,
    overview,
    readout,
    onSelect: (trade, reveal) => chart.select(trade, reveal),
    onView: moved,
    needsFocus: true,
  });

  const choose = (trade) => {
    wanted = chart.bars ? null : trade;
    if (!chart.bars) return;
    chart.select(own.get(trade) ?? null);
    node.scrollIntoView({ block: "nearest", behavior: "smooth" });
  };

  const act = (text, label, work) =>
    h(
      "button",
      { type: "button", class: "icon-button", "aria-label": label, title: label, onclick: () => chart.bars && work() },
      text,
    );
  const shift = (share) => chart.pan(share * (chart.to - chart.from));
  return {
    node: h(
      "div",
      {},
      readout,
      node,
      overview,
      h(
        "div",
        { class: "price-foot" },
        status,
        h("span", { class: "spacer" }),
        act("‹", "Earlier", () => shift(-0.4)),
        act("−", "Zoom out", () => chart.zoom(2)),
        act("+", "Zoom in", () => chart.zoom(0.5)),
        act("›", "Later", () => shift(0.4)),
        act("↔", "Show all", () => chart.fit()),
      ),
    ),
    // Trades of another symbol, or of none.
    show: async (next, list, moments) => {
      const isOther = next !== symbol;
      [symbol, marks] = [next, moments];
      if (isOther) chart.bars = null;
      const bars = chart.bars ? chart.whole : await ask();
      if (!bars) return;
      const at = (ms) => (ms - bars.first) / bars.timeframe;
      own = new Map(
        list.map((trade) => [
          trade,
          { ...trade, entry_idx: at(trade.entry_ms), exit_idx: at(trade.exit_ms), pnl: trade.ret },
        ]),
      );
      if (isOther) chart.show(bars, [...own.values()]);
      else chart.trades = [...own.values()];
      chart.select(null);
      tell();
      if (wanted) choose(wanted);
    },
    choose,
    close: () => {
      asked?.abort();
      clearTimeout(later);
      chart.close();
    },
  };
};
