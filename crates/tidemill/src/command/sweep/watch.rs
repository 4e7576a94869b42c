//! Follows a sweep: the best trials, the progress line, the journal.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use tidemill_search::{ParetoFront, StudyEvent};

use super::best::Best;
use super::record::Recorder;
use crate::holding::Witness;
use crate::number;

/// Hears of every batch.
pub struct Watch<'a> {
    /// The best trials.
    pub best: Best<'a>,
    /// Those that no other one beats in every respect, of several objectives.
    pub front: ParetoFront,
    /// Trials with a score.
    pub n_valid: u64,
    /// Trials in all.
    pub n_done: u64,
    /// Number of objectives.
    pub n_objectives: usize,
    /// Keeps what a verdict needs, if one is wanted.
    pub witness: Option<Arc<Witness>>,
    /// The journal.
    pub recorder: Recorder<'a>,
    /// The progress line.
    pub progress: ProgressBar,
}

impl Watch<'_> {
    /// Takes in what happened.
    pub fn hear(&mut self, event: StudyEvent<'_>) {
        match event {
            StudyEvent::Finished { batch, evaluated, is_replayed } => {
                let scores = &evaluated.scores;
                if let Some(witness) = &self.witness {
                    witness.count(evaluated);
                    if is_replayed {
                        witness.see_again(batch.first_trial, &batch.points, scores);
                    }
                }
                for at in 0..scores.len() {
                    self.n_valid += u64::from(scores.first(at).value().is_some());
                }
                if self.n_objectives > 1 {
                    self.front.extend(batch.first_trial, scores);
                    self.best.keep_front(&self.front, batch, scores);
                } else {
                    self.best.extend(batch, scores);
                }
                self.n_done += batch.points.len() as u64;
                self.progress.set_position(self.n_done);
                self.recorder.finished(batch, scores, is_replayed);
            }
            StudyEvent::Timed { index, timing, began } => {
                let ms = |time: Duration| time.as_secs_f64() * 1e3;
                self.progress.set_message(format!(
                    "{}  (ms: ask {:.1}, evaluate {:.1}, tell {:.1}, overlap {:.1}, idle {:.1})",
                    number::short(self.best_value()),
                    ms(timing.ask),
                    ms(timing.evaluate),
                    ms(timing.tell),
                    ms(timing.overlap),
                    ms(timing.idle)
                ));
                self.recorder.timed(index, &timing, &began);
            }
        }
    }

    fn best_value(&self) -> Option<f64> {
        match self.n_objectives {
            1 => self.best.first(),
            _ => self.front.members().first().map(|member| member.values[0]),
        }
    }
}

/// The line that says what is done where no share of it can be told.
pub fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The line that shows how far it is; `after` stands at its end.
pub fn progress_bar(trials: u64, after: &str) -> ProgressBar {
    let bar = ProgressBar::new(trials);
    let style = ProgressStyle::with_template(&format!(
        "{{bar:32}} {{human_pos}}/{{human_len}} trials  {{rate}}/s  {{eta}} left  {after}"
    ));
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{}", number::count(state.per_sec() as u64));
    };
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("rate", rate));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
