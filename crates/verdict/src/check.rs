//! What a winner has to survive, and the verdict over it, in words and numbers.

use std::fmt;

use serde::Serialize;

use crate::bootstrap::Interval;
use crate::neighborhood::Plateau;

/// What is asked of a winner.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Standard {
    /// Least deflated Sharpe ratio.
    pub deflated: f64,
    /// Most probability of overfitting.
    pub overfit: f64,
    /// Least share of the Sharpe ratio that is left on data the search did not see.
    pub unseen: f64,
    /// Least share of the result that the middle neighbour has.
    pub neighbors: f64,
    /// Least share of the Sharpe ratio that is left with doubled costs.
    pub costs: f64,
    /// Least share of it that is left when every entry comes one bar later.
    pub delay: f64,
}

impl Default for Standard {
    fn default() -> Self {
        Self { deflated: 0.95, overfit: 0.2, unseen: 0.3, neighbors: 0.5, costs: 0.3, delay: 0.3 }
    }
}

/// What is known of a winner; `None` where it was not looked into. A number that is not defined is NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Sharpe ratio on the data the search saw, by the year.
    pub sharpe: f64,
    /// Deflated Sharpe ratio.
    pub deflated: Option<f64>,
    /// Number of independent trials behind it.
    pub n_independent: f64,
    /// Probability of overfitting of the whole search.
    pub overfit: Option<f64>,
    /// Sharpe ratios on parts of the data that the search did not see, by name.
    pub unseen: Vec<(&'static str, f64)>,
    /// What lies around it.
    pub neighbors: Option<Plateau>,
    /// Sharpe ratio with doubled costs.
    pub costs: Option<f64>,
    /// Sharpe ratio with every entry one bar later.
    pub delay: Option<f64>,
    /// Mean return of a trade, with its interval.
    pub trades: Option<Interval>,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What is looked into.
    pub name: &'static str,
    /// Whether the winner survives it.
    pub survived: bool,
    /// What was found; `None` if it is not defined.
    pub value: Option<f64>,
    /// What was asked.
    pub limit: f64,
    /// The same in words.
    pub words: String,
}

/// What to think of a winner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// It is hardly luck, and at most one other check failed.
    Good,
    /// It may be luck, or it is fragile.
    Doubtful,
    /// It fails most of the checks, or both luck and data that the search did not see.
    Luck,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Good => "holds up",
            Self::Doubtful => "doubtful",
            Self::Luck => "probably luck",
        })
    }
}

/// All checks of a winner.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What to think of it.
    pub grade: Grade,
    /// Checks it survived.
    pub n_survived: usize,
    /// Checks that were made.
    pub n_checks: usize,
    /// The checks.
    pub checks: Vec<Check>,
}

impl Verdict {
    /// Judges a winner.
    pub fn new(evidence: &Evidence, standard: &Standard) -> Self {
        let checks = checks(evidence, standard);
        let n_checks = checks.len();
        let n_survived = checks.iter().filter(|check| check.survived).count();
        // Luck and unseen data decide; no number of other checks makes up for them.
        let decided = |check: &Check| matches!(check.name, LUCK | UNSEEN | HOLDOUT);
        let is_no_luck = checks.iter().any(|check| check.name == LUCK && check.survived);
        let is_confirmed =
            checks.iter().filter(|check| decided(check)).all(|check| check.survived || check.name == LUCK);
        let grade = if is_no_luck && is_confirmed && n_survived + 1 >= n_checks {
            Grade::Good
        } else if 2 * n_survived >= n_checks && (is_no_luck || is_confirmed) && n_checks > 0 {
            Grade::Doubtful
        } else {
            Grade::Luck
        };
        Self { grade, n_survived, n_checks, checks }
    }

    /// The sum of it, for one line: "survives 5 of 6 checks: holds up".
    pub fn sentence(&self) -> String {
        if self.n_checks == 0 {
            return "no check could be made".into();
        }
        format!("survives {} of {} checks: {}", self.n_survived, self.n_checks, self.grade)
    }
}

/// Name of the check against luck.
pub const LUCK: &str = "luck";
/// Name of the check on out-of-sample data.
pub const UNSEEN: &str = "out of sample";
/// Name of the check on data that was held out.
pub const HOLDOUT: &str = "holdout";

fn checks(evidence: &Evidence, standard: &Standard) -> Vec<Check> {
    let mut out = Vec::new();
    let mut push = |name: &'static str, value: f64, limit: f64, survived: bool, words: String| {
        let value = Some(value).filter(|value| value.is_finite());
        out.push(Check { name, survived, value, limit, words });
    };
    if let Some(deflated) = evidence.deflated {
        let words = format!(
            "{} sure that it is more than the luckiest of {:.0} independent trials",
            percent(deflated),
            evidence.n_independent
        );
        push(LUCK, deflated, standard.deflated, deflated >= standard.deflated, words);
    }
    if let Some(overfit) = evidence.overfit {
        let words = format!(
            "the best of one half of the time is below the median of the other in {}",
            percent(overfit)
        );
        push("overfitting", overfit, standard.overfit, overfit <= standard.overfit, words);
    }
    let mut left = |name: &'static str, sharpe: f64, limit: f64, what: &str| {
        // A winner without profit has nothing to keep.
        let kept = if evidence.sharpe > 0.0 { sharpe / evidence.sharpe } else { f64::NAN };
        let words = format!("Sharpe {} of {} is left {what}", number(sharpe), number(evidence.sharpe));
        push(name, kept, limit, kept >= limit, words);
    };
    for (name, sharpe) in &evidence.unseen {
        left(name, *sharpe, standard.unseen, "on data the search did not see");
    }
    if let Some(sharpe) = evidence.costs {
        left("costs", sharpe, standard.costs, "with doubled costs");
    }
    if let Some(sharpe) = evidence.delay {
        left("delay", sharpe, standard.delay, "with entries one bar later");
    }
    if let Some(plateau) = &evidence.neighbors {
        let kept = plateau.kept.unwrap_or(f64::NAN);
        let words = match plateau.median {
            Some(median) => format!(
                "the middle of {} neighbours has {}, {} of the winner's result",
                plateau.n,
                number(median),
                percent(kept)
            ),
            None => format!("only {} of {} neighbours have a result", plateau.n_valid, plateau.n),
        };
        push("neighbours", kept, standard.neighbors, kept >= standard.neighbors, words);
    }
    if let Some(interval) = &evidence.trades {
        let words = format!(
            "a trade makes {} on average, between {} and {} with 95 % confidence ({} trades)",
            fine_percent(interval.mean),
            fine_percent(interval.low),
            fine_percent(interval.high),
            interval.n
        );
        push("trades", interval.low, 0.0, interval.low > 0.0, words);
    }
    out
}

fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", 100.0 * share) } else { "an undefined share".into() }
}

fn fine_percent(share: f64) -> String {
    format!("{:.3} %", 100.0 * share)
}

fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}") } else { "nothing".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Evidence {
        Evidence {
            sharpe: 2.0,
            deflated: Some(0.99),
            n_independent: 4000.0,
            overfit: Some(0.05),
            unseen: vec![(UNSEEN, 1.5)],
            neighbors: crate::plateau(2.0, &[Some(1.8)]),
            costs: Some(1.4),
            delay: Some(1.9),
            trades: Some(Interval { mean: 0.002, low: 0.001, high: 0.003, positive: 1.0, n: 120 }),
        }
    }

    #[test]
    fn a_winner_that_survives_everything_holds_up() {
        let verdict = Verdict::new(&good(), &Standard::default());
        assert_eq!(verdict.sentence(), "survives 7 of 7 checks: holds up");
        assert_eq!(
            verdict.checks[0].words,
            "99.0 % sure that it is more than the luckiest of 4000 independent trials"
        );
    }

    #[test]
    fn one_weakness_is_forgiven_but_not_luck_nor_unseen_data() {
        let judge = |change: &dyn Fn(&mut Evidence)| {
            let mut evidence = good();
            change(&mut evidence);
            Verdict::new(&evidence, &Standard::default()).grade
        };
        assert_eq!(judge(&|e| e.costs = Some(-0.1)), Grade::Good);
        assert_eq!(judge(&|e| (e.costs, e.delay) = (Some(-0.1), Some(0.0))), Grade::Doubtful);
        assert_eq!(judge(&|e| e.deflated = Some(0.9)), Grade::Doubtful);
        assert_eq!(judge(&|e| e.unseen[0].1 = -1.0), Grade::Doubtful);
        assert_eq!(judge(&|e| e.deflated = None), Grade::Doubtful);
        assert_eq!(judge(&|e| (e.deflated, e.unseen[0].1) = (Some(0.4), -1.0)), Grade::Luck);
    }

    #[test]
    fn what_is_not_defined_does_not_survive() {
        let nothing = Evidence {
            sharpe: f64::NAN,
            deflated: Some(f64::NAN),
            overfit: Some(f64::NAN),
            unseen: vec![(HOLDOUT, f64::NAN)],
            costs: Some(1.0),
            delay: Some(1.0),
            neighbors: crate::plateau(f64::NAN, &[None]),
            ..Evidence::default()
        };
        let verdict = Verdict::new(&nothing, &Standard::default());
        assert_eq!((verdict.n_survived, verdict.grade), (0, Grade::Luck));
        assert!(verdict.checks.iter().all(|check| check.value.is_none()));
        let none = Verdict::new(&Evidence::default(), &Standard::default());
        assert_eq!((none.n_checks, none.grade), (0, Grade::Luck));
    }
}
