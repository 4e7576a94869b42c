// One trial: its parameters and figures at once, its chart and trades as soon as it has been evaluated again.

import { get, link, runPath } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { priceChart } from "./chart.js";
import { card, empty, failure, loading } from "./widget.js";
import { count, date, moment, percent, short } from "./format.js";
import { linePlot } from "./plot.js";
import { equityPlot, legend } from "./summary.js";
import { cell } from "./trials.js";

const TRADES = 100;

// Names of the columns that are parts of the data, and not single segments.
const PARTS = ["in sample", "out of sample", "holdout", "whole period"];

export const trialView = (main, run, trial) => {
  const asked = new AbortController();
  const path = runPath(run.name, `/trials/${trial}`);
  const chart = priceChart(run);
  let backtest = null;

  const rank = h("p", { class: "muted" });
  const params = h("div");
  const figures = h("div", { class: "scroll is-whole" });
  const notes = h("div");
  const symbols = h("select", { class: "select", "aria-label": "Symbol", onchange: () => load(symbols.value) });
  const symbolField = h("label", { class: "symbol", hidden: true }, h("span", { class: "muted" }, "Symbol"), symbols);
  const isRelative = () => !backtest?.is_additive;
  const equity = equityPlot("Equity by the day, beside the benchmark", 210);
  const drawdown = linePlot({
    label: "Drawdown by the day",
    height: 120,
    empty: "No day was traded",
    x: { kind: "time", read: date },
    y: { zero: true, read: (y) => (isRelative() ? percent(y, 2) : short(y)) },
  });
  const trades = h("div", { class: "scroll is-tall" });
  const chartCard = card("Price", { class: "whole", extra: symbolField }, chart.node);
  const body = h(
    "div",
    { class: "columns is-trial" },
    chartCard,
    h(
      "div",
      { class: "stack" },
      card(
        "Equity and drawdown",
        {
          extra: h("div", { class: "card-tools" }, legend(["c0", "trial"], ["c3", "benchmark"]), equity.scale),
        },
        equity.node,
        drawdown.node,
      ),
      card("Trades", {}, trades),
    ),
    h("div", { class: "stack" }, card("Figures", {}, figures), card("Parameters", {}, params)),
  );
  replace(
    main,
    h(
      "div",
      { class: "page-head" },
      h(
        "div",
        {},
        h("p", { class: "back" }, h("a", { href: link("run", run.name, "trials") }, "← All trials")),
        h("h2", { class: "trial-title" }, `Trial ${count(trial)}`),
        rank,
      ),
      h(
        "div",
        { class: "neighbours" },
        trial > 0 && h("a", { class: "button", href: link("run", run.name, "trial", String(trial - 1)) }, "‹ before"),
        h("a", { class: "button", href: link("run", run.name, "trial", String(trial + 1)) }, "next ›"),
      ),
    ),
    notes,
    body,
  );

  const drawTrial = (told) => {
    const objective = told.figures
      .filter((figure) => figure.kind === "objective")
      .map((figure) => `${figure.label} ${cell(figure, figure.value)}`);
    setText(
      rank,
      told.rank
        ? `Rank ${count(told.rank)} of ${count(told.n_trials)} · ${objective.join(" · ")}`
        : `Not valid: it made no trades, or did not meet the requirements · 1 of ${count(told.n_trials)}`,
    );
    const own = told.figures.filter((figure) => figure.kind === "parameter");
    replace(
      params,
      h(
        "dl",
        { class: "pairs" },
        own.map((figure) =>
          h(
            "div",
            {},
            h("dt", {}, figure.name),
            h("dd", { title: String(figure.value) }, figure.value === null ? "not active" : short(figure.value)),
          ),
        ),
      ),
      told.command &&
        h(
          "div",
          { class: "command" },
          h("code", {}, told.command),
          h(
            "button",
            {
              type: "button",
              class: "button is-quiet",
              onclick: (event) =>
                navigator.clipboard?.writeText(told.command).then(() => setText(event.target, "Copied")),
            },
            "Copy",
          ),
        ),
    );
    // What the study keeps, until there is more.
    if (!backtest)
      replace(
        figures,
        table(
          ["Stored"],
          told.figures
            .filter((figure) => figure.kind === "metric")
            .map((figure) => [figure.label, [cell(figure, figure.value)]]),
        ),
      );
  };

  const table = (columns, rows) =>
    h(
      "table",
      { class: "table is-dense figures" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "Figure"),
          columns.map((text) => h("th", { class: "num", scope: "col" }, text)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(([label, texts]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, label),
            texts.map((text) => h("td", { class: "num" }, text.replace("-", "−"))),
          ),
        ),
      ),
    );

  const drawTrades = (shown) => {
    const list = backtest.trades;
    if (list.length === 0)
      return replace(
        trades,
        empty(
          "The trial made no trade",
          h("p", { class: "muted" }, "Its entry condition was never true on this data."),
        ),
      );
    const several = backtest.symbols.length > 1 && !backtest.symbol;
    const row = (trade) =>
      h(
        "tr",
        { onclick: () => choose(trade) },
        h(
          "td",
          { class: "num" },
          h(
            "button",
            { type: "button", class: "as-link", onclick: (event) => (event.stopPropagation(), choose(trade)) },
            moment(trade.entry_ms),
          ),
        ),
        several && h("td", {}, trade.symbol),
        h(
          "td",
          {},
          h("span", { class: `tag ${trade.side > 0 ? "is-long" : "is-short"}` }, trade.side > 0 ? "long" : "short"),
        ),
        [trade.entry, trade.exit, trade.stop].map((price) => h("td", { class: "num" }, short(price))),
        h("td", { class: `num ${trade.ret >= 0 ? "good" : "bad"}` }, percent(trade.ret, 2, true)),
        h("td", { class: "num" }, trade.r === null ? "–" : short(trade.r)),
        h("td", { class: "num" }, count(trade.bars)),
        h("td", {}, trade.reason),
      );
    const heads = [
      ["Entry", "num"],
      several && ["Symbol", ""],
      ["Side", ""],
      ["In at", "num"],
      ["Out at", "num"],
      ["Stop", "num"],
      ["Return", "num"],
      ["R", "num"],
      ["Bars", "num"],
      ["Closed by", ""],
    ].filter(Boolean);
    const rest = list.length - shown;
    replace(
      trades,
      h(
        "table",
        { class: "table is-dense is-rows trades" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            heads.map(([text, kind]) => h("th", { scope: "col", class: kind }, text)),
          ),
        ),
        h("tbody", {}, list.slice(0, shown).map(row)),
      ),
      rest > 0 &&
        h(
          "button",
          { type: "button", class: "button more", onclick: () => drawTrades(shown + 5 * TRADES) },
          `Show ${count(Math.min(rest, 5 * TRADES))} more of ${count(backtest.n_trades)}`,
        ),
    );
  };

  const choose = (trade) => {
    const isOther = backtest.symbols.length > 1 && backtest.symbol !== trade.symbol && symbols.value !== trade.symbol;
    if (!isOther) return chart.choose(trade);
    symbols.value = trade.symbol;
    load(trade.symbol).then(() => {
      const same = backtest.trades.find((other) => other.entry_ms === trade.entry_ms && other.side === trade.side);
      if (same) setTimeout(() => chart.choose(same), 250);
    });
  };

  // Of many columns, those of the symbol that is shown, or those of all together.
  const columns = () => {
    const all = backtest.segments.map((_, at) => at);
    const own = all.filter((at) => backtest.segments[at].startsWith(backtest.symbol ?? " "));
    if (all.length <= 3) return all;
    if (own.length > 0 && own.length < all.length) return own.slice(0, 4);
    const totals = all.filter((at) => PARTS.includes(backtest.segments[at]));
    return totals.length > 0 ? totals : all.slice(0, 4);
  };

  const drawBacktest = () => {
    const several = backtest.symbols.length > 1;
    symbolField.hidden = !several;
    if (several && symbols.options.length === 0) {
      replace(
        symbols,
        h("option", { value: "" }, "all together"),
        backtest.symbols.map((one) =>
          h(
            "option",
            { value: one.name },
            `${one.name} · ${count(one.n_trades)} trades · ${one.change === null ? "–" : isRelative() ? percent(one.change, 1, true) : short(one.change)}`,
          ),
        ),
      );
    }
    const shown = columns();
    replace(
      figures,
      table(
        shown.map((at) => backtest.segments[at]),
        backtest.figures.map(([label, texts]) => [label, shown.map((at) => texts[at])]),
      ),
    );
    const { ms, drawdown: depth } = backtest.curve;
    equity.update("trial", "benchmark", backtest.curve, backtest.marks, backtest.is_additive);
    drawdown.tell({}, { kind: isRelative() ? "percent" : "number" });
    drawdown.update({
      series: [
        { name: "drawdown", points: depth.map((y, at) => [ms[at], y]), class: "c-bad", isArea: true },
      ],
      marks: backtest.marks.map((mark) => ({ x: mark.ms })),
    });
    drawTrades(TRADES);
    const lines = [
      ...(backtest.is_as_stored
        ? []
        : [
            "The objective differs from the one in the study: the program or the strategy language has changed since.",
          ]),
    ];
    replace(
      notes,
      lines.map((text) => h("p", { class: "alert is-warn" }, text)),
    );
    // The price is of one symbol: of all together, the first with trades.
    const symbol = backtest.symbol ?? (backtest.symbols.find((one) => one.n_trades > 0) ?? backtest.symbols[0])?.name;
    chart.show(
      symbol,
      backtest.trades.filter((trade) => trade.symbol === symbol),
      backtest.marks,
    );
    chartCard.querySelector("h2").textContent = `Price of ${symbol}`;
  };

  // Until it has been evaluated again, and if it cannot be, there is what the study stores.
  const showChart = (isThere) => {
    for (const node of body.children) node.hidden = !isThere && !node.contains(figures);
    body.classList.toggle("is-stored", !isThere);
  };

  const load = async (symbol) => {
    try {
      backtest = await get(`${path}/backtest${symbol ? `?symbol=${encodeURIComponent(symbol)}` : ""}`, asked.signal);
      showChart(true);
      drawBacktest();
    } catch (error) {
      if (error.name === "AbortError") return;
      showChart(false);
      replace(notes, h("div", { class: "card notice" }, failure(error)));
    }
  };
  showChart(false);
  replace(notes, loading("Evaluating the trial again"));
  get(path, asked.signal).then(
    (told) => {
      drawTrial(told);
      return load("");
    },
    (error) =>
      error.name !== "AbortError" &&
      replace(
        main,
        failure(error),
        h("p", {}, h("a", { class: "button", href: link("run", run.name, "trials") }, "All trials")),
      ),
  );
  return {
    close: () => {
      asked.abort();
      chart.close();
    },
  };
};
