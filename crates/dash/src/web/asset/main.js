// Addresses to pages: which one is shown, and what is around it.

import { follow, link } from "./api.js";
import { h, replace, setText } from "./dom.js";
import { failure, loading, pill } from "./widget.js";
import { parametersView } from "./parameters.js";
import { runView } from "./run.js";
import { runsView } from "./runs.js";
import { trialView } from "./trial.js";
import { trialsView } from "./trials.js";

const main = document.getElementById("main");
const crumbs = document.getElementById("crumbs");
const runHead = document.getElementById("run-head");
const linkState = document.getElementById("link-state");

// The run that is followed, across its pages.
class Run {
  constructor(name) {
    this.name = name;
    this.sections = {};
    this.hearers = new Set();
    this.error = null;
    this.stop = follow(
      name,
      (sections, delta) => {
        this.sections = sections;
        this.error = null;
        for (const hear of this.hearers) hear(sections, delta);
      },
      (state, error) => {
        setText(linkState, state === "live" ? "" : "connection lost, trying again");
        this.error = state === "refused" ? error : null;
        if (this.error && !this.sections.head) for (const hear of this.hearers) hear(this.sections, {});
      },
    );
  }

  // Calls back now and after every change. Returns a function that stops it.
  hear(hearer) {
    this.hearers.add(hearer);
    if (this.sections.head || this.error) hearer(this.sections, this.sections);
    return () => this.hearers.delete(hearer);
  }

  close() {
    this.stop();
    setText(linkState, "");
  }
}

let run = null;
let view = null;
let stopHead = null;

const parse = () => {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { parts, query: new URLSearchParams(query ?? "") };
};

const tabs = (name, active, hasTrials) => {
  const all = [["overview", "Overview", link("run", name)]];
  if (hasTrials) {
    all.push(["trials", "Trials", link("run", name, "trials")]);
    all.push(["parameters", "Parameters", link("run", name, "parameters")]);
  }
  return h(
    "nav",
    { class: "tabs", "aria-label": "Pages of this run" },
    all.map(([key, text, href]) => h("a", { href, "aria-current": key === active ? "page" : null }, text)),
  );
};

const showHead = (name, active) => {
  stopHead?.();
  stopHead = null;
  if (!run) return replace(runHead);
  const state = h("span");
  const title = h("p", { class: "muted run-title" });
  const nav = h("div");
  replace(
    runHead,
    h("div", { class: "run-head" }, h("div", { class: "run-name" }, h("h1", {}, name), state), title, nav),
  );
  let shownState = null;
  let shownTrials = null;
  stopHead = run.hear(({ head }) => {
    if (!head) return;
    setText(title, head.title);
    if (shownState !== head.state) replace(state, pill(head.state));
    shownState = head.state;
    if (shownTrials !== head.has_trials) replace(nav, tabs(name, active, head.has_trials));
    shownTrials = head.has_trials;
  });
  if (shownTrials === null) replace(nav, tabs(name, active, true));
};

const route = () => {
  const { parts, query } = parse();
  view?.close?.();
  view = null;
  const name = parts[0] === "run" ? parts[1] : null;
  if (run && run.name !== name) {
    run.close();
    run = null;
  }
  if (name && !run) run = new Run(name);
  const page = parts[2] ?? "overview";
  replace(main, loading("Loading"));
  replace(
    crumbs,
    name && [h("a", { href: "#/" }, "Runs"), h("span", { "aria-hidden": "true" }, "/"), h("span", {}, name)],
  );
  document.title = name ? `${name} · Tidemill` : "Tidemill";
  showHead(name, page === "trial" ? "trials" : page);
  try {
    if (!name) view = runsView(main);
    else if (page === "overview") view = runView(main, run);
    else if (page === "trials") view = trialsView(main, run, query);
    else if (page === "parameters") view = parametersView(main, run);
    else if (page === "trial" && /^\d+$/.test(parts[3] ?? "")) view = trialView(main, run, Number(parts[3]));
    else
      replace(
        main,
        failure({ message: "There is no such page", hint: "the name Tidemill leads to the list of runs" }),
      );
  } catch (error) {
    console.error(error);
    replace(main, failure(error));
  }
};

const themeButton = document.getElementById("theme");
const NEXT = { auto: "light", light: "dark", dark: "auto" };
const SIGN = { auto: "◐", light: "☀", dark: "☾" };
const showTheme = () => {
  const { wish } = document.documentElement.dataset;
  setText(themeButton, SIGN[wish] ?? SIGN.auto);
  const text = `Colours: ${wish}. Change to ${NEXT[wish] ?? "auto"}`;
  themeButton.title = text;
  themeButton.setAttribute("aria-label", text);
};
themeButton.addEventListener("click", () =>
  window.tidemillTheme(NEXT[document.documentElement.dataset.wish] ?? "auto"),
);
addEventListener("themechange", showTheme);
showTheme();

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => {
  route();
  scrollTo(0, 0);
});
route();
