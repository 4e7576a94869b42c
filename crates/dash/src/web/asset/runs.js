// The list of runs: what each found first, then how it does.

import { get, link, runPath } from "./api.js";
import { h, replace } from "./dom.js";
import { empty, failure, pill } from "./widget.js";
import { ago, count, percent, short } from "./format.js";
import { sparkline } from "./plot.js";

const EVERY_MS = 2000;

// The least time between two looks at the summary of a run that is not over.
const SUMMARY_MS = 10000;

// Points of the small equity lines.
const POINTS = 60;

const PARTS = { in_sample: "In sample", out_of_sample: "Out of sample", holdout: "Holdout" };

// What runs found, asked for one after the other and kept for as long as the list is open.
const summaries = (changed) => {
  const known = new Map();
  const asked = new AbortController();
  let queue = [];
  let isBusy = false;

  const work = async () => {
    if (isBusy) return;
    isBusy = true;
    while (queue.length > 0 && !asked.signal.aborted) {
      const { name, key, path } = queue.shift();
      let told = null;
      try {
        told = await get(runPath(name, `/${path}?points=${POINTS}`), asked.signal);
      } catch (error) {
        if (error.name === "AbortError") break;
      }
      known.set(name, { key, at: Date.now(), told: told ?? known.get(name)?.told ?? null });
      changed();
    }
    isBusy = false;
  };

  return {
    of: (name) => known.get(name)?.told ?? null,
    look: (runs) => {
      queue = [];
      for (const run of runs) {
        const isWalk = run.workload === "walkforward" && run.state === "complete";
        if (!run.has_trials && !isWalk) continue;
        const key = JSON.stringify([run.state, run.best, run.state === "running" ? 0 : run.done]);
        const own = known.get(run.name);
        const isOld = own && own.key !== key && (run.state !== "running" || Date.now() - own.at > SUMMARY_MS);
        if (!own || isOld) queue.push({ name: run.name, key, path: isWalk ? "walk" : "summary" });
      }
      work();
    },
    close: () => asked.abort(),
  };
};

const progress = (run) => {
  if (!run.total)
    return [h("span", { class: "num" }, count(run.done)), h("span", { class: "muted" }, ` ${run.progress}`)];
  const share = Math.min(1, run.done / run.total);
  const bar = h("span", { class: "meter-fill" });
  bar.style.width = `${share * 100}%`;
  return h(
    "span",
    { class: "meter-line", title: `${count(run.done)} of ${count(run.total)} ${run.progress}` },
    h("span", { class: "meter" }, bar),
    h("span", { class: "num" }, percent(share, 0)),
  );
};

// A study is judged; of a walk-forward there is the probability that its Sharpe ratio is above 0.
const verdict = (told) => {
  if (!told) return "–";
  if (!told.verdict) return h("span", { class: "prose-cell", title: told.sentence }, told.words);
  return h("span", { class: "verdict-pill", "data-grade": told.verdict.grade ?? "none" }, told.verdict.words);
};

// Returns on a part: its own and that of the benchmark. Of a walk-forward, what its windows made as they were traded.
const returns = (told, name) => {
  if (told?.windows) return name === "out_of_sample" ? [told.total_return, told.benchmark_return] : null;
  const { columns = [], rows = [] } = told?.best?.parts ?? {};
  const at = columns.findIndex((column) => column.key === name);
  const of = (key) => rows.find((row) => row.key === key)?.values[at] ?? null;
  return at < 0 ? null : [of("total_return"), of("benchmark_return")];
};

const part = (told, name) => {
  const found = returns(told, name);
  if (!found) return "–";
  const [made, held] = found;
  return [
    h("span", { class: made > 0 ? "good" : made < 0 ? "bad" : "" }, percent(made, 1, true)),
    typeof held === "number" && h("span", { class: "muted cell-sub" }, `market ${percent(held, 1, true)}`),
  ];
};

const drawn = (told) => {
  const curve = told?.curve ?? told?.best?.curve;
  return curve ? sparkline(curve) : "–";
};

const row = (run, told) =>
  h(
    "tr",
    {},
    h(
      "td",
      { class: "run-cell" },
      h("a", { class: "row-link", href: link("run", run.name) }, run.name),
      h("span", { class: "muted run-sub" }, run.error ?? run.title),
    ),
    h("td", { "data-label": "Verdict" }, verdict(told)),
    Object.keys(PARTS).map((name) => h("td", { class: "num", "data-label": PARTS[name] }, h("span", {}, part(told, name)))),
    h("td", { class: "spark-cell", "data-label": "Equity" }, drawn(told)),
    h("td", { "data-label": "State" }, pill(run.state)),
    h("td", { "data-label": "Progress" }, progress(run)),
    h("td", { class: "num", "data-label": "Best" }, short(run.best)),
    h("td", { class: "num muted", "data-label": "Last event" }, ago(run.last)),
  );

export const runsView = (main) => {
  let wanted = "";
  let runs = [];
  let folder = "";
  let timer = 0;
  let isClosed = false;
  let shown = "";
  const summary = h("p", { class: "muted" });
  const list = h("div");
  const search = h("input", {
    type: "search",
    class: "search",
    placeholder: "Find a run",
    "aria-label": "Find a run by name, kind, state or title",
    oninput: (event) => {
      wanted = event.target.value.toLowerCase();
      draw();
    },
  });
  const head = h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Runs"), summary), search);

  // A row is made anew only where it changed, so that a click is not lost when another run tells what it found.
  const rows = new Map();
  const rowOf = (run) => {
    const told = known.of(run.name);
    const key = JSON.stringify([run, told, ago(run.last)]);
    if (rows.get(run.name)?.key !== key) rows.set(run.name, { key, node: row(run, told) });
    return rows.get(run.name).node;
  };

  const draw = () => {
    const found = runs.filter((run) =>
      `${run.name} ${run.title} ${run.workload} ${run.state}`.toLowerCase().includes(wanted),
    );
    const state = JSON.stringify([found, found.map((run) => known.of(run.name)), Math.floor(Date.now() / 10000)]);
    if (state === shown) return;
    shown = state;
    // What has the focus keeps it, as a list that is read anew must not lose it.
    const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const live = runs.filter((run) => run.state === "running").length;
    replace(summary, `${count(runs.length)} in ${folder}`, live > 0 && ` · ${live} running`);
    if (runs.length === 0) {
      replace(
        list,
        empty(
          "No runs here yet",
          h("p", { class: "muted" }, "Start one, and it appears here by itself:"),
          h("pre", {}, "tidemill sweep --out runs/first"),
        ),
      );
      return;
    }
    if (found.length === 0) return replace(list, empty("No run matches"));
    replace(
      list,
      h(
        "div",
        { class: "card table-card" },
        h(
          "table",
          { class: "table cards-on-phone runs" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["Run", "Verdict"].map((text) => h("th", { scope: "col" }, text)),
              Object.keys(PARTS).map((name) =>
                h("th", { scope: "col", class: "num", title: "Return of the best trial, and of the benchmark" }, PARTS[name]),
              ),
              ["Equity of the best", "State", "Progress"].map((text) => h("th", { scope: "col" }, text)),
              ["Best", "Last event"].map((text) => h("th", { scope: "col", class: "num" }, text)),
            ),
          ),
          h(
            "tbody",
            {},
            found.map((run) => rowOf(run)),
          ),
        ),
      ),
    );
    known.look(found);
    if (focused) list.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  };

  const known = summaries(() => !isClosed && draw());

  const load = async () => {
    try {
      const answer = await get("api/runs");
      if (isClosed) return;
      ({ runs, folder } = answer);
      draw();
    } catch (error) {
      if (isClosed) return;
      shown = "";
      replace(list, failure(error));
    }
    timer = setTimeout(load, EVERY_MS);
  };
  replace(main, head, list);
  load();
  return {
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      known.close();
    },
  };
};
