//! The progress line of a run. It never wraps: what matters least gives way where the terminal is narrow.

mod loading;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tidemill_lab::number;

use crate::table::stderr_width;
pub use loading::while_loading;

/// Time between two drawings while nothing changes.
const TICK: Duration = Duration::from_millis(200);

/// Columns of the bar itself: at most, and where it is not worth drawing any more.
const BAR: (usize, usize) = (32, 8);

/// A progress line, drawn where standard error is a terminal.
#[derive(Clone)]
pub struct ProgressLine {
    bar: ProgressBar,
    message: Arc<Mutex<String>>,
}

impl ProgressLine {
    /// The line of a run over so many `things`, such as `trials`.
    pub fn new(total: u64, things: &'static str) -> Self {
        let line = Self::drawn_on(ProgressDrawTarget::stderr(), total, things, stderr_width);
        line.bar.enable_steady_tick(TICK);
        line
    }

    /// The same on another target, whose width is asked for at every drawing.
    fn drawn_on(
        target: ProgressDrawTarget,
        total: u64,
        things: &'static str,
        width: impl Fn() -> usize + Clone + Send + Sync + 'static,
    ) -> Self {
        let message: Arc<Mutex<String>> = Arc::default();
        let shown = Arc::clone(&message);
        let line = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let message = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let total = state.len().unwrap_or(0);
            let parts = LineParts {
                speed: speed(state.per_sec()),
                left: left(state.eta()),
                ..LineParts::new(state.pos(), Some(total), things, message)
            };
            let _ = out.write_str(&parts.text(width()));
        };
        let style = ProgressStyle::with_template("{line}").unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(total), target).with_style(style.with_key("line", line));
        Self { bar, message }
    }

    /// Sets how much is done.
    pub fn set_position(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// So much more is done.
    pub fn inc(&self, done: u64) {
        self.bar.inc(done);
    }

    /// Sets what stands at the end of the line.
    pub fn set_message(&self, message: String) {
        *self.message.lock().unwrap_or_else(PoisonError::into_inner) = message;
        self.bar.tick();
    }

    /// Prints something else where the line is.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the line.
    pub fn finish_and_clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// What a progress line tells; an empty text is left out.
#[derive(Default)]
struct LineParts {
    count: String,
    speed: String,
    left: String,
    message: String,
    /// How much of all is done, if it is known.
    share: Option<f64>,
}

impl LineParts {
    /// So many things are done, of all if their number is known.
    fn new(done: u64, total: Option<u64>, things: &str, message: String) -> Self {
        let of_all = total.map(|total| format!("/{}", number::count(total))).unwrap_or_default();
        let share = total.map(|total| if total > 0 { done as f64 / total as f64 } else { 0.0 });
        Self { message, share, ..Self::plain(format!("{}{of_all} {things}", number::count(done))) }
    }

    /// A text alone.
    fn plain(count: String) -> Self {
        Self { count, ..Self::default() }
    }

    /// The line for a terminal of this width.
    fn text(&self, width: usize) -> String {
        // A line that fills the last column makes some terminals begin another one.
        let room = width.saturating_sub(1);
        // In the order in which they stand, each with its rank when there is no room for all.
        let parts = [(&self.count, 0), (&self.speed, 3), (&self.left, 2), (&self.message, 1)];
        let length = |text: &str| text.chars().count();
        let mut used = 0;
        let mut is_shown = [false; 4];
        for rank in 0..4 {
            let Some(place) = parts.iter().position(|(_, of)| *of == rank) else { continue };
            let text = parts[place].0;
            let needed = length(text) + if used > 0 { 2 } else { 0 };
            if !text.is_empty() && (rank == 0 || used + needed <= room) {
                is_shown[place] = true;
                used += needed;
            }
        }
        let shown = parts.iter().zip(is_shown).filter(|(_, is_shown)| *is_shown);
        let mut line = shown.map(|((text, _), _)| text.as_str()).collect::<Vec<_>>().join("  ");
        let spare = room.saturating_sub(used + 1).min(BAR.0);
        if let Some(share) = self.share.filter(|_| spare >= BAR.1) {
            let full = ((share.clamp(0.0, 1.0) * spare as f64) as usize).min(spare);
            line = format!("{}{} {line}", "█".repeat(full), "░".repeat(spare - full));
        }
        line.chars().take(room).collect()
    }
}

fn speed(per_second: f64) -> String {
    format!("{}/s", number::count(per_second as u64))
}

fn left(time: Duration) -> String {
    format!("{:#} left", HumanDuration(time))
}

/// The line of work without a known length.
pub fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.set_message(what);
    bar.enable_steady_tick(TICK);
    bar
}

#[cfg(test)]
mod tests;
