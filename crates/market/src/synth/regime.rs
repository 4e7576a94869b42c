//! Markets that switch between regimes, with an optional planted edge.
//!
//! Each symbol moves through regimes (up, down, range, volatile) of random length; volatility clusters (a GARCH recursion);
//! symbols share a common factor (weight 0.6); opens gap now and then; volume follows the range.
//! Prices are whole ticks of 0.0001.
//!
//! **The planted edge** gives a search a truth to find. On every closed bar whose `zscore(close, window)` (population
//! deviation) is below `-threshold` while no edge is running, the next `hold + 1` bars get an upward drift. So
//! the strategy "enter long at the next open when `zscore(close, window) < -threshold`, leave after `max_hold = hold`
//! bars" holds exactly the drifting bars, and every other window, threshold or holding time holds fewer of them or
//! more of the rest. What the edge adds is taken back slowly on bars outside it, so that buy-and-hold gains nothing
//! from it. Strength 0 leaves the market as it is.
//!
//! Only integers and + − × ÷ √ are used, and normal draws are sums of four uniforms: no function whose last bit differs
//! between platforms.

use rayon::prelude::*;

use crate::bars::{Bars, Universe};
use crate::timestamp::weekday;

const TICKS_PER_UNIT: f64 = 10_000.0;
const START_TICKS: i64 = 1_000_000;
const MIN_TICKS: i64 = 2_000;
const MAX_TICKS: i64 = 1 << 40;
/// Drift per bar at strength 1, in units of the bar's volatility.
const EDGE_DRIFT: f64 = 0.4;
/// Milliseconds of a year.
const YEAR_MS: f64 = 365.0 * 86_400_000.0;
/// Share of what the edge still owes that is taken back per bar.
const PAYBACK: f64 = 0.002;
pub(super) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The truth of a planted edge; see the module's text for what it means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planted {
    /// Window of the z-score of close.
    pub window: usize,
    /// How far below zero the z-score has to be.
    pub threshold: f64,
    /// Bars after the entry bar that still drift; the best `max_hold`.
    pub hold: usize,
    /// 0 is no edge, 1 a very strong one.
    pub strength: f64,
}

impl Default for Planted {
    fn default() -> Self {
        Self { window: 60, threshold: 2.0, hold: 12, strength: 0.5 }
    }
}

/// Options of the generator.
#[derive(Clone, Debug, PartialEq)]
pub struct RegimeOptions {
    /// Everything random follows from it.
    pub seed: u64,
    /// Bars per symbol.
    pub n_bars: usize,
    /// Symbols, named `SYN0`, `SYN1`, … (zero-padded so that names sort).
    pub n_symbols: usize,
    /// Length of a bar.
    pub timeframe_ms: i64,
    /// Open time of the first bar.
    pub start_ms: i64,
    /// Volatility of one bar as a fraction of the price.
    pub volatility: f64,
    /// On average every this many bars the open leaves the previous close; 0 for never.
    pub gap_every: u64,
    /// On average every this many bars one to eight bars are missing; 0 for never.
    pub missing_every: u64,
    /// Expected return of a year that every bar has its part of, not compounded.
    pub drift: f64,
    /// Whether weekends are quiet.
    pub weekday_effect: bool,
    /// The edge to find, if any.
    pub planted: Option<Planted>,
}

impl Default for RegimeOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            n_bars: 50_000,
            n_symbols: 1,
            timeframe_ms: 15 * 60_000,
            start_ms: 1_577_836_800_000, // 2020-01-01T00:00Z
            volatility: 0.003,
            drift: 0.0,
            gap_every: 90,
            missing_every: 0,
            weekday_effect: false,
            planted: Some(Planted::default()),
        }
    }
}

impl RegimeOptions {
    /// Hourly bars of several symbols without an edge, as the benches take them; also made by
    /// `tidemill data generate --timeframe 1h --edge 0`.
    pub fn hourly(n_symbols: usize, n_bars: usize) -> Self {
        Self { n_symbols, n_bars, timeframe_ms: 3_600_000, planted: None, ..Self::default() }
    }
}

/// Generates the market; symbols do not depend on how many there are.
pub fn regime(options: &RegimeOptions) -> Universe {
    let width = options.n_symbols.saturating_sub(1).to_string().len();
    let symbols = (0..options.n_symbols)
        .into_par_iter()
        .map(|symbol_idx| Market::new(options, symbol_idx as u64).run(format!("SYN{symbol_idx:0width$}")))
        .collect();
    Universe { symbols }
}

/// The output function of SplitMix64: a good 64-bit hash of a counter.
pub(super) fn mix(state: u64) -> u64 {
    let x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// SplitMix64.
pub(super) struct Draws(pub(super) u64);

impl Draws {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }
}

/// Nearly standard normal: the sum of four 16-bit uniforms, centred and scaled to variance 1.
pub(super) fn normal(draw: u64) -> f64 {
    let sum = (0..4).map(|part| (draw >> (16 * part) & 0xffff) as i64).sum::<i64>() - 131_070;
    sum as f64 / 37_837.0
}

/// Uniform in 0..1 from the upper bits.
fn uniform(draw: u64) -> f64 {
    (draw >> 11) as f64 / 9_007_199_254_740_992.0
}

#[derive(Clone, Copy)]
enum Regime {
    Up,
    Down,
    Range,
    Volatile,
}

/// One symbol in the making.
struct Market<'a> {
    options: &'a RegimeOptions,
    own: Draws,
    common_base: u64,
    mood: Regime,
    mood_left: u64,
    anchor: f64,
    /// GARCH variance relative to its mean.
    heat: f64,
    edge_left: usize,
    debt: f64,
}

impl<'a> Market<'a> {
    fn new(options: &'a RegimeOptions, symbol_idx: u64) -> Self {
        let base = mix(options.seed.wrapping_mul(GOLDEN).wrapping_add(0x7469_6465));
        Self {
            options,
            own: Draws(mix(base.wrapping_add((symbol_idx + 1).wrapping_mul(GOLDEN)))),
            common_base: base,
            mood: Regime::Range,
            mood_left: 0,
            anchor: START_TICKS as f64,
            heat: 1.0,
            edge_left: 0,
            debt: 0.0,
        }
    }

    fn run(mut self, symbol: String) -> Bars {
        let n_bars = self.options.n_bars;
        let mut bars = Bars { symbol, timeframe_ms: self.options.timeframe_ms, ..Bars::default() };
        bars.ts_ms.reserve_exact(n_bars);
        for column in [&mut bars.open, &mut bars.high, &mut bars.low, &mut bars.close, &mut bars.volume] {
            column.reserve_exact(n_bars);
        }
        let mut trigger = self.options.planted.filter(|planted| planted.strength > 0.0).map(Trigger::new);
        let mut previous = START_TICKS;
        let mut ts_ms = self.options.start_ms;
        for bar_idx in 0..n_bars {
            // Always the same number of draws, so that options change what they mean and nothing else.
            let [mood, shock, gap, wick, volume] = std::array::from_fn(|_| self.own.next());
            self.change_mood(mood, previous);
            let quiet = if self.options.weekday_effect && weekday(ts_ms) >= 5 { 0.6 } else { 1.0 };
            let sigma = self.sigma() * quiet;
            let every = self.options.gap_every;
            let jump =
                if every > 0 && gap.is_multiple_of(every) { 1.5 * sigma * normal(mix(gap)) } else { 0.0 };
            let open = to_ticks(previous as f64 * (1.0 + jump.clamp(-0.2, 0.2)));
            let common =
                normal(mix(self.common_base.wrapping_add((bar_idx as u64 + 1).wrapping_mul(GOLDEN))));
            let noise = 0.6 * common + 0.8 * normal(shock);
            let change = self.drift(open, sigma) + sigma * noise;
            let close = to_ticks(open as f64 * (1.0 + change.clamp(-0.2, 0.2)));
            let reach = 0.8 * sigma * open as f64;
            let high = open.max(close) + (reach * uniform(wick)) as i64;
            let low = (open.min(close) - (reach * uniform(mix(wick))) as i64).max(1);
            let width = (high - low) as f64 / (1.6 * self.options.volatility * open as f64 + 1.0);
            let traded = (1_000.0 * quiet * (0.3 + width) * (0.7 + 0.6 * uniform(volume))) as i64;
            self.heat = 0.05 + 0.10 * noise * noise + 0.85 * self.heat;

            bars.ts_ms.push(ts_ms);
            bars.open.push(open as f64 / TICKS_PER_UNIT);
            bars.high.push(high as f64 / TICKS_PER_UNIT);
            bars.low.push(low as f64 / TICKS_PER_UNIT);
            bars.close.push(close as f64 / TICKS_PER_UNIT);
            bars.volume.push(traded as f64);

            if let Some(trigger) = &mut trigger {
                self.edge_left = self.edge_left.saturating_sub(1);
                if trigger.fires(close) && self.edge_left == 0 {
                    self.edge_left = trigger.planted.hold + 1;
                }
            }
            previous = close;
            ts_ms = ts_ms.saturating_add(self.options.timeframe_ms);
            let every = self.options.missing_every;
            if every > 0 && mix(gap ^ GOLDEN).is_multiple_of(every) {
                let skipped = 1 + (mix(gap) % 8) as i64;
                ts_ms = ts_ms.saturating_add(self.options.timeframe_ms.saturating_mul(skipped));
            }
        }
        bars
    }

    /// Draws a new mood when the old one has run out; far from the start the next one leads back.
    fn change_mood(&mut self, draw: u64, price: i64) {
        if self.mood_left > 0 {
            self.mood_left -= 1;
            return;
        }
        self.mood_left = 100 + draw % 500;
        self.anchor = price as f64;
        self.mood = match (draw >> 32) % 4 {
            _ if price > 20 * START_TICKS => Regime::Down,
            _ if price < START_TICKS / 20 => Regime::Up,
            0 => Regime::Up,
            1 => Regime::Down,
            2 => Regime::Range,
            _ => Regime::Volatile,
        };
    }

    fn sigma(&self) -> f64 {
        let mood = if matches!(self.mood, Regime::Volatile) { 1.8 } else { 0.9 };
        self.options.volatility * mood * self.heat.sqrt()
    }

    /// Expected change of this bar; keeps the books of the edge.
    fn drift(&mut self, open: i64, sigma: f64) -> f64 {
        let volatility = self.options.volatility;
        let mood = match self.mood {
            Regime::Up => 0.03 * volatility,
            Regime::Down => -0.03 * volatility,
            Regime::Range => {
                (0.004 * (1.0 - open as f64 / self.anchor)).clamp(-0.1 * volatility, 0.1 * volatility)
            }
            Regime::Volatile => 0.0,
        };
        // Without this the price would shrink: equal gains and losses in per cent do not cancel.
        let convexity = 0.5 * sigma * sigma + self.options.drift * self.options.timeframe_ms as f64 / YEAR_MS;
        let strength = self.options.planted.map_or(0.0, |planted| planted.strength);
        if self.edge_left > 0 {
            let edge = strength * EDGE_DRIFT * sigma;
            self.debt += edge;
            return mood + convexity + edge;
        }
        let payback = PAYBACK * self.debt;
        self.debt -= payback;
        mood + convexity - payback
    }
}

fn to_ticks(price: f64) -> i64 {
    ((price + 0.5) as i64).clamp(MIN_TICKS, MAX_TICKS)
}

/// The planted condition, computed on whole ticks and therefore exact.
struct Trigger {
    planted: Planted,
    window: std::collections::VecDeque<i64>,
    sum: i128,
    sum_of_squares: i128,
}

impl Trigger {
    fn new(planted: Planted) -> Self {
        let window = std::collections::VecDeque::new();
        Self {
            planted: Planted { window: planted.window.max(2), ..planted },
            window,
            sum: 0,
            sum_of_squares: 0,
        }
    }

    /// Takes the next close; whether its z-score is below the threshold.
    fn fires(&mut self, close: i64) -> bool {
        let value = i128::from(close);
        self.window.push_back(close);
        self.sum += value;
        self.sum_of_squares += value * value;
        if self.window.len() > self.planted.window
            && let Some(old) = self.window.pop_front()
        {
            let old = i128::from(old);
            self.sum -= old;
            self.sum_of_squares -= old * old;
        }
        if self.window.len() < self.planted.window {
            return false;
        }
        // z < -k with z = (x - S/w) / sqrt(Q/w - S²/w²), multiplied out.
        let len = self.planted.window as i128;
        let deviation = len * value - self.sum;
        let spread = len * self.sum_of_squares - self.sum * self.sum;
        let threshold = self.planted.threshold;
        let deviation = deviation as f64;
        spread > 0 && deviation < 0.0 && deviation * deviation > threshold * threshold * spread as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean net return per trade and its sum, trading "z below -k, hold h" with costs of 0.1 % per side.
    fn trade(bars: &Bars, window: usize, threshold: f64, hold: usize) -> (f64, f64, usize) {
        let mut trigger = Trigger::new(Planted { window, threshold, hold, strength: 1.0 });
        let fires: Vec<bool> =
            bars.close.iter().map(|&close| trigger.fires((close * TICKS_PER_UNIT).round() as i64)).collect();
        let (mut total, mut trades, mut bar_idx) = (0.0, 0, 0);
        while bar_idx + 1 + hold < bars.len() {
            if !fires[bar_idx] {
                bar_idx += 1;
                continue;
            }
            let (entry, exit) = (bars.open[bar_idx + 1], bars.close[bar_idx + 1 + hold]);
            total += (exit - entry) / entry - 0.002;
            trades += 1;
            bar_idx += 1 + hold;
        }
        (total / trades.max(1) as f64, total, trades)
    }

    fn market(seed: u64, strength: f64) -> Bars {
        let planted = Some(Planted { strength, ..Planted::default() });
        regime(&RegimeOptions { seed, n_bars: 60_000, planted, ..RegimeOptions::default() }).symbols.remove(0)
    }

    #[test]
    fn the_planted_rule_earns_most_at_the_truth() {
        for seed in 1..=3 {
            let bars = market(seed, 0.5);
            let truth = Planted::default();
            let (mean, total, trades) = trade(&bars, truth.window, truth.threshold, truth.hold);
            assert!(trades > 300 && mean > 0.002, "seed {seed}: {trades} trades, mean {mean}");
            let far = [
                (10, 2.0, 12),
                (400, 2.0, 12),
                (60, 0.5, 12),
                (60, 3.5, 12),
                (60, 2.0, 2),
                (60, 2.0, 80),
                (300, 1.0, 60),
            ];
            for (window, threshold, hold) in far {
                let (_, other, _) = trade(&bars, window, threshold, hold);
                assert!(
                    other < 0.6 * total,
                    "seed {seed}: {window} {threshold} {hold} earns {other}, the truth {total}"
                );
            }
        }
    }

    #[test]
    fn without_strength_there_is_nothing_to_find() {
        let truth = Planted::default();
        for seed in 1..=3 {
            let bars = market(seed, 0.0);
            let (mean, _, trades) = trade(&bars, truth.window, truth.threshold, truth.hold);
            assert!(trades > 300 && mean < 0.0, "seed {seed}: mean {mean} over {trades} trades");
            let none = RegimeOptions { seed, n_bars: 60_000, planted: None, ..RegimeOptions::default() };
            assert_eq!(regime(&none).symbols[0], bars);
        }
    }

    #[test]
    fn a_drift_lifts_the_whole_market() {
        let hold = |drift: f64| {
            let options = RegimeOptions { seed: 4, drift, ..RegimeOptions::hourly(1, 8_760) };
            let bars = regime(&options).symbols.remove(0);
            bars.close[8_759] / bars.open[0]
        };
        // What a year adds, compounded bar by bar.
        let ratio = hold(0.5) / hold(0.0);
        assert!((ratio / 0.5_f64.exp() - 1.0).abs() < 0.05, "{ratio}");
    }

    #[test]
    fn generated_bars_are_clean_and_ordered() {
        let options = RegimeOptions {
            n_bars: 5_000,
            n_symbols: 12,
            missing_every: 200,
            weekday_effect: true,
            ..RegimeOptions::default()
        };
        let universe = regime(&options);
        let names: Vec<&str> = universe.symbols.iter().map(|bars| bars.symbol.as_str()).collect();
        assert!(names.is_sorted() && names[0] == "SYN00" && names.len() == 12);
        for bars in &universe.symbols {
            assert_eq!(bars.len(), 5_000);
            assert!(bars.ts_ms.windows(2).all(|pair| pair[0] < pair[1]));
            assert_eq!(crate::timeframe::detect(&bars.ts_ms), Some(options.timeframe_ms));
            assert!(bars.ts_ms[4_999] > options.start_ms + 4_999 * options.timeframe_ms);
            for row in 0..bars.len() {
                assert!(bars.low[row] > 0.0 && bars.volume[row] > 0.0);
                assert!(bars.low[row] <= bars.open[row].min(bars.close[row]));
                assert!(bars.high[row] >= bars.open[row].max(bars.close[row]));
            }
        }
        assert_ne!(universe.symbols[0].close, universe.symbols[1].close);
    }

    #[test]
    fn a_symbol_does_not_depend_on_its_neighbours() {
        let few = regime(&RegimeOptions { n_bars: 500, n_symbols: 2, ..RegimeOptions::default() });
        let many = regime(&RegimeOptions { n_bars: 500, n_symbols: 9, ..RegimeOptions::default() });
        assert_eq!(few.symbols, many.symbols[..2]);
    }

    #[test]
    fn volatility_clusters_and_volume_follows_the_range() {
        let bars = market(5, 0.0);
        let returns: Vec<f64> = bars.close.windows(2).map(|pair| (pair[1] / pair[0] - 1.0).abs()).collect();
        assert!(correlation(&returns[1..], &returns[..returns.len() - 1]) > 0.1);
        let range: Vec<f64> =
            (0..bars.len()).map(|row| (bars.high[row] - bars.low[row]) / bars.open[row]).collect();
        assert!(correlation(&range, &bars.volume) > 0.5);
    }

    fn correlation(a: &[f64], b: &[f64]) -> f64 {
        let n = a.len() as f64;
        let mean = |x: &[f64]| x.iter().sum::<f64>() / n;
        let (mean_a, mean_b) = (mean(a), mean(b));
        let cross: f64 = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum();
        let square = |x: &[f64], mean: f64| x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
        cross / (square(a, mean_a) * square(b, mean_b)).sqrt()
    }
}
