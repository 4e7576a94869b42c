//! The same strategy under worse conditions, to see what is left of its results.

use super::{SideRules, Strategy};
use crate::expr::{Expr, Kind};

impl Strategy {
    /// The strategy with fees and slippage times a factor.
    pub fn with_costs_times(&self, factor: f64) -> Self {
        let mut out = self.clone();
        out.execution.fee_bps *= factor;
        out.execution.slippage_bps *= factor;
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
}
