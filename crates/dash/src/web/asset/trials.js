// All trials of a run: sorted, filtered and cut into pages by the server. The URL holds the query.

import { get, link, runPath } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { empty, failure, loading } from "./widget.js";
import { count, short } from "./format.js";

const PAGE = 50;

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
    offset: Number(query.get("offset")) || 0,
  };
  let extra = new Set((query.get("columns") ?? "").split(",").filter(Boolean));
  let answer = null;
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
      h("div", { class: "spacer" }),
      more,
      summary,
    ),
    list,
    pages,
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

  const load = async () => {
    asked?.abort();
    asked = new AbortController();
    list.classList.add("is-waiting");
    const ask = new URLSearchParams({ limit: PAGE, offset: wish.offset, order: wish.order });
    if (wish.sort) ask.set("sort", wish.sort);
    if (wish.filter) ask.set("filter", wish.filter);
    try {
      answer = await get(runPath(run.name, `/trials?${ask}`), asked.signal);
      setText(problem, "");
      input.removeAttribute("aria-invalid");
      draw();
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

  const shown = () =>
    answer.columns
      .map((column, at) => ({ column, at }))
      .filter(({ column }) => (column.is_shown ? !extra.has(`-${column.name}`) : extra.has(column.name)));

  const heading = ({ column }) => {
    const isSorted = answer.sort === column.name;
    const order = isSorted ? (wish.order === "desc" ? "descending" : "ascending") : null;
    const next = isSorted && wish.order === "desc" ? "asc" : "desc";
    const sign = !isSorted ? "" : wish.order === "desc" ? "↓" : "↑";
    return h(
      "th",
      { scope: "col", class: "num", "aria-sort": order },
      h(
        "button",
        {
          type: "button",
          class: "sort",
          "data-column": column.name,
          title: column.name,
          onclick: () => change({ sort: column.name, order: next, offset: 0 }),
        },
        column.kind === "objective" && column.label.length > 22 ? "objective" : column.label,
        h("span", { class: "sign", "aria-hidden": "true" }, sign),
      ),
    );
  };

  const draw = () => {
    const focused = document.activeElement?.dataset?.column;
    const columns = shown();
    const { n_matched: matched, n_trials: all, offset, rows } = answer;
    setText(summary, wish.filter ? `${count(matched)} of ${count(all)} trials` : `${count(all)} trials`);
    more.hidden = true;
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
    const row = (values) => {
      const href = link("run", run.name, "trial", String(values[0]));
      return h(
        "tr",
        { onclick: (event) => event.target.closest("a") || getSelection().toString() || (location.hash = href) },
        columns.map(({ column, at }) =>
          column.kind === "trial"
            ? h("td", { class: "num" }, h("a", { href }, count(values[at])))
            : h("td", { class: `num ${column.kind === "objective" ? "strong" : ""}` }, cell(column, values[at])),
        ),
      );
    };
    replace(
      list,
      h(
        "div",
        { class: "scroll" },
        h(
          "table",
          { class: "table is-dense is-rows trials" },
          h("thead", {}, h("tr", {}, columns.map(heading))),
          h("tbody", {}, rows.map(row)),
        ),
      ),
    );
    if (focused) list.querySelector(`[data-column="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
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
    const last = Math.floor((matched - 1) / PAGE) * PAGE;
    replace(
      pages,
      matched > PAGE && [
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
          checked: column.is_shown ? !extra.has(`-${column.name}`) : extra.has(column.name),
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
      const own = answer.columns.filter((column) => column.kind === kind);
      return own.length > 0 && h("div", {}, h("h3", {}, title), own.map(box));
    };
    replace(
      columnMenu,
      h("summary", { class: "button" }, "Columns"),
      h("div", { class: "menu-body" }, group("Metrics", "metric"), group("Parameters", "parameter")),
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
