//! Warnings about strategies that run but hardly do what their author meant.

use tidemill_market::Universe;
use tidemill_search::{Choice, Domain};

use super::{ExitKind, SideRules, Strategy};
use crate::diagnostic::line_of;
use crate::expr::{Expr, Kind};

/// A level below this is hardly a price …
const LEVEL: f64 = 1.0;
/// … where prices are above this.
const PRICE: f64 = 10.0;

impl Strategy {
    /// Sides that nothing ends, and levels that look like shares of the price although they are taken as prices.
    pub fn remarks(&self, universe: &Universe) -> Vec<String> {
        let mut remarks = Vec::new();
        for (side, rules) in [("long", &self.long), ("short", &self.short)] {
            let Some(rules) = rules else { continue };
            if rules.exits.is_empty() {
                let line = line_of(&self.source, rules.enter.span.start);
                remarks.push(format!(
                    "{}:{line}: [{side}] has no way out: a position is held until the data or its segment ends",
                    self.file
                ));
            }
            remarks.extend(self.level_remarks(side, rules, universe));
        }
        remarks
    }

    fn level_remarks(&self, side: &str, rules: &SideRules, universe: &Universe) -> Vec<String> {
        let last_prices =
            universe.symbols.iter().filter_map(|bars| bars.close.last().map(|p| (&bars.symbol, *p)));
        let Some((symbol, price)) =
            last_prices.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|found| found.1 > PRICE)
        else {
            return Vec::new();
        };
        let levels = rules.exits.iter().filter(|exit| matches!(exit.kind, ExitKind::Stop | ExitKind::Target));
        levels
            .filter(|exit| self.largest(&exit.value).is_some_and(|level| level < LEVEL))
            .map(|exit| {
                let what = if exit.kind == ExitKind::Stop { "stop" } else { "target" };
                let sign = if (side == "long") == (exit.kind == ExitKind::Target) { '+' } else { '-' };
                let text = self.source.get(exit.value.span.clone()).unwrap_or("it");
                let line = line_of(&self.source, exit.value.span.start);
                format!(
                    "{}:{line}: the {what} of [{side}] is the price {text}, but {symbol} costs {price}; for a share of the entry price write entry * (1 {sign} {text})",
                    self.file
                )
            })
            .collect()
    }

    /// The largest value of a bare number or parameter.
    fn largest(&self, expr: &Expr) -> Option<f64> {
        match &expr.kind {
            Kind::Number(value, _) => Some(*value),
            Kind::Name(name) => {
                let param = self.params.iter().find(|param| param.name == *name)?;
                if let Some(fixed) = param.fixed {
                    return Some(param.decode(fixed));
                }
                match &param.domain {
                    Domain::Float { high, .. } => Some(*high),
                    Domain::Int { high, .. } => Some(*high as f64),
                    Domain::Choice { options } => {
                        let numbers = options.iter().map(|option| match option {
                            Choice::Number(value) => Some(*value),
                            Choice::Text(_) => None,
                        });
                        numbers.collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max)
                    }
                    Domain::Bool => None,
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemill_market::synth;

    use super::*;
    use crate::strategy::Overrides;

    fn remarks(source: &str, price: f64) -> Vec<String> {
        let mut bars = synth::lcg(60);
        bars.symbol = "X".into();
        bars.close[59] = price;
        let strategy = Strategy::parse("s.toml", source, &Overrides::default()).unwrap();
        strategy.remarks(&Universe { symbols: vec![bars] })
    }

    #[test]
    fn a_side_that_nothing_ends_is_named_with_its_line() {
        let found =
            remarks("[long]\nenter = 'close > open'\n[short]\nenter = 'close < open'\nmax_hold = 3\n", 5.0);
        assert_eq!(
            found,
            ["s.toml:2: [long] has no way out: a position is held until the data or its segment ends"]
        );
    }

    #[test]
    fn a_level_that_looks_like_a_share_is_named_where_prices_are_high() {
        let source = "[params]\naim = { float = [0.01, 0.2], default = 0.1 }\n[long]\nenter = 'close > open'\nstop = '0.02'\ntarget = 'aim'\n[short]\nenter = 'close < open'\nstop = '0.02'\ntarget = 'aim'\n";
        let found = remarks(source, 640.5);
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(
            found[0],
            "s.toml:5: the stop of [long] is the price 0.02, but X costs 640.5; for a share of the entry price write entry * (1 - 0.02)"
        );
        assert!(found[1].contains("target of [long] is the price aim") && found[1].ends_with("(1 + aim)"));
        assert!(found[2].ends_with("(1 + 0.02)") && found[3].ends_with("(1 - aim)"), "{found:?}");
        assert!(remarks(source, 0.4).is_empty(), "a price may be below 1");
    }

    #[test]
    fn levels_that_may_be_prices_are_left_alone() {
        let source = "[params]\naim = { float = [0.01, 200.0], default = 0.1 }\n[long]\nenter = 'close > open'\nstop = 'entry * 0.98'\ntarget = 'aim'\n";
        assert!(remarks(source, 640.5).is_empty());
    }
}
