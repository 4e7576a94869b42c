//! The checks of a winner and the verdict over them, in words and numbers.

use std::fmt;

use serde::Serialize;

use crate::alpha::Alpha;
use crate::bootstrap::Interval;
use crate::neighborhood::Plateau;

/// The limits of the checks.
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
    /// Least t of α in sample.
    pub t_alpha: f64,
    /// The share by which the Sharpe ratio may not move when levels touched on the same bar are taken in the other order.
    pub ambiguous: f64,
}

impl Default for Standard {
    fn default() -> Self {
        Self {
            deflated: 0.95,
            overfit: 0.2,
            unseen: 0.3,
            neighbors: 0.5,
            costs: 0.3,
            delay: 0.3,
            t_alpha: 1.645,
            ambiguous: 0.3,
        }
    }
}

/// The returns of a winner beyond the market it traded in.
#[derive(Clone, Debug, PartialEq)]
pub struct MarketEvidence {
    /// Against the benchmark on the data the search saw.
    pub in_sample: Alpha,
    /// α by the year on parts of the data that the search did not see, by name; NaN where it is not defined.
    pub unseen: Vec<(&'static str, f64)>,
}

/// The evidence about a winner; `None` where something was not examined. A number that is not defined is NaN.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Sharpe ratio on the data the search saw, by the year.
    pub sharpe: f64,
    /// Deflated Sharpe ratio, with the variance between the trials that chance alone explains.
    pub deflated: Option<f64>,
    /// The same with the whole variance between the trials; only reported.
    pub deflated_by_spread: Option<f64>,
    /// Deflated Sharpe ratio of the returns beyond the market; `None` where there is no comparison with it.
    pub deflated_beyond_market: Option<f64>,
    /// Number of independent trials behind it.
    pub n_independent: f64,
    /// Probability of overfitting of the whole search.
    pub overfit: Option<f64>,
    /// Sharpe ratios on parts of the data that the search did not see, by name.
    pub unseen: Vec<(&'static str, f64)>,
    /// The results around it.
    pub neighbors: Option<Plateau>,
    /// Sharpe ratio with doubled costs.
    pub costs: Option<f64>,
    /// Sharpe ratio with every entry one bar later.
    pub delay: Option<f64>,
    /// Mean return of a trade, with its interval.
    pub trades: Option<Interval>,
    /// What it made beyond the market; `None` where equity adds in price units, which have no market to be compared with.
    pub market: Option<MarketEvidence>,
    /// Sharpe ratio with the other order of levels that the same bar touches.
    pub ambiguous: Option<f64>,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Short name, such as `luck`.
    pub name: &'static str,
    /// Whether the winner survives it.
    pub survived: bool,
    /// The measured value; `None` if it is not defined.
    pub value: Option<f64>,
    /// The limit that the value is compared with.
    pub limit: f64,
    /// The same in words.
    pub words: String,
}

/// The grade of a winner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// It is hardly luck, more than the market gave, and at most one other check failed.
    Good,
    /// It may be luck, fragile, or what the market gave to everybody.
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
    /// The grade.
    pub grade: Grade,
    /// Checks it survived.
    pub n_survived: usize,
    /// Checks that were made.
    pub n_checks: usize,
    /// The checks.
    pub checks: Vec<Check>,
    /// Whether it was compared with the market.
    pub has_market: bool,
}

impl Verdict {
    /// Judges a winner.
    pub fn new(evidence: &Evidence, standard: &Standard) -> Self {
        let checks = checks(evidence, standard);
        let n_checks = checks.len();
        let n_survived = checks.iter().filter(|check| check.survived).count();
        // Luck, the market and unseen data decide; no number of other checks makes up for them.
        let survives =
            |name: &str| checks.iter().filter(|check| check.name == name).all(|check| check.survived);
        let is_no_luck = survives(LUCK) && checks.iter().any(|check| check.name == LUCK);
        let is_confirmed = survives(UNSEEN) && survives(HOLDOUT);
        let has_market = evidence.market.is_some();
        let grade = if is_no_luck && is_confirmed && survives(MARKET) && n_survived + 1 >= n_checks {
            Grade::Good
        } else if 2 * n_survived >= n_checks && (is_no_luck || is_confirmed) && n_checks > 0 {
            Grade::Doubtful
        } else {
            Grade::Luck
        };
        Self { grade, n_survived, n_checks, checks, has_market }
    }

    /// The sum of it, for one line: "survives 5 of 6 checks: holds up". It says where the market was no check.
    pub fn sentence(&self) -> String {
        if self.n_checks == 0 {
            return "no check could be made".into();
        }
        let market = if self.has_market { "" } else { NO_MARKET };
        format!("survives {} of {} checks{market}: {}", self.n_survived, self.n_checks, self.grade)
    }
}

/// Name of the check against luck.
const LUCK: &str = "luck";
/// Name of the check against the market.
const MARKET: &str = "market";
/// Name of the check on out-of-sample data.
pub const UNSEEN: &str = "out of sample";
/// Name of the check on data that was held out.
pub const HOLDOUT: &str = "holdout";

/// What a verdict says where there was no comparison with the market.
const NO_MARKET: &str = " (not compared with the market: sizing is by the unit)";

fn checks(evidence: &Evidence, standard: &Standard) -> Vec<Check> {
    let mut out = Vec::new();
    let mut push = |name: &'static str, value: f64, limit: f64, survived: bool, words: String| {
        let value = Some(value).filter(|value| value.is_finite());
        out.push(Check { name, survived, value, limit, words });
    };
    if let Some(deflated) = evidence.deflated {
        let mut words = format!(
            "it beats the luckiest of {1:.0} independent trials with a probability of {0}",
            percent(deflated),
            evidence.n_independent
        );
        if let Some(by_spread) = evidence.deflated_by_spread {
            words += &format!(" ({} by the spread of all trials)", percent(by_spread));
        }
        // What a rising market gives to every trial is no luck of the winner, and no skill either: both series have to pass.
        let mut sure = deflated;
        if let Some(beyond) = evidence.deflated_beyond_market {
            words += &format!(", its returns beyond the market with {}", percent(beyond));
            sure = if beyond < deflated || beyond.is_nan() { beyond } else { deflated };
        }
        push(LUCK, sure, standard.deflated, sure >= standard.deflated, words);
    }
    if let Some(market) = &evidence.market {
        let Alpha { beta, alpha, t_alpha, .. } = market.in_sample;
        let (t, nan) = (t_alpha.unwrap_or(f64::NAN), f64::NAN);
        let mut words = format!(
            "alpha of {} a year at a beta of {}, t {}",
            percent(alpha.unwrap_or(nan)),
            number(beta.unwrap_or(nan)),
            if t.is_finite() { format!("{t:.2}") } else { "unknown".into() }
        );
        for (name, alpha) in &market.unseen {
            words += &format!("; {name} {}", percent(*alpha));
        }
        let is_kept = market.unseen.iter().all(|(_, alpha)| *alpha > 0.0);
        push(MARKET, t, standard.t_alpha, t >= standard.t_alpha && is_kept, words);
    }
    if let Some(overfit) = evidence.overfit {
        let words = format!(
            "in {} of the splits of time, the best trial of one half is below the median of the other half",
            percent(overfit)
        );
        push("overfitting", overfit, standard.overfit, overfit <= standard.overfit, words);
    }
    let mut left = |name: &'static str, sharpe: f64, limit: f64, what: &str| {
        // A winner without profit has nothing to keep.
        let kept = if evidence.sharpe > 0.0 { sharpe / evidence.sharpe } else { f64::NAN };
        let words = format!("{what} the Sharpe ratio {}", moved(evidence.sharpe, sharpe));
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
    if let Some(sharpe) = evidence.ambiguous {
        let change = (sharpe - evidence.sharpe).abs() / evidence.sharpe.abs();
        let words = format!(
            "if a bar that touches stop and target is read the other way round, the Sharpe ratio {}",
            moved(evidence.sharpe, sharpe)
        );
        push("ambiguous", change, standard.ambiguous, change < standard.ambiguous, words);
    }
    if let Some(plateau) = &evidence.neighbors {
        let kept = plateau.kept.unwrap_or(f64::NAN);
        let words = match plateau.median {
            Some(median) => format!(
                "the median of {} neighbours is {}, {} of the winner's objective",
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
            "a trade returns {} on average, with a 95 % interval from {} to {} ({} trades)",
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

/// From one Sharpe ratio to another, in words.
fn moved(from: f64, to: f64) -> String {
    let (from_text, to_text) = (number(from), number(to));
    match to.partial_cmp(&from) {
        _ if from_text == to_text => format!("stays at {from_text}"),
        Some(std::cmp::Ordering::Greater) => format!("rises from {from_text} to {to_text}"),
        _ => format!("falls from {from_text} to {to_text}"),
    }
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
            deflated_by_spread: Some(0.42),
            deflated_beyond_market: Some(0.98),
            market: Some(MarketEvidence {
                in_sample: Alpha { days: 400, beta: Some(0.2), alpha: Some(0.3), t_alpha: Some(2.5) },
                unseen: vec![(UNSEEN, 0.2)],
            }),
            ambiguous: Some(1.8),
        }
    }

    fn judge(change: &dyn Fn(&mut Evidence)) -> Verdict {
        let mut evidence = good();
        change(&mut evidence);
        Verdict::new(&evidence, &Standard::default())
    }

    fn market(t_alpha: Option<f64>, unseen: f64) -> Option<MarketEvidence> {
        let in_sample = Alpha { days: 400, beta: Some(1.0), alpha: Some(0.01), t_alpha };
        Some(MarketEvidence { in_sample, unseen: vec![(UNSEEN, unseen)] })
    }

    #[test]
    fn what_the_market_gave_does_not_hold_up() {
        let grade = |t_alpha, unseen| judge(&|e| e.market = market(t_alpha, unseen)).grade;
        assert_eq!(grade(Some(1.645), 0.001), Grade::Good);
        assert_eq!(grade(Some(1.644), 0.001), Grade::Doubtful);
        assert_eq!(grade(Some(5.0), 0.0), Grade::Doubtful);
        assert_eq!(grade(Some(5.0), f64::NAN), Grade::Doubtful);
        assert_eq!(grade(None, 0.1), Grade::Doubtful, "at best doubtful where t is not known");
        let unknown = judge(&|e| e.market = market(None, 0.1));
        let check = unknown.checks.iter().find(|check| check.name == MARKET).unwrap();
        assert_eq!((check.value, check.survived), (None, false));
        assert_eq!(check.words, "alpha of 1.0 % a year at a beta of 1.00, t unknown; out of sample 10.0 %");
    }

    #[test]
    fn what_happens_to_a_sharpe_ratio_is_told_as_a_change() {
        let words = |change: &dyn Fn(&mut Evidence), name: &str| {
            judge(change).checks.into_iter().find(|check| check.name == name).unwrap().words
        };
        let costs = words(&|e| e.costs = Some(1.5), "costs");
        assert_eq!(costs, "with doubled costs the Sharpe ratio falls from 2.00 to 1.50");
        let delay = words(&|e| e.delay = Some(2.25), "delay");
        assert_eq!(delay, "with entries one bar later the Sharpe ratio rises from 2.00 to 2.25");
        let ambiguous = words(&|e| e.ambiguous = Some(2.0), "ambiguous");
        assert!(ambiguous.ends_with("the Sharpe ratio stays at 2.00"), "{ambiguous}");
    }

    #[test]
    fn luck_beyond_the_market_is_luck() {
        let verdict = judge(&|e| e.deflated_beyond_market = Some(0.5));
        assert_eq!(verdict.grade, Grade::Doubtful);
        assert_eq!((verdict.checks[0].value, verdict.checks[0].survived), (Some(0.5), false));
        assert_eq!(judge(&|e| e.deflated_beyond_market = Some(f64::NAN)).grade, Grade::Doubtful);
    }

    #[test]
    fn a_verdict_without_a_market_says_so() {
        let verdict = judge(&|e| (e.market, e.deflated_beyond_market) = (None, None));
        assert_eq!(verdict.grade, Grade::Good);
        assert_eq!(
            verdict.sentence(),
            "survives 8 of 8 checks (not compared with the market: sizing is by the unit): holds up"
        );
    }

    #[test]
    fn the_order_of_levels_may_move_the_sharpe_ratio_by_less_than_a_third() {
        let survives = |sharpe: f64| {
            let verdict = judge(&|e| e.ambiguous = Some(sharpe));
            verdict.checks.iter().find(|check| check.name == "ambiguous").unwrap().survived
        };
        assert!(survives(2.0) && survives(1.41) && survives(2.59));
        assert!(!survives(1.4) && !survives(2.61) && !survives(-2.0) && !survives(f64::NAN));
    }

    #[test]
    fn a_winner_that_survives_everything_holds_up() {
        let verdict = Verdict::new(&good(), &Standard::default());
        assert_eq!(verdict.sentence(), "survives 9 of 9 checks: holds up");
        assert_eq!(
            verdict.checks[0].words,
            "it beats the luckiest of 4000 independent trials with a probability of 99.0 % \
             (42.0 % by the spread of all trials), its returns beyond the market with 98.0 %"
        );
    }

    #[test]
    fn one_weakness_is_forgiven_but_not_luck_nor_unseen_data() {
        let judge = |change: &dyn Fn(&mut Evidence)| judge(change).grade;
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
