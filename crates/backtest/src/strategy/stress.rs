//! The same strategy under worse conditions, to see what is left of its results.

use super::{ExitKind, SideRules, Strategy};
use crate::expr::{Expr, Kind};

impl Strategy {
    /// The strategy with fees and slippage times a factor.
    pub fn with_costs_times(&self, factor: f64) -> Self {
        let mut out = self.clone();
        out.execution.fee_bps = out.execution.fee_bps.times(factor);
        out.execution.slippage_bps = out.execution.slippage_bps.times(factor);
        out
    }

    /// The strategy that enters so many bars later: a signal is acted upon as though it had come then, with the levels of that bar.
    /// Exits stay as they are.
    pub fn delayed(&self, n_bars: u32) -> Self {
        let mut out = self.clone();
        for SideRules { enter, .. } in [&mut out.long, &mut out.short].into_iter().flatten() {
            let span = enter.span.clone();
            let bars = Expr { kind: Kind::Number(f64::from(n_bars), true), span: span.clone() };
            let now = std::mem::replace(enter, Expr { kind: Kind::Bool(false), span: span.clone() });
            *enter = Expr { kind: Kind::Index(Box::new(now), Box::new(bars)), span };
        }
        out
    }

    /// The strategy that reads a bar which touches both adverse levels and targets the other way round: targets come first, or last where
    /// they came first. `None` where no side has both, so that there is nothing to read.
    ///
    /// What is known of a bar does not say which of its extremes came first, so that results should not hang on it.
    pub fn with_levels_swapped(&self) -> Option<Self> {
        let mut out = self.clone();
        let mut is_swapped = false;
        for SideRules { exits, .. } in [&mut out.long, &mut out.short].into_iter().flatten() {
            let places: Vec<usize> = (0..exits.len()).filter(|at| is_level(exits[*at].kind)).collect();
            let is_target = |at: &usize| exits[*at].kind == ExitKind::Target;
            let (targets, adverse): (Vec<usize>, Vec<usize>) = places.iter().copied().partition(is_target);
            if targets.is_empty() || adverse.is_empty() {
                continue;
            }
            let order = if targets[0] < adverse[0] { [adverse, targets] } else { [targets, adverse] };
            // Signals and time limits keep their places: they are decided at the close, not within the bar.
            let before = exits.clone();
            for (place, from) in places.into_iter().zip(order.into_iter().flatten()) {
                exits[place] = before[from].clone();
            }
            is_swapped = true;
        }
        is_swapped.then_some(out)
    }
}

/// Whether an exit is a price that a bar may touch.
fn is_level(kind: ExitKind) -> bool {
    match kind {
        ExitKind::Stop | ExitKind::StopSeries | ExitKind::Target | ExitKind::Trail | ExitKind::Breakeven => {
            true
        }
        ExitKind::Signal | ExitKind::Time => false,
    }
}

#[cfg(test)]
mod tests {
    use tidemill_market::{Universe, synth};

    use super::*;
    use crate::segment::Layout;
    use crate::strategy::Overrides;
    use crate::{Detail, Engine, EngineOptions};

    const SOURCE: &str = "[long]\nenter = 'close < lowest(low, 20)[1]'\nmax_hold = 5\n[short]\nenter = 'crosses_above(close, sma(close, 9))'\nexit = 'close < open'\n[execution]\nfee_bps = 4\nslippage_bps = 2\ncooldown = 40\n";

    fn detail(strategy: &Strategy) -> Detail {
        let universe = Universe { symbols: vec![synth::lcg(3_000)] };
        let segments = Layout::default().segments(&universe).unwrap();
        let mut engine = Engine::new(strategy, &universe, segments, EngineOptions::default()).unwrap();
        engine.detail(&[]).remove(0)
    }

    #[test]
    fn doubled_costs_take_as_much_again_from_every_trade() {
        let strategy = Strategy::parse("s.toml", SOURCE, &Overrides::default()).unwrap();
        let (once, twice) = (detail(&strategy), detail(&strategy.with_costs_times(2.0)));
        assert!(once.trades.len() > 20);
        for (a, b) in once.trades.iter().zip(&twice.trades) {
            let cost = (a.entry + a.exit) * 6.0 / 10_000.0;
            assert!((a.pnl - b.pnl - cost).abs() < 1e-9 * a.entry);
        }
    }

    #[test]
    fn a_delayed_strategy_enters_one_bar_later() {
        let strategy = Strategy::parse("s.toml", SOURCE, &Overrides::default()).unwrap();
        let (now, late) = (detail(&strategy), detail(&strategy.delayed(1)));
        let (first, first_late) = (now.trades[0], late.trades[0]);
        assert_eq!(first_late.signal_idx, first.signal_idx + 1);
        assert_eq!(first_late.entry_idx, first.entry_idx + 1);
        assert_eq!(first_late.side, first.side);
    }

    const LEVELS: &str = "[long]\nenter = 'close < lowest(low, 20)[1]'\nstop = 'close * 0.99'\ntarget = 'close * 1.01'\nexit = 'close > highest(high, 50)[1]'\nmax_hold = 30\n";

    #[test]
    fn swapped_levels_take_the_target_of_a_bar_that_touches_both() {
        let strategy = Strategy::parse("s.toml", LEVELS, &Overrides::default()).unwrap();
        let swapped = strategy.with_levels_swapped().unwrap();
        let kinds = |strategy: &Strategy| -> Vec<ExitKind> {
            strategy.long.as_ref().unwrap().exits.iter().map(|exit| exit.kind).collect()
        };
        assert_eq!(kinds(&swapped), [ExitKind::Target, ExitKind::Stop, ExitKind::Signal, ExitKind::Time]);
        let back = swapped.with_levels_swapped().unwrap();
        assert_eq!(kinds(&back), kinds(&strategy), "where targets came first they come last");

        // One entry at 100, then a bar from 98 to 102: both levels lie within it.
        let mut bars = synth::lcg(60);
        for at in 0..60 {
            let (open, high, low, close) = match at {
                40 => (100.0, 100.0, 99.9, 99.9),
                41 => (100.0, 102.0, 98.0, 100.0),
                _ => (100.0, 100.5, 99.95, 100.0),
            };
            (bars.open[at], bars.high[at], bars.low[at], bars.close[at]) = (open, high, low, close);
        }
        let universe = Universe { symbols: vec![bars] };
        let first_exit = |strategy: &Strategy| {
            let segments = Layout::default().segments(&universe).unwrap();
            let mut engine = Engine::new(strategy, &universe, segments, EngineOptions::default()).unwrap();
            let detail = engine.detail(&[]).remove(0);
            (detail.trades[0].exit_idx, detail.labels[0].clone())
        };
        assert_eq!(first_exit(&strategy), (41, "STOP".into()));
        assert_eq!(first_exit(&swapped), (41, "TARGET".into()));
    }

    #[test]
    fn without_both_kinds_of_levels_there_is_nothing_to_swap() {
        assert!(
            Strategy::parse("s.toml", SOURCE, &Overrides::default()).unwrap().with_levels_swapped().is_none()
        );
        let stop_only = "[long]\nenter = 'close > open'\nstop = 'close * 0.99'\nmax_hold = 3\n[short]\nenter = 'close < open'\ntarget = 'close * 0.98'\n";
        let strategy = Strategy::parse("s.toml", stop_only, &Overrides::default()).unwrap();
        assert!(
            strategy.with_levels_swapped().is_none(),
            "the levels of one side are not those of the other"
        );
    }
}
