//! The strategies that come with the program.

use std::path::Path;

use tidemill_backtest::{Overrides, Strategy};
use tidemill_market::synth::lcg;
use tidemill_market::{Bars, Universe};

use crate::error::LabError;

/// Name and text of each.
pub const SHIPPED: [(&str, &str); 13] = [
    ("zscore-dip", include_str!("../../../strategies/zscore-dip.toml")),
    ("ema-cross", include_str!("../../../strategies/ema-cross.toml")),
    ("rsi-reversion", include_str!("../../../strategies/rsi-reversion.toml")),
    ("donchian-breakout", include_str!("../../../strategies/donchian-breakout.toml")),
    ("bollinger-squeeze", include_str!("../../../strategies/bollinger-squeeze.toml")),
    ("macd-adx", include_str!("../../../strategies/macd-adx.toml")),
    ("perps-trend", include_str!("../../../strategies/perps-trend.toml")),
    ("timeframe-trend", include_str!("../../../strategies/timeframe-trend.toml")),
    ("supertrend", include_str!("../../../strategies/supertrend.toml")),
    ("opening-range", include_str!("../../../strategies/opening-range.toml")),
    ("cross-momentum", include_str!("../../../strategies/cross-momentum.toml")),
    ("btc-gate", include_str!("../../../strategies/btc-gate.toml")),
    ("seller-exhaustion", include_str!("../../../strategies/seller-exhaustion.toml")),
];

/// The symbol that shipped strategies read beside the one they trade.
pub const GATE: &str = "BTCUSDT";

/// Generated bars of two symbols that every shipped strategy runs on.
pub fn universe(n_bars: usize) -> Universe {
    let gate = Bars { symbol: GATE.into(), ..lcg(n_bars) };
    Universe { symbols: vec![gate, lcg(n_bars)] }
}

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
    let is_near = || {
        let stem = strategy.strip_suffix(".toml").unwrap_or(strategy).replace('_', "-");
        shipped(&stem).is_some()
    };
    if !path.exists() && (path.extension().is_none() || is_near()) {
        let known = SHIPPED.iter().map(|(name, _)| *name).collect();
        return Err(LabError::NoStrategy { name: strategy.into(), known });
    }
    Ok(Strategy::open(path, overrides)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tidemill_backtest::segment::Layout;
    use tidemill_backtest::{Engine, EngineOptions};

    use super::*;

    #[test]
    fn every_file_in_strategies_is_shipped_under_its_name() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../strategies");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let files: BTreeSet<String> = files.map(|name| name.into_string().unwrap()).collect();
        let shipped: BTreeSet<String> = SHIPPED.iter().map(|(name, _)| format!("{name}.toml")).collect();
        assert_eq!(shipped, files);
        for (name, text) in SHIPPED {
            let strategy = Strategy::parse(name, text, &Overrides::default()).unwrap();
            assert_eq!(strategy.name, name);
            let universe = universe(300);
            let segments = Layout::default().segments(&universe).unwrap();
            Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
        }
    }
}
