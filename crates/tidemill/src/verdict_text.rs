//! The verdict for people.

use anstyle::AnsiColor;
use tidemill_dash::terminal::wrapped;
use tidemill_lab::number;
use tidemill_lab::verdict::{VerdictReport, Winner, drop_of};

use crate::table::{Screen, Table};

/// Does it hold up? All winners in a table, the best one in words.
pub fn text(report: &VerdictReport, screen: &Screen) -> String {
    let Some(best) = report.winners.first() else { return String::new() };
    let mut header = vec!["#".to_string(), "verdict".into(), "survives".into()];
    header.extend(best.verdict.checks.iter().map(|check| check.name.to_string()));
    let mut table = Table::new(header);
    for winner in &report.winners {
        table.row(cells(winner, best));
    }
    let mut out = format!("\nDoes it hold up?\n\n{}", table.render(2, screen));
    out += &format!("\nTrial {} {}\n", best.trial, best.sentence);
    for check in &best.verdict.checks {
        out += &check_line(check.survived, check.name, &check.words, screen);
    }
    if best.verdict.has_market {
        out += &format!("  (the benchmark is {})\n", report.benchmark);
    }
    out
}

/// A check in words, after `+` if it was survived and `-` if it was not.
pub fn check_line(is_survived: bool, name: &str, words: &str, screen: &Screen) -> String {
    let mark = match is_survived {
        true => screen.styled("+", AnsiColor::Green.on_default()),
        false => screen.styled("-", AnsiColor::Red.on_default()),
    };
    let room = screen.width.map_or(usize::MAX, |width| width.saturating_sub(4).max(20));
    format!("  {mark} {}\n", wrapped(&format!("{name}: {words}"), room).join("\n    "))
}

fn cells(winner: &Winner, best: &Winner) -> Vec<String> {
    let verdict = &winner.verdict;
    let mut row = vec![
        winner.trial.to_string(),
        verdict.grade.to_string(),
        format!("{} of {}", verdict.n_survived, verdict.n_checks),
    ];
    row.extend(best.verdict.checks.iter().map(|wanted| {
        match verdict.checks.iter().find(|check| check.name == wanted.name) {
            None => "–".into(),
            // Failed checks are marked, because a share alone does not show the limit.
            Some(check) => {
                let value = check.value.map_or_else(|| "–".into(), |value| format!("{value:.2}"));
                let value = if check.name == "trades" {
                    check.value.map_or_else(|| "–".into(), |value| format!("{:.3}%", 100.0 * value))
                } else {
                    value
                };
                if check.survived { value } else { format!("{value} ✗") }
            }
        }
    }));
    row
}

/// The drop from in-sample to out-of-sample, in per cent.
pub fn drop_text(before: Option<f64>, after: Option<f64>) -> String {
    // Minus zero is zero.
    drop_of(before, after).map_or_else(|| "–".into(), |share| format!("{:.0}", (100.0 * share).round() + 0.0))
}

/// The verdict in one line, for the summary.
pub fn line(report: &VerdictReport) -> String {
    let deflated = report.winners.first().and_then(|best| Some((best.deflated?, best.deflated_by_spread?)));
    let deflated = deflated.map_or_else(String::new, |(by_chance, by_spread)| {
        format!(", deflated Sharpe of the best {by_chance:.2} ({by_spread:.2} by the spread of all trials)")
    });
    let overfit = report.overfit.as_ref().map_or_else(String::new, |overfit| {
        format!(", probability of overfitting {:.2}", overfit.probability)
    });
    format!(
        "{} worth {} independent ones{overfit}{deflated}",
        number::counted(report.trials, "valid trial"),
        number::count(report.independent_trials.round() as u64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_is_shown_in_whole_per_cent() {
        assert_eq!(drop_text(Some(2.0), Some(1.5)), "25");
        assert_eq!(drop_text(Some(2.0), Some(2.004)), "0");
        assert_eq!(drop_text(Some(2.0), None), "–");
    }
}
