// The list of runs.

import { get, link } from "./api.js";
import { h, replace } from "./dom.js";
import { empty, failure, pill } from "./widget.js";
import { ago, count, percent, short } from "./format.js";

const EVERY_MS = 2000;

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

const row = (run) =>
  h(
    "tr",
    {},
    h(
      "td",
      { class: "run-cell" },
      h("a", { class: "row-link", href: link("run", run.name) }, run.name),
      h("span", { class: "muted run-sub" }, run.error ?? run.title),
    ),
    h("td", { "data-label": "Kind" }, run.workload || "–"),
    h("td", { "data-label": "State" }, pill(run.state)),
    h("td", { "data-label": "Progress" }, progress(run)),
    h("td", { class: "num", "data-label": "Best" }, short(run.best)),
    h("td", { class: "num muted", "data-label": "Started" }, ago(run.started)),
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

  const draw = () => {
    const found = runs.filter((run) =>
      `${run.name} ${run.title} ${run.workload} ${run.state}`.toLowerCase().includes(wanted),
    );
    const state = JSON.stringify([found, Math.floor(Date.now() / 10000)]);
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
              ["Run", "Kind", "State", "Progress"].map((text) => h("th", { scope: "col" }, text)),
              ["Best", "Started", "Last event"].map((text) => h("th", { scope: "col", class: "num" }, text)),
            ),
          ),
          h("tbody", {}, found.map(row)),
        ),
      ),
    );
    if (focused) list.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  };

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
    },
  };
};
