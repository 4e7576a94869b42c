// One run: what it found first, then how its machine does.

import { link } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { card, choice, empty, failure } from "./widget.js";
import { clock, compact, count, milliseconds, moment, percent, seconds, short } from "./format.js";
import { lanesPlot } from "./lanes.js";
import { linePlot } from "./plot.js";
import { studyPanel } from "./summary.js";
import { walkPanel } from "./walk.js";

const stat = (label) => {
  const value = h("dd", {}, "–");
  const detail = h("dd", { class: "stat-detail" });
  return {
    node: h("div", { class: "stat" }, h("dt", {}, label), value, detail),
    set: (text, more = "") => (setText(value, text), setText(detail, more)),
  };
};

// `trial_1234` leads to its page.
const named = (run, head, name) => {
  const found = /^trial_(\d+)$/.exec(name);
  if (!found) return name;
  const text = count(Number(found[1]));
  return head.has_trials ? h("a", { href: link("run", run.name, "trial", found[1]) }, text) : text;
};

export const runView = (main, run) => {
  let axis = "done";
  let isBuilt = false;
  // What the run found, if it is a study or a walk-forward.
  let panel = null;
  const stats = {
    best: stat("Best"),
    rate: stat("Speed"),
    left: stat("Time left"),
    elapsed: stat("At work"),
    busy: stat("Device busy"),
    fill: stat("Device full"),
    batches: stat("Batches"),
  };
  const meter = h("span", { class: "meter-fill" });
  const bar = h(
    "div",
    {
      class: "meter is-large",
      role: "progressbar",
      "aria-valuemin": "0",
      "aria-valuemax": "100",
      "aria-label": "Progress",
    },
    meter,
  );
  const amount = h("p", { class: "amount" });
  const alerts = h("div", { class: "alerts" });
  const convergence = linePlot({
    label: "The best score over the run",
    height: 300,
    empty: "No score yet",
    x: { kind: "number", read: count },
    y: {},
  });
  const busy = linePlot({
    label: "Share of the time for which the device was busy, and how full it was",
    height: 150,
    empty: "No share was reported",
    x: { kind: "seconds", read: seconds },
    y: { kind: "percent", low: 0, high: 1, read: (y) => percent(y) },
  });
  const rate = linePlot({
    label: "Speed over the run",
    height: 150,
    empty: "No speed yet",
    x: { kind: "seconds", read: seconds },
    y: { zero: true, read: short },
  });
  const lanes = lanesPlot();
  const [phases, top, actions, recent, config, values, workers] = Array.from({ length: 7 }, () => h("div", { class: "scroll" }));
  const over = choice(
    "Over",
    [
      ["done", "by progress"],
      ["time", "by time"],
    ],
    axis,
    (next) => {
      axis = next;
      drawConvergence(run.sections);
    },
  );
  const cards = {
    convergence: card("Convergence", { extra: over }, convergence.node),
    busy: card("Device busy and full", {}, busy.node),
    rate: card("Speed", {}, rate.node),
    top: card("Improvements", { extra: h("span", { class: "muted" }, "newest first") }, top),
    config: card("Configuration", {}, config),
    lanes: card("Lanes", {}, lanes.nodes),
    actions: card("Hypertune", {}, actions),
    values: card("Newest values", {}, values),
    workers: card("Workers", {}, workers),
  };
  const found = h("div", { class: "study-place" });
  const search = h("div", { class: "columns is-even" }, cards.convergence, cards.top);
  const page = [
    alerts,
    h("div", { class: "progress" }, amount, bar),
    found,
    search,
    h("h2", { class: "section" }, "Machine"),
    h(
      "section",
      { class: "card progress-card", "aria-label": "Figures of the run" },
      h(
        "dl",
        { class: "stats" },
        Object.values(stats).map((one) => one.node),
      ),
    ),
    h(
      "div",
      { class: "columns machine" },
      h("div", { class: "stack" }, cards.lanes, cards.workers, cards.actions, card("Events", {}, recent)),
      h("div", { class: "stack" }, cards.busy, cards.rate, card("Phases", {}, phases), cards.config, cards.values),
    ),
  ];

  // A run that searches nothing has no place for what it found.
  const drawCards = ({
    head,
    convergence: points = [],
    busy: shares = [],
    rate: speeds = [],
    top: best = [],
    config: told = {},
  }) => {
    // The best of one window is not that of the next.
    const isSearch = points.length + best.length > 0 || head.has_trials;
    search.hidden = !isSearch || head.workload === "walkforward";
    cards.busy.hidden = shares.length === 0 && head.is_over;
    cards.rate.hidden = speeds.length === 0 && head.is_over;
    cards.config.hidden = Object.keys(told).length === 0;
  };

  const drawConvergence = ({ convergence: points = [], head }) => {
    const column = axis === "done" ? 1 : 0;
    convergence.tell(
      axis === "done"
        ? { kind: "number", read: (x) => `${count(x)} ${head.progress}` }
        : { kind: "seconds", read: seconds },
    );
    const line = points.map((point) => [point[column], point[2]]);
    const right = axis === "done" ? head.done : head.elapsed_s;
    convergence.update({
      series: [{ name: head.score === "best" ? "best score" : head.score, points: line, class: "c0", isStep: true }],
      right: line.length ? right : undefined,
    });
  };

  const drawHead = (head) => {
    const share = head.total ? Math.min(1, head.done / head.total) : null;
    replace(
      amount,
      h("b", {}, count(head.done)),
      head.total && h("span", { class: "muted" }, ` of ${count(head.total)}`),
      ` ${head.progress}`,
      share !== null && h("span", { class: "amount-share" }, percent(share)),
    );
    bar.hidden = share === null || share === 1;
    meter.style.width = `${(share ?? 0) * 100}%`;
    bar.setAttribute("aria-valuenow", Math.round((share ?? 0) * 100));
    bar.classList.toggle("is-live", head.state === "running");
    stats.best.set(
      short(head.best),
      head.n_improvements
        ? `${count(head.n_improvements)} improvements`
        : head.is_lower_better
          ? "lower is better"
          : "",
    );
    stats.rate.set(head.rate ? `${compact(head.rate)}/s` : "–", head.progress);
    stats.left.set(head.is_over ? "–" : seconds(head.eta_s), head.is_over ? head.state : "at the present speed");
    stats.elapsed.set(
      seconds(head.elapsed_s),
      head.n_resumes
        ? `resumed ${count(head.n_resumes)}×`
        : head.started
          ? `since ${moment(Date.parse(head.started))} UTC`
          : "",
    );
    stats.busy.set(percent(head.busy), "newest 10 s");
    stats.fill.set(percent(head.fill), "newest 10 s");
    stats.batches.set(count(head.n_batches), head.n_batches ? `last improved in ${count(head.improved_at_batch)}` : "");
  };

  const drawAlerts = ({ head, warnings = [], fallbacks = [] }) => {
    const lines = [];
    if (head.state === "failed") lines.push(["bad", head.outcome ?? "The run failed"]);
    if (head.state === "killed")
      lines.push([
        "bad",
        "The run's process is gone and recorded no end. What it wrote is below; the same command resumes it.",
      ]);
    if (head.state === "silent") lines.push(["warn", "This run has written no event for a while."]);
    if (head.n_dropped)
      lines.push(["warn", `${count(head.n_dropped)} events came too fast and are missing from the journal`]);
    for (const note of fallbacks.slice(0, 3)) lines.push(["warn", `Fell back to the CPU: ${note.text}`]);
    for (const note of warnings.slice(0, 5)) lines.push(["warn", note.text || note.source]);
    replace(
      alerts,
      lines.map(([kind, text]) => h("p", { class: `alert is-${kind}` }, text)),
    );
  };

  const drawPhases = (list) => {
    if (list.length === 0) return replace(phases, empty("No phase was timed yet"));
    const most = Math.max(...list.map((phase) => phase.total_ms), 1e-9);
    const line = (phase) => {
      const fill = h("span", { class: "share-fill" });
      fill.style.width = `${(phase.total_ms / most) * 100}%`;
      return h(
        "tr",
        {},
        h("th", { scope: "row" }, phase.name, h("span", { class: "share" }, fill)),
        [phase.mean_ms, phase.p99_ms].map((ms) => h("td", { class: "num" }, milliseconds(ms))),
        h("td", { class: "num" }, percent(phase.share)),
      );
    };
    const sorted = [...list].sort((a, b) => b.total_ms - a.total_ms);
    replace(
      phases,
      h(
        "table",
        { class: "table is-dense" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "Phase"),
            ["Mean", "p99", "Of wall"].map((text) => h("th", { class: "num", scope: "col" }, text)),
          ),
        ),
        h("tbody", {}, sorted.map(line)),
      ),
    );
  };

  const drawWorkers = (list) => {
    cards.workers.hidden = list.length === 0;
    const row = (one) =>
      h(
        "tr",
        {},
        h("td", { class: "num" }, one.lane),
        h("td", {}, one.is_present ? one.name : `${one.name} (gone)`),
        h("td", {}, one.device),
        [one.shards, one.trials, one.rate, one.copies, one.lost, one.resent].map((value) =>
          h("td", { class: "num" }, value === null ? "–" : count(Math.round(value))),
        ),
      );
    const names = ["Shards", "Trials", "Trials/s", "Copies", "Lost", "Sent again"];
    replace(
      workers,
      h(
        "table",
        { class: "table is-dense" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { class: "num", scope: "col" }, "Lane"),
            ["Worker", "On"].map((text) => h("th", { scope: "col" }, text)),
            names.map((text) => h("th", { class: "num", scope: "col" }, text)),
          ),
        ),
        h("tbody", {}, list.map(row)),
      ),
    );
  };

  const drawTop = (list, head) => {
    if (list.length === 0) return replace(top, empty(head.is_over ? "Nothing was found" : "Nothing was found yet"));
    const names = [...new Set(list.flatMap((one) => Object.keys(one.parameters)))].slice(0, 12);
    const row = (one, at) =>
      h(
        "tr",
        {},
        h("td", { class: "num" }, named(run, head, one.name)),
        h("td", { class: "num strong" }, short(one.score)),
        h("td", { class: "num" }, list[at + 1] ? short(Math.abs(one.score - list[at + 1].score)) : "–"),
        names.map((name) => h("td", { class: "num" }, short(one.parameters[name]))),
      );
    replace(
      top,
      h(
        "table",
        { class: "table is-dense" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { class: "num", scope: "col" }, head.progress === "trials" ? "Trial" : "Name"),
            h("th", { class: "num", scope: "col" }, "Score"),
            h("th", { class: "num", scope: "col" }, "Better by"),
            names.map((name) => h("th", { class: "num", scope: "col" }, name)),
          ),
        ),
        h("tbody", {}, list.slice(0, 10).map(row)),
      ),
    );
  };

  const drawActions = (list) => {
    cards.actions.hidden = list.length === 0;
    const effect = ({ effect: found }) => found && `${found.measure}: ${short(found.before)} → ${short(found.after)}`;
    const row = (one) =>
      h(
        "tr",
        {},
        h("td", { class: "num muted" }, clock(one.at)),
        h(
          "td",
          {},
          h("span", { class: `tag ${one.is_applied ? "is-on" : ""}` }, one.is_applied ? "applied" : "advice"),
        ),
        h("td", {}, one.knob),
        h("td", { class: "num" }, `${short(one.old)} → ${short(one.new)}`),
        h("td", { class: "prose" }, one.cause),
        h("td", { class: "num" }, effect(one) || "–"),
      );
    replace(
      actions,
      h(
        "table",
        { class: "table is-dense" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["When", "What", "Knob", "Change", "Why", "Effect"].map((text, at) =>
              h("th", { scope: "col", class: [0, 3, 5].includes(at) ? "num" : "" }, text),
            ),
          ),
        ),
        h("tbody", {}, list.map(row)),
      ),
    );
  };

  const drawRecent = (list) => {
    if (list.length === 0) return replace(recent, empty("No events yet"));
    const row = (event) =>
      h(
        "tr",
        {},
        h("td", { class: "num muted" }, clock(event.at)),
        h("td", {}, h("span", { class: "tag" }, event.phase)),
        h("td", { class: "code" }, event.step),
        h("td", { class: "muted" }, event.device ?? ""),
        h("td", { class: "prose" }, event.note ?? ""),
        h("td", { class: "num" }, event.ms === null ? "" : milliseconds(event.ms)),
      );
    replace(recent, h("table", { class: "table is-dense" }, h("tbody", {}, list.slice(0, 40).map(row))));
  };

  const pairs = (node, entries) =>
    replace(
      node,
      h(
        "dl",
        { class: "pairs" },
        entries.map(([name, value]) =>
          h(
            "div",
            {},
            h("dt", {}, name),
            h("dd", {}, typeof value === "object" && value !== null ? JSON.stringify(value) : short(value)),
          ),
        ),
      ),
    );

  const stop = run.hear((sections, delta) => {
    if (!sections.head) {
      if (run.error) replace(main, failure(run.error));
      return;
    }
    if (!isBuilt) {
      replace(main, page);
      isBuilt = true;
      delta = sections;
    }
    const { head } = sections;
    if (!panel) panel = head.has_trials ? studyPanel(run) : head.workload === "walkforward" ? walkPanel(run) : null;
    if (panel && !panel.node.isConnected) {
      replace(found, panel.node);
      // The best trial stands there.
      stats.best.node.remove();
    }
    panel?.look(head, sections.values);
    if (delta.head) drawHead(head);
    drawCards(sections);
    if (delta.head || delta.warnings || delta.fallbacks) drawAlerts(sections);
    if (delta.convergence || delta.head) drawConvergence(sections);
    if (delta.busy || delta.fill)
      busy.update({
        series: [
          { name: "busy", points: sections.busy ?? [], class: "c1", isArea: true },
          { name: "full", points: sections.fill ?? [], class: "c3" },
        ],
      });
    if (delta.rate)
      rate.update({ series: [{ name: `${head.progress} per second`, points: delta.rate, class: "c2", isArea: true }] });
    if (delta.lanes) {
      cards.lanes.hidden = delta.lanes.spans.length === 0;
      lanes.update(delta.lanes);
    }
    if (delta.phases) drawPhases(delta.phases);
    if (delta.workers) drawWorkers(delta.workers);
    if (delta.top) drawTop(delta.top, head);
    if (delta.actions) drawActions(delta.actions);
    if (delta.recent) drawRecent(delta.recent);
    if (delta.config)
      pairs(
        config,
        Object.entries(delta.config).filter(
          ([name]) => !["title", "workload", "progress", "score", "better", "lanes"].includes(name),
        ),
      );
    if (delta.values) {
      const own = Object.entries(delta.values).filter(([name]) => ![head.progress, head.score, "busy", "fill"].includes(name));
      cards.values.hidden = own.length === 0;
      pairs(values, own);
    }
  });
  return {
    close: () => {
      stop();
      panel?.close();
    },
  };
};
