// What a study found: the verdict, the best trial on every part of the data, its equity, the best trials by rank.

import { get, link, runPath } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { card, choice, empty } from "./widget.js";
import { count, date, percent, short } from "./format.js";
import { partsTable } from "./parts.js";
import { linePlot } from "./plot.js";
import { cell } from "./trials.js";

// The least time between two looks at a study that runs: its best trial is evaluated again each time.
const EVERY_MS = 4000;

const BEST = 10;
const BEST_PARAMS = 6;

const checks = (list) =>
  h(
    "ul",
    { class: "checks" },
    list.map((check) =>
      h(
        "li",
        { class: check.survived ? "is-survived" : "is-failed" },
        h("span", { class: "check-sign", "aria-label": check.survived ? "survived" : "failed" }, check.survived ? "✓" : "✗"),
        h("b", {}, check.name),
        h("span", {}, check.words),
      ),
    ),
  );

// Equity beside the benchmark, on a linear or a logarithmic scale.
export const equityPlot = (label, height = 260) => {
  let drawn = null;
  const plot = linePlot({
    label,
    height,
    empty: "No day was traded",
    x: { kind: "time", read: date },
    y: { read: (y) => (drawn?.isAdditive ? short(y) : percent(y - 1)) },
  });
  const scale = choice(
    "Scale",
    [
      ["linear", "linear"],
      ["log", "log"],
    ],
    "linear",
    (next) => {
      plot.tell({}, { isLog: next === "log" });
      if (drawn) plot.update(drawn.data);
    },
  );
  return {
    node: plot.node,
    scale,
    update: (name, benchmark, { start, ms, equity, buy_hold: held }, marks, isAdditive) => {
      const points = (values) => values.map((y, at) => [ms[at], y]);
      const first = ms.length > 0 ? [[ms[0] - 86400000, start]] : [];
      const series = [{ name, points: [...first, ...points(equity)], class: "c0" }];
      if (held.length > 0) series.push({ name: benchmark ?? "buy and hold", points: [...first, ...points(held)], class: "c3" });
      drawn = { isAdditive, data: { series, marks: marks.map((mark) => ({ x: mark.ms, label: mark.label })) } };
      plot.tell({}, isAdditive ? { kind: "number", base: 0, isLog: false } : { kind: "percent", base: 1 });
      scale.hidden = isAdditive;
      plot.update(drawn.data);
    },
  };
};

export const legend = (...names) =>
  h(
    "div",
    { class: "legend" },
    names.filter(Boolean).map(([kind, text]) => h("span", {}, h("i", { class: kind }), text)),
  );

// The best trials by rank, in sample and out of sample. Neighbours are one row.
const bestTable = (run, page, unseen) => {
  const columns = page.columns.map((column, at) => ({ column, at }));
  const of = (kind) => columns.filter(({ column }) => column.kind === kind && column.is_shown);
  const outside = unseen.columns.map((column, at) => ({ column, at })).filter(({ column }) => column.is_shown);
  const stored = of("unseen");
  const values = new Map(unseen.rows);
  const params = of("parameter").slice(0, BEST_PARAMS);
  const text = (column) => (column.label.length > 22 ? "objective" : column.label);
  const head = (list) => list.map(({ column }) => h("th", { scope: "col", class: "num" }, text(column)));
  const inside = [...of("objective"), ...of("metric")];
  const row = (own, at) => {
    const out = values.get(own[0]) ?? [];
    return h(
      "tr",
      {},
      h("td", { class: "num muted" }, String(at + 1)),
      h("td", { class: "num" }, h("a", { href: link("run", run.name, "trial", String(own[0])) }, count(own[0]))),
      page.n_folded !== null && h("td", { class: "num muted" }, count(page.counts[at])),
      inside.map(({ column, at: place }, first) =>
        h("td", { class: `num ${first === 0 ? "strong" : ""}` }, cell(column, own[place])),
      ),
      stored.map(({ column, at: place }) => h("td", { class: "num" }, cell(column, own[place]))),
      outside.map(({ column, at: place }, first) =>
        h("td", { class: `num ${first === 0 ? "strong" : ""}` }, cell(column, out[place])),
      ),
      params.map(({ column, at: place }) => h("td", { class: "num" }, cell(column, own[place]))),
    );
  };
  const spans = [
    ["", page.n_folded === null ? 2 : 3],
    ["In sample", inside.length],
    ["Out of sample", stored.length + outside.length],
    ["Parameters", params.length],
  ].filter(([, n]) => n > 0);
  return h(
    "table",
    { class: "table is-dense best" },
    h(
      "thead",
      {},
      h(
        "tr",
        { class: "spans" },
        spans.map(([title, n]) =>
          h("th", { colspan: String(n), scope: "colgroup", class: `span ${title ? "is-named" : ""}` }, title),
        ),
      ),
      h(
        "tr",
        {},
        ["#", "Trial", page.n_folded !== null && "Sets"]
          .filter(Boolean)
          .map((title) => h("th", { scope: "col", class: "num" }, title)),
        head([...inside, ...stored, ...outside, ...params]),
      ),
    ),
    h("tbody", {}, page.rows.map(row)),
  );
};

// The part of a run's page that tells of its study. `look` says that the run has changed.
export const studyPanel = (run) => {
  const asked = new AbortController();
  let isAsking = false;
  let seen = null;
  let wanted = null;
  let timer = 0;
  const grade = h("p", { class: "grade" });
  const sentence = h("p", { class: "muted" });
  const detail = h("details", { class: "verdict-detail" });
  const verdict = h("section", { class: "card verdict", "aria-label": "Verdict" }, h("div", {}, grade, sentence), detail);
  const parts = h("div", { class: "scroll is-whole" });
  const hints = h("div", { class: "hints" });
  const equity = equityPlot("Equity of the best trial by the day, beside its benchmark", 330);
  const names = h("span");
  const bestTitle = h("a", { href: link("run", run.name, "trials") }, "All trials");
  const best = h("div", { class: "scroll is-whole" }, empty("Nothing was found yet"));
  const partsCard = card("Best trial", {}, parts, hints);
  const equityCard = card("Equity of the best trial", { extra: h("div", { class: "card-tools" }, names, equity.scale) }, equity.node);
  const bestCard = card("Best trials by rank", { class: "best-card", extra: bestTitle }, best);
  const node = h(
    "div",
    { class: "stack study" },
    verdict,
    h("div", { class: "columns is-even" }, partsCard, equityCard),
    bestCard,
  );

  const draw = (told) => {
    const { verdict: judged, best: trial } = told;
    verdict.dataset.grade = judged.grade ?? "none";
    setText(grade, judged.words);
    setText(sentence, judged.sentence);
    detail.hidden = judged.checks.length === 0;
    if (!detail.hidden) {
      const isOpen = detail.open;
      replace(detail, h("summary", {}, "Why: all checks"), checks(judged.checks));
      detail.open = isOpen;
    }
    partsCard.hidden = equityCard.hidden = bestCard.hidden = !trial;
    if (!trial) return;
    partsCard.querySelector("h2").textContent = `Best trial, ${count(trial.trial)}`;
    const href = link("run", run.name, "trial", String(trial.trial));
    replace(
      hints,
      trial.unavailable && h("p", { class: "muted note" }, `Its figures by part are not available: ${trial.unavailable}.`),
      trial.edge && h("p", { class: "hint-edge note" }, trial.edge),
      h("p", { class: "note" }, h("a", { href }, "Trades, chart and all figures")),
    );
    equityCard.hidden = !trial.parts;
    if (!trial.parts) return replace(parts, empty(`${told.objective} ${short(trial.objective)} in sample`));
    const table = partsTable(trial.parts);
    table?.classList.add("table", "is-dense");
    // A line breaks between two dates, not inside one.
    for (const dates of table?.querySelectorAll("small") ?? []) setText(dates, dates.textContent.replaceAll("-", "\u2011"));
    replace(parts, table);
    replace(names, legend(["c0", "best trial"], ["c3", trial.benchmark ?? "buy and hold"]));
    equity.update("best trial", trial.benchmark, trial.curve, trial.marks, trial.is_additive);
  };

  const load = async () => {
    isAsking = true;
    wanted = null;
    try {
      const { signal } = asked;
      draw(await get(runPath(run.name, "/summary"), signal));
      const page = await get(runPath(run.name, `/trials?fold=groups&limit=${BEST}`), signal);
      const none = { columns: [], rows: [] };
      const show = (unseen) => page.rows.length > 0 && replace(best, bestTable(run, page, unseen));
      show(none);
      if (page.rows.length > 0 && !page.columns.some((column) => column.kind === "unseen"))
        // Without the data there is what is stored; the trial says why.
        show(await get(runPath(run.name, `/unseen?trials=${page.rows.map((own) => own[0])}`), signal).catch(() => none));
      node.classList.add("is-ready");
    } catch (error) {
      if (error.name !== "AbortError") {
        setText(grade, "not judged");
        setText(sentence, error.message);
      }
    }
    timer = setTimeout(() => {
      isAsking = false;
      if (wanted !== null) load();
    }, EVERY_MS);
  };

  return {
    node,
    look: (head) => {
      const now = JSON.stringify([head.best, head.state]);
      if (now === seen) return;
      seen = now;
      wanted = now;
      if (!isAsking) load();
    },
    close: () => {
      asked.abort();
      clearTimeout(timer);
    },
  };
};
