// What a walk-forward made: the result in words, the stitched equity beside its benchmark, and every window.

import { get, link, runPath } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { card, empty } from "./widget.js";
import { MINUS, count, date, percent, short } from "./format.js";
import { linePlot } from "./plot.js";
import { equityPlot, legend } from "./summary.js";

const WINDOW_DIGITS = 4;

// The study of a window is a folder inside that of the walk-forward.
const windowRun = (run, at) => `${run.name}/window-${String(at + 1).padStart(WINDOW_DIGITS, "0")}`;

const value = (found) => (found === null || found === undefined ? "–" : short(found));
const toned = (share) => h("td", { class: `num ${share > 0 ? "good" : share < 0 ? "bad" : ""}` }, percent(share, 2, true));

// Parameters that changed from window to window, and those that did not.
const parameters = (windows) => {
  const names = [...new Set(windows.flatMap((one) => Object.keys(one.parameters)))];
  const isSame = (name) => {
    const known = windows.map((one) => one.parameters[name]).filter((found) => found !== null && found !== undefined);
    return known.every((found) => found === known[0]);
  };
  return { varied: names.filter((name) => !isSame(name)), same: names.filter(isSame) };
};

const windowTable = (run, told) => {
  const { windows, setting } = told;
  const hasMarket = windows.some((one) => typeof one.benchmark_return === "number");
  const { varied, same } = parameters(windows);
  const hasSharpe = setting.objective !== "sharpe";
  const head = (text) => h("th", { scope: "col", class: "num" }, text);
  const span = (text, n) =>
    n > 0 && h("th", { colspan: String(n), scope: "colgroup", class: `span ${text ? "is-named" : ""}` }, text);
  const objective = setting.objective.length > 22 ? "objective" : setting.objective;
  const row = (one, at) => {
    const hold = one.benchmark_return;
    return h(
      "tr",
      {},
      h("td", { class: "num muted" }, String(at + 1)),
      h("td", { class: "num" }, one.train_from),
      h("td", { class: "num" }, one.test_from),
      h("td", { class: "num" }, one.test_to),
      h("td", { class: "num" }, value(one.objective[0])),
      hasSharpe && h("td", { class: "num" }, value(one.sharpe[0])),
      h("td", { class: "num strong" }, value(one.objective[1])),
      hasSharpe && h("td", { class: "num" }, value(one.sharpe[1])),
      toned(one.total_return),
      hasMarket && h("td", { class: "num" }, percent(hold, 2, true)),
      hasMarket && toned(one.total_return - hold),
      h("td", { class: "num" }, count(one.trades)),
      h(
        "td",
        { class: "num" },
        one.trial === null
          ? "none valid"
          : h("a", { href: link("run", windowRun(run, at), "trial", String(one.trial)) }, count(one.trial)),
      ),
      varied.map((name) => h("td", { class: "num" }, value(one.parameters[name]))),
    );
  };
  return [
    h(
      "table",
      { class: "table is-dense windows" },
      h(
        "thead",
        {},
        h(
          "tr",
          { class: "spans" },
          span("", 4),
          span("In sample", hasSharpe ? 2 : 1),
          span("Out of sample", 3 + (hasSharpe ? 1 : 0) + (hasMarket ? 2 : 0)),
          span("Chosen", 1 + varied.length),
        ),
        h(
          "tr",
          {},
          ["#", "Search from", "Trade from", "To", objective].map(head),
          hasSharpe && head("Sharpe"),
          head(objective),
          hasSharpe && head("Sharpe"),
          head("Return"),
          hasMarket && ["Benchmark", "Excess"].map(head),
          ["Trades", "Trial", ...varied].map(head),
        ),
      ),
      h("tbody", {}, windows.map(row)),
    ),
    same.length > 0 &&
      h(
        "p",
        { class: "muted note windows-same" },
        `The same in all windows: ${same.map((name) => `${name} ${value(windows.find((one) => name in one.parameters)?.parameters[name])}`).join(", ")}.`,
      ),
  ];
};

// The part of a run's page that tells of its walk-forward. `look` says that the run has changed.
export const walkPanel = (run) => {
  const asked = new AbortController();
  let seen = null;
  const words = h("p", { class: "grade" });
  const sentence = h("p", { class: "muted" });
  const figures = h("div", { class: "scroll is-whole" });
  const windows = h("div", { class: "scroll is-whole" });
  const names = h("span");
  const equity = equityPlot("Equity of all windows one after the other, beside the benchmark");
  let isAdditive = false;
  const drawdown = linePlot({
    label: "Drawdown of the stitched equity",
    height: 110,
    empty: "No day was traded",
    x: { kind: "time", read: date },
    y: { zero: true, read: (y) => (isAdditive ? short(y) : percent(y, 2)) },
  });
  const body = [
    h(
      "div",
      { class: "columns is-wide-right" },
      card("As traded, all windows together", {}, figures),
      card(
        "Stitched equity and drawdown",
        { extra: h("div", { class: "card-tools" }, names, equity.scale) },
        equity.node,
        drawdown.node,
      ),
    ),
    card("Windows", {}, windows),
  ];
  const place = h("div", { class: "stack" });
  const node = h(
    "div",
    { class: "stack walk" },
    h("section", { class: "card verdict", "aria-label": "Verdict" }, words, sentence),
    place,
  );

  const draw = (told) => {
    const minus = (text) => text.replace(/(?<=^|\s)-(?=\d)/g, MINUS);
    setText(words, minus(told.words));
    setText(sentence, minus(told.sentence));
    replace(place, body);
    replace(
      figures,
      h(
        "table",
        { class: "table is-dense figures" },
        h(
          "tbody",
          {},
          told.figures.map(([name, text]) =>
            h(
              "tr",
              { "data-figure": name },
              h("th", { scope: "row" }, name),
              h("td", { class: "num" }, minus(text)),
            ),
          ),
        ),
      ),
    );
    const { curve } = told;
    const begins = told.windows.map((one) => ({ ms: Date.parse(one.test_from), label: "" }));
    isAdditive = told.is_additive;
    replace(names, legend(["c0", "as traded"], curve.buy_hold.length > 0 && ["c3", told.benchmark]));
    equity.update("as traded", told.benchmark, curve, begins, isAdditive);
    drawdown.tell({}, { kind: isAdditive ? "number" : "percent" });
    drawdown.update({
      series: [{ name: "drawdown", points: curve.drawdown.map((y, at) => [curve.ms[at], y]), class: "c-bad", isArea: true }],
      marks: begins.map(({ ms }) => ({ x: ms })),
    });
    replace(windows, windowTable(run, told));
    node.classList.add("is-ready");
  };

  return {
    node,
    look: (head, values) => {
      const now = JSON.stringify([head.state, head.last]);
      if (now === seen) return;
      seen = now;
      if (!head.is_over) {
        const traded = values?.windows;
        setText(words, "Not put together yet");
        setText(sentence, `${traded ? `${count(traded, "window")} traded so far. ` : ""}Windows are put together when all have been traded.`);
        return replace(place);
      }
      get(runPath(run.name, "/walk"), asked.signal).then(draw, (error) => {
        if (error.name === "AbortError") return;
        setText(words, "Not put together");
        setText(sentence, error.message);
        replace(place, error.hint && empty(error.hint));
      });
    },
    close: () => asked.abort(),
  };
};
