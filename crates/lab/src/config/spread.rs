//! The configuration of a study that is spread over workers, or cut into parts.

use super::StudyConfig;
use crate::dataset::Recipe;
use crate::error::LabError;
use crate::part::StudyPart;

impl StudyConfig {
    /// How many trials the folder is to hold: those requested, or its part of them.
    pub fn n_requested(&self) -> Option<u64> {
        let part = self.sweep.part.as_deref().and_then(|part| part.parse::<StudyPart>().ok());
        self.sweep.trials.map(|trials| {
            part.map_or(trials, |part| {
                let range = part.range(trials);
                range.end - range.start
            })
        })
    }

    /// The contents of `study.toml` as workers are told them: paths are named in full, because a worker runs in another folder.
    pub(crate) fn told_to_workers(&self) -> Result<String, LabError> {
        let mut config = self.clone();
        config.about.source = self.about.source.as_ref().map(Recipe::in_full);
        Ok(toml::to_string(&config.header()?)?)
    }
}
