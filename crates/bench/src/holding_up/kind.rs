//! The kinds of markets that verdicts are tried on: those where there is nothing to find, and those where there is.

use clap::ValueEnum;
use tidemill_market::synth::{Planted, RegimeOptions, WalkOptions, regime, shuffle_blocks, walk, walks};
use tidemill_market::{Bars, Universe};

use tidemill_lab::shipped::shipped;

/// A kind of market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MarketKind {
    /// Random walks without drift.
    Walk,
    /// Random walks with the drift of a bull market.
    Bull,
    /// Random walks whose volatility clusters.
    Clustered,
    /// Blocks of real bars in random order; needs --data.
    Shuffled,
    /// A strong bull market, swept by a strategy that is always long.
    AlwaysLong,
    /// A planted edge.
    Edge,
    /// A planted edge in a bull market.
    EdgeBull,
    /// A weak planted edge, which is only reported.
    WeakEdge,
}

/// What a kind of market has to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// At most 5 of 100 are called good.
    Null,
    /// At least 90 of 100 are called good.
    Edge,
    /// Nothing; the rate is reported.
    None,
}

/// A market, and how it is swept.
pub struct Market {
    pub universe: Universe,
    /// Text of the strategy.
    pub strategy: &'static str,
    /// Settings laid over it.
    pub set: &'static [(&'static str, &'static str)],
}

/// How large markets are, and where real bars come from.
pub struct Sources<'a> {
    /// Bars of generated markets.
    pub n_bars: usize,
    /// Strength of the planted edge.
    pub edge: f64,
    /// Real bars, one symbol for each market in turn; empty where there are none.
    pub real: &'a [Bars],
}

/// Expected return of a year in a bull market of walks: holding has a Sharpe ratio of 1.5.
const BULL_DRIFT: f64 = 0.8;

/// The same for the calmer markets with an edge.
const BULL_EDGE_DRIFT: f64 = 0.45;

/// A market in which holding alone has a Sharpe ratio of 4, so that nothing but the market itself tells it from an edge.
const STRONG_DRIFT: f64 = 2.1;

/// Strength of the weak edge.
const WEAK_EDGE: f64 = 0.3;

/// Bars of a block of real ones: a day of hours.
const BLOCK_BARS: usize = 24;

/// Without costs a random walk is a fair game: what a search finds there is luck alone. A stop would be none, because it fills at its level,
/// and a walk that is made of steps jumps over it.
const FAIR: [(&str, &str); 3] = [("fee_bps", "0"), ("slippage_bps", "0"), ("use_stop", "false")];

/// Always long but for a bar now and then: what it makes is what the market makes.
const ALWAYS_LONG: &str = "name = 'always-long'\n[params]\nmax_hold = { int = [24, 480], default = 240 }\n\
    [long]\nenter = 'close > 0'\nmax_hold = 'max_hold'\n[execution]\nfee_bps = 0\nslippage_bps = 0\n\
    [objective]\nmaximize = 'sharpe'\nrequire = 'trades >= 5'\n";

impl MarketKind {
    /// What is tried where nothing is chosen; real bars only where there are any.
    pub fn default_kinds(has_real: bool) -> Vec<Self> {
        let all = Self::value_variants().iter().copied();
        all.filter(|kind| has_real || *kind != Self::Shuffled).collect()
    }

    pub fn demand(self) -> Demand {
        match self {
            Self::Walk | Self::Bull | Self::Clustered | Self::Shuffled | Self::AlwaysLong => Demand::Null,
            Self::Edge | Self::EdgeBull => Demand::Edge,
            Self::WeakEdge => Demand::None,
        }
    }

    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// One market of the kind; the same seed gives the same one.
    pub fn market(self, seed: u64, sources: &Sources<'_>) -> Market {
        let n_bars = sources.n_bars;
        let rising = |drift: f64| WalkOptions { seed, n_symbols: 1, n_bars, drift, has_clusters: false };
        let planted = |strength: f64, drift: f64| {
            let planted = Some(Planted { strength, ..Planted::default() });
            regime(&RegimeOptions { seed: seed + 1, drift, planted, ..RegimeOptions::hourly(1, n_bars) })
        };
        let universe = match self {
            Self::Walk => walk(seed, 1, n_bars),
            Self::Bull => walks(&rising(BULL_DRIFT)),
            Self::Clustered => walks(&WalkOptions { has_clusters: true, ..rising(0.0) }),
            Self::AlwaysLong => walks(&rising(STRONG_DRIFT)),
            Self::Shuffled => {
                let real = sources.real.get(seed as usize % sources.real.len().max(1));
                Universe {
                    symbols: real.map(|bars| shuffle_blocks(bars, BLOCK_BARS, seed)).into_iter().collect(),
                }
            }
            Self::Edge => planted(sources.edge, 0.0),
            Self::EdgeBull => planted(sources.edge, BULL_EDGE_DRIFT),
            Self::WeakEdge => planted(WEAK_EDGE, 0.0),
        };
        let strategy =
            if self == Self::AlwaysLong { ALWAYS_LONG } else { shipped("zscore-dip").unwrap_or_default() };
        let is_fair = self.demand() == Demand::Null && self != Self::AlwaysLong;
        Market { universe, strategy, set: if is_fair { &FAIR } else { &[] } }
    }
}
