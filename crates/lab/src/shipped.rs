//! The strategies that come with the program.

use std::path::Path;

use tidemill_backtest::{Overrides, Strategy};

use crate::error::LabError;

/// Name and text of each.
pub const SHIPPED: [(&str, &str); 8] = [
    ("zscore-dip", include_str!("../../../strategies/zscore-dip.toml")),
    ("ema-cross", include_str!("../../../strategies/ema-cross.toml")),
    ("rsi-reversion", include_str!("../../../strategies/rsi-reversion.toml")),
    ("donchian-breakout", include_str!("../../../strategies/donchian-breakout.toml")),
    ("bollinger-squeeze", include_str!("../../../strategies/bollinger-squeeze.toml")),
    ("macd-adx", include_str!("../../../strategies/macd-adx.toml")),
    ("perps-trend", include_str!("../../../strategies/perps-trend.toml")),
    ("seller-exhaustion", include_str!("../../../strategies/seller-exhaustion.toml")),
];

/// The text of a shipped strategy.
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(of, _)| *of == name).map(|(_, text)| *text)
}

/// Opens a shipped strategy by name, or a file by path.
pub fn open_strategy(strategy: &str, overrides: &Overrides) -> Result<Strategy, LabError> {
    let path = Path::new(strategy);
    if let Some(source) = shipped(strategy)
        && !path.exists()
    {
        return Ok(Strategy::parse(&format!("{strategy}.toml"), source, overrides)?);
    }
    if !path.exists() && path.extension().is_none() {
        let known = SHIPPED.iter().map(|(name, _)| *name).collect();
        return Err(LabError::NoStrategy { name: strategy.into(), known });
    }
    Ok(Strategy::open(path, overrides)?)
}
