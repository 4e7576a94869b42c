// Parts of the dashboard's pages that are made of elements.

import { fill, h } from "./dom.js";

export const s = (tag, props, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);

export const card = (title, props, ...children) => {
  const { extra, ...rest } = props ?? {};
  return h(
    "section",
    { ...rest, class: `card ${rest.class ?? ""}`, "aria-label": title },
    h("header", { class: "card-head" }, h("h2", {}, title), extra),
    ...children,
  );
};

export const pill = (state) => h("span", { class: `pill is-${state}` }, h("i", { "aria-hidden": "true" }), state);

export const empty = (title, ...detail) =>
  h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), ...detail);

export const failure = (error) =>
  h(
    "div",
    { class: "empty is-error", role: "alert" },
    h("p", { class: "empty-title" }, error.message ?? String(error)),
    error.hint && h("p", { class: "muted" }, error.hint),
  );

export const loading = (what) =>
  h("div", { class: "empty is-loading", role: "status" }, h("span", { class: "spinner" }), what);

// Which of a few is chosen; arrow keys move, as in every group of radio buttons.
export const choice = (label, options, chosen, change) => {
  const name = `choice-${Math.random().toString(36).slice(2)}`;
  return h(
    "fieldset",
    { class: "choice" },
    h("legend", { class: "hidden" }, label),
    options.map(([value, text]) =>
      h(
        "label",
        {},
        h("input", { type: "radio", name, value, checked: value === chosen, onchange: () => change(value) }),
        h("span", {}, text),
      ),
    ),
  );
};
