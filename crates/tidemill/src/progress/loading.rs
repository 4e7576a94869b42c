//! How far data is loaded.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tidemill_lab::loading::doing;
use tidemill_market::{LoadProgress, LoadStage, LoadState};

use super::{LineParts, TICK, left, speed};
use crate::table::stderr_width;

/// What is over by then needs no line.
const PATIENCE: Duration = Duration::from_secs(1);

/// Loads data. If it takes its time, a line shows how far it is, where standard error is a terminal.
pub fn while_loading<T>(progress: &LoadProgress, load: impl FnOnce() -> T) -> T {
    let bar = loading_bar(ProgressDrawTarget::stderr(), progress.clone(), stderr_width);
    bar.enable_steady_tick(TICK);
    let loaded = load();
    bar.finish_and_clear();
    loaded
}

/// A line that looks at the progress by itself whenever it is drawn.
pub(super) fn loading_bar(
    target: ProgressDrawTarget,
    progress: LoadProgress,
    width: impl Fn() -> usize + Clone + Send + Sync + 'static,
) -> ProgressBar {
    let line = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = out.write_str(&loading_text(&progress.state(), state.elapsed(), width()));
    };
    let style = ProgressStyle::with_template("{line}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(None, target).with_style(style.with_key("line", line))
}

/// The line of a load that has taken so long; empty while nobody waits yet.
pub(super) fn loading_text(state: &LoadState, elapsed: Duration, width: usize) -> String {
    if elapsed < PATIENCE {
        return String::new();
    }
    let is_reading = state.stage == LoadStage::Reading;
    if !is_reading && !matches!(state.stage, LoadStage::Joining(_)) {
        return LineParts::plain(doing(state)).text(width);
    }
    let is_small = state.bytes.is_some_and(|bytes| bytes < 10_000_000);
    let (unit, name) = if is_small { (1e3, "kB") } else { (1e6, "MB") };
    let units = |bytes: u64| (bytes as f64 / unit) as u64;
    let mut parts = LineParts::new(units(state.bytes_done), state.bytes.map(units), name, doing(state));
    // What is joined comes after what has taken most of the time.
    if is_reading {
        let per_second = state.bytes_done as f64 / elapsed.as_secs_f64();
        parts.speed = speed(per_second / unit);
        if let Some(bytes) = state.bytes.filter(|_| per_second > 0.0) {
            let n_left = bytes.saturating_sub(state.bytes_done);
            parts.left = left(Duration::from_secs_f64(n_left as f64 / per_second));
        }
    }
    parts.text(width)
}
