//! Trading sessions of a strategy: what a call means, and whether the data has bars in it.

use tidemill_market::Universe;
use tidemill_market::session::{Session, SessionError, zone_database, zones};

use crate::diagnostic::{Diagnostic, SourceErrors, nearest};
use crate::expr::{Expr, Kind};
use crate::strategy::{Strategy, StrategyError};

/// The session of a call, from its two quoted arguments.
pub(super) fn of_call(zone: &Expr, hours: &Expr) -> Result<Session, Diagnostic> {
    let text = |expr: &Expr, hint: &str| match &expr.kind {
        Kind::Text(text) => Ok(text.clone()),
        _ => Err(Diagnostic::new(expr.span.clone(), "expected a text in single quotes").hint(hint)),
    };
    let zone_text = text(zone, "a time zone, for example 'America/New_York'")?;
    let hours_text = text(hours, "hours of the day, for example '09:30-16:00'")?;
    Session::new(&zone_text, &hours_text).map_err(|error| {
        let (span, hint) = match &error {
            SessionError::Zone(name) => {
                // Names are long, and people leave out the continent or the underscore.
                let city = |zone: &'static str| zone.rsplit('/').next().unwrap_or(zone).replace('_', " ");
                let same_city = || zones().find(|zone| city(zone).eq_ignore_ascii_case(name));
                let hint = match nearest(name, zones()).or_else(same_city) {
                    Some(near) => format!("did you mean '{near}'?"),
                    None => "names are those of the time-zone database, for example 'Europe/London'".into(),
                };
                (zone, hint)
            }
            SessionError::Hours(_) => (hours, "write it like '09:30-16:00'; the day ends at 24:00".into()),
            SessionError::Empty(_) => (hours, "for all day write '00:00-24:00'".into()),
        };
        Diagnostic::new(span.span.clone(), error.to_string()).hint(hint)
    })
}

impl Strategy {
    /// The version of the time-zone database, if the strategy has sessions: it decides results then.
    pub fn zone_database(&self) -> Option<&'static str> {
        let mut has_session = false;
        self.session_calls(&mut |_, _, _| has_session = true);
        has_session.then(zone_database)
    }

    fn session_calls<'a>(&'a self, found: &mut impl FnMut(&'a Expr, &'a Expr, &'a Expr)) {
        for expr in self.expressions() {
            expr.calls(&mut |call, name, arguments| {
                if let ("session" | "session_bar" | "session_left", [zone, hours]) = (name, arguments) {
                    found(call, zone, hours);
                }
            });
        }
    }
}

/// Refuses a strategy with a session in which no bar of the data opens: a mistake, and silent otherwise.
pub fn check_sessions(strategy: &Strategy, universe: &Universe) -> Result<(), StrategyError> {
    let mut problems = Vec::new();
    strategy.session_calls(&mut |call, zone, hours| {
        let Ok(session) = of_call(zone, hours) else { return };
        if !universe.symbols.iter().any(|bars| session.has_bar(bars)) {
            let is_daily = universe.symbols.iter().all(|bars| bars.timeframe_ms >= tidemill_market::DAY_MS);
            let hint = if is_daily {
                "these are bars of a day or longer; sessions need bars within the day"
            } else {
                "the times of the data are UTC and the hours are those of the zone; check both"
            };
            let message = "no bar of the data opens within this session";
            problems.push(Diagnostic::new(call.span.clone(), message).hint(hint));
        }
    });
    if problems.is_empty() {
        return Ok(());
    }
    Err(StrategyError::Source(SourceErrors::new(&strategy.file, &strategy.source, problems)))
}
