//! A signal in words.

use std::fmt;

use super::{SignalPosition, SignalReport, SymbolSignal};

impl fmt::Display for SignalReport {
    /// The symbols one after the other.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.symbols.iter().try_for_each(|symbol| write!(f, "{symbol}"))
    }
}

impl fmt::Display for SymbolSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}  {} closed at {}", self.symbol, self.close_time, self.close)?;
        if let Some(exit) = &self.exit {
            let reason = exit.reason.as_deref().unwrap_or("a signal");
            writeln!(f, "  exit {}, entered at {}: {reason}", exit.side, exit.entry)?;
        }
        if let Some(enter) = &self.enter {
            writeln!(f, "  enter {} at the next open", enter.side)?;
            write_levels(f, enter)?;
        }
        if let Some(hold) = &self.hold {
            let since = hold.entry_time.as_deref().unwrap_or(&hold.signal_time);
            writeln!(f, "  hold {} since {since}, entered at {}", hold.side, hold.entry)?;
            write_levels(f, hold)?;
        }
        if self.ruined {
            return writeln!(f, "  nothing: no equity is left");
        }
        match (&self.exit, &self.enter, &self.hold) {
            (None, None, None) => writeln!(f, "  nothing"),
            _ => Ok(()),
        }
    }
}

fn write_levels(f: &mut fmt::Formatter<'_>, position: &SignalPosition) -> fmt::Result {
    for level in &position.levels {
        let label = if level.label.eq_ignore_ascii_case(level.kind) { "" } else { level.label.as_str() };
        let label = if label.is_empty() { String::new() } else { format!(" ({label})") };
        let mark = if level.provisional { ", provisional: it moves with the fill" } else { "" };
        writeln!(f, "    {} {}{label}{mark}", level.kind, level.price)?;
    }
    match position.closes_in {
        Some(1) => writeln!(f, "    time exit at the next close"),
        Some(n_closes) => writeln!(f, "    time exit {n_closes} closes from now"),
        None => Ok(()),
    }
}
