//! Which strategies closes alone are enough for: no price is read, filled at or waited for that the data does not have.

use tidemill_market::Universe;

use super::{Program, SOURCES};
use crate::graph::Source;
use crate::strategy::{ExitKind, FillAt, Strategy, StrategyError};

impl Program {
    /// Refuses a strategy that needs open, high or low if a symbol has none.
    pub(crate) fn check_closes(&self, strategy: &Strategy, universe: &Universe) -> Result<(), StrategyError> {
        let Some(bars) = universe.symbols.iter().find(|bars| bars.closes_only) else { return Ok(()) };
        let needs = self.needs_beyond_closes(strategy);
        if needs.is_empty() {
            return Ok(());
        }
        Err(StrategyError::ClosesOnly { file: strategy.file.clone(), symbol: bars.symbol.clone(), needs })
    }

    fn needs_beyond_closes(&self, strategy: &Strategy) -> Vec<String> {
        let mut needs = Vec::new();
        let is_read = |source: Source| self.graph.sources().any(|read| read == source);
        let absent = [Source::Open, Source::High, Source::Low];
        let read: Vec<&str> = SOURCES
            .iter()
            .filter(|(_, source)| absent.contains(source) && is_read(*source))
            .map(|(name, _)| *name)
            .collect();
        if !read.is_empty() {
            needs.push(format!("it reads {}", read.join(" and ")));
        }
        if strategy.execution.fill == FillAt::NextOpen {
            needs.push("it fills at the next open".to_string());
        }
        let level = |kind: ExitKind| match kind {
            ExitKind::Stop => Some("a stop"),
            ExitKind::Target => Some("a target"),
            ExitKind::Trail => Some("a trail"),
            ExitKind::Breakeven => Some("a break-even stop"),
            ExitKind::Signal | ExitKind::Time => None,
        };
        let exits = self.sides.iter().flatten().flat_map(|side| &side.exits);
        let mut levels: Vec<&str> = exits.filter_map(|exit| level(exit.kind)).collect();
        levels.sort_unstable();
        levels.dedup();
        if !levels.is_empty() {
            needs.push(format!("it waits inside bars for {}", levels.join(", ")));
        }
        needs
    }
}

#[cfg(test)]
mod tests {
    use tidemill_market::synth;

    use super::*;
    use crate::segment::Layout;
    use crate::strategy::Overrides;
    use crate::{Engine, EngineOptions};

    /// What a strategy needs that closes alone do not give.
    fn needs(source: &str) -> Vec<String> {
        let strategy = Strategy::parse("s.toml", source, &Overrides::default()).unwrap();
        let mut bars = synth::lcg(60);
        bars.closes_only = true;
        let universe = Universe { symbols: vec![bars] };
        let segments = Layout::default().segments(&universe).unwrap();
        match Engine::new(&strategy, &universe, segments, EngineOptions::default()) {
            Ok(_) => Vec::new(),
            Err(StrategyError::ClosesOnly { needs, .. }) => needs,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn rules_over_closes_that_fill_at_the_close_need_no_more() {
        let rules =
            "[long]\nenter = 'rsi(close, 3) < 30 and volume > 0'\nexit = 'close > close[1]'\nmax_hold = 5\n";
        assert_eq!(needs(&format!("{rules}[execution]\nfill = 'close'\n")), [""; 0]);
        assert_eq!(needs(rules), ["it fills at the next open"]);
    }

    #[test]
    fn every_other_price_is_named_whoever_reads_it() {
        let fill = "[execution]\nfill = 'close'\n";
        let hold = "max_hold = 3\n";
        let needs = |rules: &str| needs(&format!("[long]\n{rules}{fill}"));
        assert_eq!(needs(&format!("enter = 'close > open'\n{hold}")), ["it reads open"]);
        assert_eq!(needs(&format!("enter = 'atr(5) > 1'\n{hold}")), ["it reads high and low"]);
        let levels = "enter = 'close > close[1]'\nstop = 'entry * 0.9'\ntrail = 'entry * 0.1'\n";
        assert_eq!(needs(levels), ["it waits inside bars for a stop, a trail"]);
    }
}
