//! A signal that follows files while they grow.

use tidemill_backtest::Strategy;

use super::{SignalReport, signal};
use crate::dataset::Recipe;
use crate::error::LabError;
use crate::file_stamp::FileStamps;

/// A strategy on files that somebody else writes to.
#[derive(Clone, Debug)]
pub struct SignalWatch {
    strategy: Strategy,
    recipe: Recipe,
    trade: Option<Vec<String>>,
    last: Option<SignalReport>,
    /// What the files looked like when they were read last.
    stamps: FileStamps,
}

impl SignalWatch {
    /// Watches the files of a recipe; `trade` names the symbols that are traded, all if there is none.
    pub fn new(strategy: Strategy, recipe: Recipe, trade: Option<Vec<String>>) -> Self {
        Self { strategy, recipe, trade, last: None, stamps: FileStamps::default() }
    }

    /// The state by this time, with the notes of the load; `None` if no symbol has another one than before. The files are read only
    /// if they changed, or if a bar in them has closed since. An error, such as that of a file half written, leaves what is known.
    pub fn poll(&mut self, at_ms: i64) -> Result<Option<(SignalReport, Vec<String>)>, LabError> {
        let stamps = self.recipe.stamps();
        let is_due = self.last.as_ref().is_none_or(|last| last.due_ms.is_some_and(|due_ms| due_ms <= at_ms));
        if stamps == self.stamps && !is_due {
            return Ok(None);
        }
        self.stamps = stamps;
        let data = self.recipe.clone().load_bars()?;
        let report = signal(&self.strategy, &data.universe, self.trade.as_deref(), at_ms)?;
        let is_new = self.last.as_ref().is_none_or(|last| last.symbols != report.symbols);
        self.last = Some(report.clone());
        Ok(is_new.then_some((report, data.notes)))
    }
}
