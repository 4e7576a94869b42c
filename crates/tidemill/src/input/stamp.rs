//! The flag `--stamp`: what the times of data files are.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tidemill_market::BarStamp;

/// What the times of files are. A study keeps it with the rest of the recipe of its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stamp {
    /// When bars open.
    #[default]
    Open,
    /// When bars end.
    Close,
}

impl From<Stamp> for BarStamp {
    fn from(stamp: Stamp) -> Self {
        match stamp {
            Stamp::Open => BarStamp::Open,
            Stamp::Close => BarStamp::Close,
        }
    }
}
