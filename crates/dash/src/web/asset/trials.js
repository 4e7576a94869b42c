// All trials of a run: sorted, filtered, folded and cut into pages by the server. The URL holds the query.

import { get, link, runPath } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { empty, failure, loading } from "./widget.js";
import { count, short } from "./format.js";

const PAGE = 50;

// Members of a group that are shown when it is unfolded.
const MEMBERS = 20;

// Kinds of columns from left to right, and what stands above those that share a heading.
const KINDS = [
  ["trial", ""],
  ["count", ""],
  ["objective", "In sample"],
  ["metric", "In sample"],
  ["unseen", "Out of sample"],
  ["parameter", "Parameters"],
];
const COUNT = { column: { name: "count", label: "Sets", kind: "count", is_shown: true }, at: -1 };

export const cell = (column, value) => {
  if (value === null || value === undefined) return "–";
  if (column.is_percent && typeof value === "number") return (value * 100).toFixed(2).replace("-", "−");
  return short(value);
};

export const trialsView = (main, run, query) => {
  const wish = {
    sort: query.get("sort") ?? "",
    order: query.get("order") ?? "desc",
    filter: query.get("filter") ?? "",
    fold: query.get("fold") === "no" ? "no" : "",
    offset: Number(query.get("offset")) || 0,
  };
  let extra = new Set((query.get("columns") ?? "").split(",").filter(Boolean));
  let answer = null;
  // Columns that are not stored but evaluated for the trials shown, and the values by the number of the trial.
  const unseen = { columns: [], rows: new Map() };
  // Cells that wait for them, so that nothing under the pointer is made anew when they come.
  let waiting = [];
  // Members of the groups that are unfolded, by the trial that stands for each.
  let unfolded = new Map();
  let asked = null;
  let typing = 0;

  const problem = h("p", { class: "field-error", id: "filter-error", role: "alert" });
  const input = h("input", {
    type: "text",
    class: "filter",
    value: wish.filter,
    spellcheck: false,
    autocomplete: "off",
    placeholder: "trades >= 30 and sharpe > 1",
    "aria-label": "Filter",
    "aria-describedby": "filter-error",
    oninput: () => {
      clearTimeout(typing);
      typing = setTimeout(() => change({ filter: input.value.trim(), offset: 0 }), 350);
    },
    onkeydown: (event) => {
      if (event.key !== "Enter") return;
      clearTimeout(typing);
      change({ filter: input.value.trim(), offset: 0 });
    },
  });
  const folded = h("label", { class: "check" });
  const trouble = h("p", { class: "muted note", hidden: true });
  const summary = h("p", { class: "muted", role: "status" });
  const more = h("button", { type: "button", class: "button is-quiet", hidden: true, onclick: () => load() });
  const columnMenu = h("details", { class: "menu", hidden: true });
  const pages = h("nav", { class: "pages", "aria-label": "Pages" });
  const list = h("div", { class: "card table-card" }, loading("Reading the trials"));
  replace(
    main,
    h(
      "div",
      { class: "tools" },
      h("div", { class: "field" }, input, problem),
      columnMenu,
      folded,
      h("div", { class: "spacer" }),
      more,
      summary,
    ),
    list,
    trouble,
    pages,
  );
  replace(
    folded,
    h("input", {
      type: "checkbox",
      checked: !wish.fold,
      onchange: (event) => change({ fold: event.target.checked ? "" : "no", offset: 0 }),
    }),
    h("span", { title: "Equal and neighbouring parameter sets share a row" }, "Fold neighbours"),
  );

  const address = () => {
    const stated = new URLSearchParams();
    for (const [name, value] of Object.entries(wish))
      if (value && !(name === "order" && value === "desc")) stated.set(name, value);
    if (extra.size) stated.set("columns", [...extra].join(","));
    const text = stated.toString();
    return `${link("run", run.name, "trials")}${text ? `?${text}` : ""}`;
  };

  const change = (next) => {
    Object.assign(wish, next);
    history.replaceState(null, "", address());
    load();
  };

  const path = (more) => {
    const ask = new URLSearchParams({ order: wish.order, ...more });
    if (wish.sort) ask.set("sort", wish.sort);
    if (wish.filter) ask.set("filter", wish.filter);
    return runPath(run.name, `/trials?${ask}`);
  };

  const load = async () => {
    asked?.abort();
    asked = new AbortController();
    const { signal } = asked;
    list.classList.add("is-waiting");
    try {
      answer = await get(path({ limit: PAGE, offset: wish.offset, ...(!wish.fold && { fold: "groups" }) }), signal);
      setText(problem, "");
      input.removeAttribute("aria-invalid");
      unfolded = new Map();
      unseen.rows = new Map();
      draw();
      list.classList.remove("is-waiting");
      await evaluate(answer.rows, signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 400 && wish.filter) {
        setText(problem, error.message);
        input.setAttribute("aria-invalid", "true");
        if (!answer) replace(list, empty("Nothing to show: the filter is not valid"));
      } else replace(list, failure(error));
    }
    list.classList.remove("is-waiting");
  };

  // Figures out of sample of some rows, unless the study stores them.
  const evaluate = async (rows, signal) => {
    if (rows.length === 0 || answer.columns.some((column) => column.kind === "unseen")) return;
    try {
      const told = await get(runPath(run.name, `/unseen?trials=${rows.map((values) => values[0])}`), signal);
      const isNew = unseen.columns.length !== told.columns.length;
      unseen.columns = told.columns;
      for (const [trial, values] of told.rows) unseen.rows.set(trial, values);
      trouble.hidden = true;
      if (isNew) return draw();
      for (const { node, trial, column, at } of waiting) setText(node, cell(column, unseen.rows.get(trial)?.[at]));
    } catch (error) {
      if (error.name === "AbortError") throw error;
      setText(trouble, `No figures out of sample: ${error.message}`);
      trouble.hidden = false;
    }
  };

  const unfold = async (trial) => {
    if (unfolded.delete(trial)) return draw();
    const { signal } = asked;
    try {
      const told = await get(path({ limit: MEMBERS + 1, fold: trial }), signal);
      // The first is the one that stands for all.
      unfolded.set(trial, { rows: told.rows.slice(1), n_rows: told.n_rows - 1 });
      draw();
      await evaluate(told.rows.slice(1), signal);
    } catch (error) {
      if (error.name !== "AbortError") replace(list, failure(error));
    }
  };

  const isChosen = (column) => (column.is_shown ? !extra.has(`-${column.name}`) : extra.has(column.name));

  const shown = () => {
    const all = [
      ...answer.columns.map((column, at) => ({ column, at })),
      ...unseen.columns.map((column, at) => ({ column, at, isEvaluated: true })),
      ...(answer.n_folded === null ? [] : [COUNT]),
    ].filter(({ column }) => isChosen(column));
    return KINDS.flatMap(([kind]) => all.filter(({ column }) => column.kind === kind));
  };

  // What stands above several columns: in sample, out of sample, parameters.
  const spans = (columns) => {
    const out = [];
    for (const { column } of columns) {
      const [, title] = KINDS.find(([kind]) => kind === column.kind);
      if (out.length > 0 && out[out.length - 1].title === title) out[out.length - 1].n += 1;
      else out.push({ title, n: 1 });
    }
    return out.map(({ title, n }) =>
      h("th", { colspan: String(n), scope: "colgroup", class: `span ${title ? "is-named" : ""}` }, title),
    );
  };

  const heading = ({ column, isEvaluated }) => {
    const text = ["objective", "unseen"].includes(column.kind) && column.label.length > 22 ? "objective" : column.label;
    if (isEvaluated || column.kind === "count") {
      const why = isEvaluated
        ? "Evaluated for the trials shown, so that trials cannot be sorted by it"
        : "Equal and neighbouring parameter sets that share the row";
      return h("th", { scope: "col", class: "num", title: why, "data-column": column.name }, text);
    }
    const isSorted = answer.sort === column.name;
    const order = isSorted ? (wish.order === "desc" ? "descending" : "ascending") : null;
    const next = isSorted && wish.order === "desc" ? "asc" : "desc";
    const sign = !isSorted ? "" : wish.order === "desc" ? "↓" : "↑";
    return h(
      "th",
      { scope: "col", class: "num", "aria-sort": order, "data-column": column.name },
      h(
        "button",
        {
          type: "button",
          class: "sort",
          "data-column": column.name,
          title: column.name,
          onclick: () => change({ sort: column.name, order: next, offset: 0 }),
        },
        text,
        h("span", { class: "sign", "aria-hidden": "true" }, sign),
      ),
    );
  };

  const place = (values, size, { column, at, isEvaluated }) => {
    const [trial] = values;
    if (column.kind === "trial")
      return h("td", { class: "num" }, h("a", { href: link("run", run.name, "trial", String(trial)) }, count(trial)));
    if (column.kind === "count") {
      const isOpen = unfolded.has(trial);
      const label = isOpen ? "Fold its neighbours again" : `Show the ${count(size - 1)} neighbours`;
      return h(
        "td",
        { class: "num" },
        size > 1 &&
          h(
            "button",
            {
              type: "button",
              class: "as-link unfold",
              "aria-expanded": String(isOpen),
              "aria-label": label,
              title: label,
              "data-trial": String(trial),
              onclick: (event) => (event.stopPropagation(), unfold(trial)),
            },
            `${isOpen ? "▾" : "▸"} ${count(size)}`,
          ),
      );
    }
    const value = isEvaluated ? unseen.rows.get(trial)?.[at] : values[at];
    const isFirst = column.kind === "objective" || column.name === "test_objective";
    const node = h("td", { class: `num ${isFirst ? "strong" : ""}` }, cell(column, value));
    if (isEvaluated) waiting.push({ node, trial, column, at });
    return node;
  };

  const draw = () => {
    const { column: focused, trial: pressed } = document.activeElement?.dataset ?? {};
    const columns = shown();
    const { n_matched: matched, n_trials: all, n_rows: total, n_folded: looked, offset, rows, counts } = answer;
    const trials = wish.filter ? `${count(matched)} of ${count(all)} trials` : `${count(all)} trials`;
    const groups = total === 1 ? "1 group" : `${count(total)} groups`;
    const which = looked < matched ? `, the first ${count(looked)} in this order in ${groups}` : ` in ${groups}`;
    setText(summary, looked === null ? trials : `${trials}${which}`);
    more.hidden = true;
    waiting = [];
    drawMenu();
    if (rows.length === 0) {
      replace(
        list,
        all === 0
          ? empty("No trial is finished yet", h("p", { class: "muted" }, "They appear batch by batch."))
          : empty(
              "No trial matches the filter",
              h(
                "button",
                {
                  type: "button",
                  class: "button",
                  onclick: () => ((input.value = ""), change({ filter: "", offset: 0 })),
                },
                "Clear the filter",
              ),
            ),
      );
      replace(pages);
      return;
    }
    const line = (values, size, kind) => {
      const href = link("run", run.name, "trial", String(values[0]));
      return h(
        "tr",
        {
          class: kind,
          onclick: (event) => event.target.closest("a") || getSelection().toString() || (location.hash = href),
        },
        columns.map((one) => place(values, size, one)),
      );
    };
    const group = (values, at) => {
      const members = unfolded.get(values[0]);
      const rest = members ? members.n_rows - members.rows.length : 0;
      return [
        line(values, counts[at], ""),
        members?.rows.map((own) => line(own, 1, "is-member")),
        rest > 0 &&
          h(
            "tr",
            { class: "is-member is-rest" },
            h("td", { colspan: String(columns.length), class: "muted" }, `and ${count(rest)} more`),
          ),
      ];
    };
    replace(
      list,
      h(
        "div",
        { class: "scroll" },
        h(
          "table",
          { class: "table is-dense is-rows trials" },
          h("thead", {}, h("tr", { class: "spans" }, spans(columns)), h("tr", {}, columns.map(heading))),
          h("tbody", {}, rows.map(group)),
        ),
      ),
    );
    if (focused) list.querySelector(`button[data-column="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    if (pressed) list.querySelector(`.unfold[data-trial="${CSS.escape(pressed)}"]`)?.focus({ preventScroll: true });
    const to = (text, next, isOff, label) =>
      h(
        "button",
        {
          type: "button",
          class: "button",
          disabled: isOff,
          "aria-label": label,
          onclick: () => change({ offset: next }),
        },
        text,
      );
    const last = Math.floor((total - 1) / PAGE) * PAGE;
    replace(
      pages,
      total > PAGE && [
        to("«", 0, offset === 0, "First page"),
        to("‹", Math.max(0, offset - PAGE), offset === 0, "Previous page"),
        h("span", { class: "muted num" }, `${count(offset + 1)} – ${count(offset + rows.length)}`),
        to("›", offset + PAGE, offset >= last, "Next page"),
        to("»", Math.min(last, 1000000 - PAGE), offset >= last, "Last page"),
      ],
    );
  };

  const drawMenu = () => {
    const isOpen = columnMenu.open;
    const box = (column) =>
      h(
        "label",
        {},
        h("input", {
          type: "checkbox",
          checked: isChosen(column),
          onchange: (event) => {
            const key = column.is_shown ? `-${column.name}` : column.name;
            if (event.target.checked === column.is_shown) extra.delete(key);
            else extra.add(key);
            history.replaceState(null, "", address());
            draw();
          },
        }),
        h("span", {}, column.label),
      );
    const group = (title, kind) => {
      const own = [...answer.columns, ...unseen.columns].filter((column) => column.kind === kind);
      return own.length > 0 && h("div", {}, h("h3", {}, title), own.map(box));
    };
    replace(
      columnMenu,
      h("summary", { class: "button" }, "Columns"),
      h("div", { class: "menu-body" }, 
        group("In sample", "metric"),
        group("Out of sample", "unseen"),
        group("Parameters", "parameter"),
      ),
    );
    columnMenu.hidden = false;
    columnMenu.open = isOpen;
  };

  const away = (event) => {
    if (columnMenu.open && !columnMenu.contains(event.target)) columnMenu.open = false;
  };
  const escape = (event) => {
    if (event.key === "Escape") columnMenu.open = false;
  };
  document.addEventListener("click", away);
  document.addEventListener("keydown", escape);
  const stop = run.hear(({ head }) => {
    if (!answer || !head) return;
    const fresh = Math.max(0, head.done - answer.n_trials);
    more.hidden = fresh === 0;
    setText(more, `${count(fresh)} new – show`);
  });
  load();
  return {
    close: () => {
      asked?.abort();
      stop();
      document.removeEventListener("click", away);
      document.removeEventListener("keydown", escape);
    },
  };
};
