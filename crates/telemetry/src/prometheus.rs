//! A snapshot as metrics in the text format of Prometheus, version 0.0.4.

use std::fmt::Write;

use crate::snapshot::{RunState, Snapshot};

/// The content type that goes with the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The state of a run as metrics, each with its meaning. Values that are not known yet are omitted.
///
/// Every value of the run's events is there under its own name, as `tidemill_value{name="…"}`; what means the same in every
/// workload has a metric of its own.
pub fn prometheus(of: &Snapshot) -> String {
    let mut page = Page::default();
    let labels =
        [("run", of.run.as_str()), ("workload", &of.workload), ("title", &of.title), ("version", VERSION)];
    page.gauge("tidemill_run_info", "What is running; always 1.").sample(&labels, 1.0);
    let states = [RunState::Running, RunState::Complete, RunState::Stopped, RunState::Failed];
    let mut family = page.gauge("tidemill_run_state", "1 for the state of the run.");
    for state in states {
        family = family.sample(&[("state", state.name())], f64::from(u8::from(of.state == state)));
    }
    page.gauge("tidemill_last_event_timestamp_seconds", "Time of the newest event of the run.")
        .known(of.last.map(|last| last.as_ms() as f64 / 1e3));
    page.counter("tidemill_elapsed_seconds_total", "Time at work, without interruptions.")
        .one(of.elapsed_s());
    page.counter("tidemill_resumes_total", "How often the run was resumed.").one(of.n_resumes as f64);
    progress(&mut page, of);
    phases(&mut page, of);
    page.counter("tidemill_events_total", "Events of the run.").one(of.n_events as f64);
    page.counter("tidemill_events_dropped_total", "Events that are missing in the journal.")
        .one(of.n_dropped as f64);
    page.counter("tidemill_warnings_total", "Warnings of the run.").one(of.n_warnings as f64);
    page.counter("tidemill_fallbacks_total", "Fall-backs to the CPU although a GPU was wanted.")
        .one(of.n_fallbacks as f64);
    page.counter("tidemill_hypertune_actions_total", "Advice and actions of the hypertuner.")
        .one(of.n_actions as f64);
    let mut family = page.gauge("tidemill_value", "The newest of every value that the run reports.");
    for (name, value) in of.values.iter() {
        family = family.sample(&[("name", name)], *value);
    }
    page.text
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn progress(page: &mut Page, of: &Snapshot) {
    let unit = [("unit", of.progress.as_str())];
    page.counter("tidemill_progress_total", "How much is done, in the unit of the run.")
        .sample(&unit, of.done);
    if let Some(total) = of.total {
        page.gauge("tidemill_progress_goal", "How much there is to do.").sample(&unit, total);
    }
    if of.progress == "trials" {
        page.counter("tidemill_trials_total", "Trials that are done.").one(of.done);
    }
    page.gauge("tidemill_progress_rate", "Progress per second, as measured last.").known(of.rate.newest());
    page.gauge("tidemill_eta_seconds", "Time until all is done at the present pace.").known(of.eta_s());
    page.counter("tidemill_batches_total", "Batches that are done.").one(of.n_batches as f64);
    page.gauge("tidemill_best_score", "The best score so far.").known(of.best);
    page.counter("tidemill_improvements_total", "How often the best score was improved.")
        .one(of.n_improvements as f64);
    page.gauge("tidemill_batches_since_improvement", "Batches since the best score was improved.")
        .one(of.n_batches.saturating_sub(of.improved_at_batch) as f64);
    page.gauge(
        "tidemill_device_busy_ratio",
        "Share of the time for which the device was busy, as measured last.",
    )
    .known(of.busy.newest());
    page.gauge("tidemill_device_fill_ratio", "How full the device was, as measured last.")
        .known(of.fill.newest());
}

fn phases(page: &mut Page, of: &Snapshot) {
    const NAME: &str = "tidemill_phase_seconds";
    let mut family = page.family(NAME, "How long the steps of a phase take.", "summary");
    for (phase, stats) in &of.phases {
        for (quantile, share) in [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99)] {
            if let Some(ms) = stats.quantile_ms(share) {
                family = family.sample(&[("phase", phase), ("quantile", quantile)], ms / 1e3);
            }
        }
        family = family.part("_sum", &[("phase", phase)], stats.total_ms / 1e3);
        family = family.part("_count", &[("phase", phase)], stats.n_lasting() as f64);
    }
    let mut family = page.counter(
        "tidemill_phase_device_seconds_total",
        "Time of a phase by where it ran: gpu, cpu or cpu_fallback.",
    );
    for (phase, stats) in &of.phases {
        for (device, ms) in
            [("gpu", stats.gpu_ms), ("cpu", stats.cpu_ms), ("cpu_fallback", stats.fallback_ms)]
        {
            family = family.sample(&[("phase", phase), ("device", device)], ms / 1e3);
        }
    }
}

/// The text as far as it is written.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn gauge<'a>(&'a mut self, name: &'a str, help: &'a str) -> Family<'a> {
        self.family(name, help, "gauge")
    }

    fn counter<'a>(&'a mut self, name: &'a str, help: &'a str) -> Family<'a> {
        self.family(name, help, "counter")
    }

    fn family<'a>(&'a mut self, name: &'a str, help: &'a str, kind: &'a str) -> Family<'a> {
        Family { page: self, name, help, kind, is_empty: true }
    }
}

/// The samples of one metric. What it means is written with the first one, because a metric without samples is none.
struct Family<'a> {
    page: &'a mut Page,
    name: &'a str,
    help: &'a str,
    kind: &'a str,
    is_empty: bool,
}

impl Family<'_> {
    fn one(self, value: f64) {
        self.sample(&[], value);
    }

    fn known(self, value: Option<f64>) {
        if let Some(value) = value {
            self.one(value);
        }
    }

    fn sample(self, labels: &[(&str, &str)], value: f64) -> Self {
        self.part("", labels, value)
    }

    /// A sample of a part of the metric, such as its sum.
    fn part(mut self, suffix: &str, labels: &[(&str, &str)], value: f64) -> Self {
        let text = &mut self.page.text;
        if self.is_empty {
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP {0} {1}\n# TYPE {0} {2}\n", self.name, self.help, self.kind);
            self.is_empty = false;
        }
        let _ = write!(text, "{}{suffix}", self.name);
        for (at, (label, value)) in labels.iter().enumerate() {
            let _ = write!(text, "{}{label}=\"{}\"", if at == 0 { '{' } else { ',' }, escaped(value));
        }
        text.push_str(if labels.is_empty() { " " } else { "} " });
        let _ = match value {
            value if value.is_nan() => writeln!(text, "NaN"),
            value if value.is_infinite() => writeln!(text, "{}Inf", if value > 0.0 { '+' } else { '-' }),
            value => writeln!(text, "{value}"),
        };
        self
    }
}

/// A label's value as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::event::{DeviceMode, Event};

    /// A metric's type, and its samples by name and labels.
    type Parsed = BTreeMap<String, (String, Vec<(String, BTreeMap<String, String>, f64)>)>;

    /// Reads the format, and panics at whatever contradicts it.
    fn parse(text: &str) -> Parsed {
        let mut families = Parsed::new();
        let mut family = String::new();
        assert!(text.ends_with('\n'));
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, meaning) = help.split_once(' ').unwrap();
                assert!(!meaning.is_empty());
                let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).unwrap();
                assert!(["gauge", "counter", "summary"].contains(&kind), "{kind}");
                assert!(
                    families.insert(name.to_owned(), (kind.to_owned(), Vec::new())).is_none(),
                    "{name} twice"
                );
                family = name.to_owned();
                continue;
            }
            let end = line.find(['{', ' ']).unwrap();
            let (name, mut rest) = line.split_at(end);
            assert!(name.starts_with(|first: char| first.is_ascii_alphabetic()), "{line}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
            let (kind, samples) = families.get_mut(&family).unwrap();
            let suffix = name.strip_prefix(&family).unwrap_or_else(|| panic!("{line} in {family}"));
            assert!(suffix.is_empty() || kind == "summary" && ["_sum", "_count"].contains(&suffix), "{line}");
            assert!(kind != "counter" || name.ends_with("_total"), "{line}");
            let mut labels = BTreeMap::new();
            if let Some(inner) = rest.strip_prefix('{') {
                rest = inner;
                loop {
                    let (label, after) = rest.split_once("=\"").unwrap();
                    let (value, after) = quoted(after);
                    assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
                    match after.split_at(1) {
                        (",", after) => rest = after,
                        ("}", after) => {
                            rest = after;
                            break;
                        }
                        _ => panic!("{line}"),
                    }
                }
            }
            let value = rest.strip_prefix(' ').unwrap().replace("Inf", "inf").parse().unwrap();
            samples.push((name.to_owned(), labels, value));
        }
        families
    }

    /// A quoted value, and what follows its closing quote.
    fn quoted(text: &str) -> (String, &str) {
        let mut value = String::new();
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return (value, &text[at + 1..]),
                '\\' => value.push(match chars.next().unwrap().1 {
                    'n' => '\n',
                    c @ ('"' | '\\') => c,
                    c => panic!("\\{c}"),
                }),
                c => value.push(c),
            }
        }
        panic!("no closing quote: {text}")
    }

    fn one(parsed: &Parsed, name: &str) -> f64 {
        let (_, samples) = parsed.get(name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(samples.len(), 1, "{name}");
        samples[0].2
    }

    fn labelled(parsed: &Parsed, sample: &str, labels: &[(&str, &str)]) -> f64 {
        let wanted: BTreeMap<_, _> = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let mut samples = parsed.values().flat_map(|(_, samples)| samples);
        let found = samples.find(|(name, labels, _)| name == sample && *labels == wanted);
        found.unwrap_or_else(|| panic!("no {sample} {labels:?}")).2
    }

    #[test]
    fn a_run_is_told_in_the_format() {
        let mut snapshot = Snapshot::default();
        let title = "a \"quoted\" title\\path\nsecond line";
        let start =
            Event::new("r-1", "run", "start").parameter("title", title).parameter("workload", "sweep");
        snapshot.apply(&start.value("total", 4000.0));
        for batch in 1..=3 {
            let event = Event::new("r-1", "kernel", format!("batch_{batch}"))
                .lasting_ms(250.0)
                .on(DeviceMode::Gpu { stream: 1 })
                .value("trials", f64::from(batch) * 1000.0)
                .value("best", 1.5)
                .value("lost", f64::NAN)
                .value("busy", 0.97)
                .value("fill", 0.25);
            snapshot.apply(&event);
        }
        snapshot.apply(&Event::new("r-1", "journal", "dropped").value("dropped", 12.0));
        snapshot.apply(&Event::new("r-1", "warning", "data").note("a gap"));
        let parsed = parse(&prometheus(&snapshot));
        assert_eq!(one(&parsed, "tidemill_trials_total"), 3000.0);
        assert_eq!(one(&parsed, "tidemill_best_score"), 1.5);
        assert_eq!(one(&parsed, "tidemill_device_busy_ratio"), 0.97);
        assert_eq!(one(&parsed, "tidemill_device_fill_ratio"), 0.25);
        assert_eq!(one(&parsed, "tidemill_events_dropped_total"), 12.0);
        assert_eq!(one(&parsed, "tidemill_warnings_total"), 1.0);
        assert_eq!(one(&parsed, "tidemill_batches_total"), 3.0);
        assert_eq!(one(&parsed, "tidemill_batches_since_improvement"), 2.0);
        assert_eq!(labelled(&parsed, "tidemill_progress_goal", &[("unit", "trials")]), 4000.0);
        assert_eq!(labelled(&parsed, "tidemill_phase_seconds_sum", &[("phase", "kernel")]), 0.75);
        assert_eq!(labelled(&parsed, "tidemill_phase_seconds_count", &[("phase", "kernel")]), 3.0);
        let gpu = [("phase", "kernel"), ("device", "gpu")];
        assert_eq!(labelled(&parsed, "tidemill_phase_device_seconds_total", &gpu), 0.75);
        assert_eq!(labelled(&parsed, "tidemill_run_state", &[("state", "running")]), 1.0);
        assert_eq!(labelled(&parsed, "tidemill_run_state", &[("state", "failed")]), 0.0);
        assert!(labelled(&parsed, "tidemill_value", &[("name", "lost")]).is_nan());
        let info = &parsed["tidemill_run_info"].1[0];
        assert_eq!((info.1["title"].as_str(), info.1["run"].as_str(), info.2), (title, "r-1", 1.0));
    }

    #[test]
    fn nothing_known_is_a_page_too_and_other_units_are_no_trials() {
        let parsed = parse(&prometheus(&Snapshot::default()));
        assert!(
            !parsed.contains_key("tidemill_best_score") && !parsed.contains_key("tidemill_phase_seconds")
        );
        let mut snapshot = Snapshot::default();
        snapshot.apply(&Event::new("r", "run", "start").parameter("progress", "moves"));
        snapshot.apply(
            &Event::new("r", "tabu", "step_1").value("moves", 1e300).value("worst", f64::NEG_INFINITY),
        );
        let parsed = parse(&prometheus(&snapshot));
        assert!(!parsed.contains_key("tidemill_trials_total"));
        assert_eq!(labelled(&parsed, "tidemill_progress_total", &[("unit", "moves")]), 1e300);
        assert_eq!(labelled(&parsed, "tidemill_value", &[("name", "worst")]), f64::NEG_INFINITY);
    }
}
