//! A market as users ask for one: a kind, a size, and what the kind allows.

use super::{Planted, RegimeOptions, WalkOptions, lcg, regime, walks};
use crate::bars::Universe;
use crate::timeframe::{format_duration, parse_duration};

/// More bars than this in one generated market are a typing error.
const MAX_BARS: usize = 1_000_000_000;

/// The calendar of the program ends with the year 9999.
const MAX_SPAN_MS: i64 = 200_000_000_000_000;

/// Which generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarketKind {
    /// The integer generator of the reference results; 15-minute bars, one symbol.
    Lcg,
    /// Trends, ranges, bursts of volatility and a planted edge.
    #[default]
    Regime,
    /// A random walk of hourly bars, in which there is nothing to find.
    Walk,
    /// The same with calm and volatile periods.
    Clustered,
}

/// A generated market.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerateOptions {
    /// Which generator.
    pub kind: MarketKind,
    /// Bars per symbol.
    pub bars: usize,
    /// Number of symbols, of all but `lcg`; 1 by default.
    pub symbols: Option<usize>,
    /// Length of a bar, of `regime` only; 15 minutes by default.
    pub timeframe: Option<String>,
    /// Seed, of all but `lcg`; 1 by default.
    pub seed: Option<u64>,
    /// Strength of the planted edge from 0 to 1, of `regime` only; 0.5 by default.
    pub edge: Option<f64>,
    /// Expected return of a year, of all but `lcg`; 0 by default.
    pub drift: Option<f64>,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        Self {
            kind: MarketKind::Regime,
            bars: 50_000,
            symbols: None,
            timeframe: None,
            seed: None,
            edge: None,
            drift: None,
        }
    }
}

/// Why there is no such market.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// Nothing was asked for.
    #[error("--bars and --symbols must be at least 1")]
    Nothing,
    /// More than fits anywhere.
    #[error("{bars} × {symbols} bars are too many\n  hint: the limit is 1,000,000,000")]
    TooMany {
        /// Bars per symbol.
        bars: usize,
        /// Symbols.
        symbols: usize,
    },
    /// A drift that no market has.
    #[error("--drift {0}: expected the return of a year between -10 and 10, such as 0.8 for 80 %")]
    Drift(f64),
    /// The reference data is what it is.
    #[error("--kind lcg is one fixed market\n  hint: only --bars applies to it")]
    Fixed,
    /// Walks have neither.
    #[error(
        "--kind walk and clustered have hourly bars and no edge\n  hint: --bars, --symbols, --seed and --drift apply to them"
    )]
    WalkOptions,
    /// The strength of an edge is a share.
    #[error("--edge {0}: expected a number from 0 to 1")]
    Edge(f64),
    /// The length of a bar cannot be read.
    #[error("--timeframe: {0}")]
    Timeframe(String),
    /// The calendar ends.
    #[error("{bars} bars of {timeframe} reach beyond the year 9999")]
    TooLong {
        /// Bars per symbol.
        bars: usize,
        /// Length of a bar.
        timeframe: String,
    },
}

impl GenerateOptions {
    /// The edge that is planted, if one is.
    pub fn planted(&self) -> Option<Planted> {
        let strength = self.edge.unwrap_or(Planted::default().strength);
        let is_planted = self.kind == MarketKind::Regime && strength > 0.0;
        is_planted.then(|| Planted { strength, ..Planted::default() })
    }

    /// Makes the market.
    pub fn generate(&self) -> Result<Universe, GenerateError> {
        let (bars, symbols) = (self.bars, self.symbols.unwrap_or(1));
        if bars == 0 || symbols == 0 {
            return Err(GenerateError::Nothing);
        }
        if bars.saturating_mul(symbols) > MAX_BARS {
            return Err(GenerateError::TooMany { bars, symbols });
        }
        let drift = self.drift.unwrap_or(0.0);
        if !(-10.0..=10.0).contains(&drift) {
            return Err(GenerateError::Drift(drift));
        }
        let has_shape = self.timeframe.is_some() || self.edge.is_some();
        match self.kind {
            MarketKind::Lcg => {
                if has_shape || self.symbols.is_some() || self.seed.is_some() || self.drift.is_some() {
                    return Err(GenerateError::Fixed);
                }
                Ok(Universe { symbols: vec![lcg(bars)] })
            }
            MarketKind::Walk | MarketKind::Clustered if has_shape => Err(GenerateError::WalkOptions),
            MarketKind::Walk | MarketKind::Clustered => Ok(walks(&WalkOptions {
                seed: self.seed.unwrap_or(1),
                n_symbols: symbols,
                n_bars: bars,
                drift,
                has_clusters: self.kind == MarketKind::Clustered,
            })),
            MarketKind::Regime => self.regime(bars, symbols, drift),
        }
    }

    fn regime(&self, bars: usize, symbols: usize, drift: f64) -> Result<Universe, GenerateError> {
        if let Some(edge) = self.edge.filter(|edge| !(0.0..=1.0).contains(edge)) {
            return Err(GenerateError::Edge(edge));
        }
        let default = RegimeOptions::default();
        let timeframe_ms = match &self.timeframe {
            Some(text) => {
                parse_duration(text).map_err(|error| GenerateError::Timeframe(error.to_string()))?
            }
            None => default.timeframe_ms,
        };
        let span = i64::try_from(bars).ok().and_then(|bars| bars.checked_mul(timeframe_ms));
        if span.is_none_or(|span| span > MAX_SPAN_MS) {
            return Err(GenerateError::TooLong { bars, timeframe: format_duration(timeframe_ms) });
        }
        Ok(regime(&RegimeOptions {
            n_bars: bars,
            n_symbols: symbols,
            timeframe_ms,
            seed: self.seed.unwrap_or(default.seed),
            drift,
            planted: self.planted(),
            ..default
        }))
    }
}
