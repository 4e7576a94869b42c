//! What the random cases have met, so that a comparison that compares nothing is noticed.

use std::collections::BTreeMap;

/// Counts over a run.
#[derive(Default, Debug)]
pub struct Coverage {
    pub cases: u64,
    pub trials: u64,
    /// Trials that traded.
    pub traded: u64,
    /// Trades by how they ended.
    pub endings: BTreeMap<String, u64>,
    pub reversals: u64,
    /// Entries not taken because a stop lay beyond the fill.
    pub invalid_stops: u64,
    /// Entries not taken because a target lay on the wrong side.
    pub invalid_targets: u64,
    /// Entries not taken because their size was nothing.
    pub no_size: u64,
    /// Trades whose exit depends on the order inside a bar.
    pub ambiguous: u64,
    /// Positions forgotten at the end.
    pub discards: u64,
    /// Signals that fell into a cooldown.
    pub paused: u64,
    /// Bars on which both sides fired.
    pub both_sides: u64,
    /// Segments that lost everything.
    pub ruined: u64,
    /// Trials with a pool of several segments.
    pub pooled: u64,
    /// Cases whose strategy is about other bars, by the function.
    pub elsewhere: BTreeMap<&'static str, u64>,
}

/// Functions about other bars than those that are walked, and about one's own past.
const ELSEWHERE: [&str; 11] = [
    "tf('",
    "tf(d0",
    "of('",
    "rank(",
    "mean_over(",
    "sum_over(",
    "max_over(",
    "min_over(",
    "count_over(",
    "share_over(",
    "recur(",
];

impl Coverage {
    /// Counts a strategy.
    pub fn strategy(&mut self, source: &str) {
        for function in ELSEWHERE.into_iter().filter(|function| source.contains(function)) {
            *self.elsewhere.entry(function).or_default() += 1;
        }
    }

    pub fn ending(&mut self, name: String) {
        *self.endings.entry(name).or_default() += 1;
    }
}

impl Coverage {
    /// Every way a trade can end, and every rule about entries, was met.
    pub fn assert_complete(&self) {
        let kinds = ["Stop", "StopSeries", "Target", "Trail", "Breakeven"];
        let mut endings: Vec<String> =
            kinds.iter().flat_map(|kind| [kind.to_string(), format!("{kind} gap")]).collect();
        endings.extend(["Signal", "Time", "End", "Ruin"].map(String::from));
        for ending in endings {
            assert!(self.endings.contains_key(&ending), "no trade ended by {ending}");
        }
        let rules = [
            ("reversals", self.reversals),
            ("invalid stops", self.invalid_stops),
            ("invalid targets", self.invalid_targets),
            ("sizes of nothing", self.no_size),
            ("ambiguous exits", self.ambiguous),
            ("discards", self.discards),
            ("cooldowns", self.paused),
            ("both sides", self.both_sides),
            ("ruin", self.ruined),
            ("pools", self.pooled),
        ];
        for (rule, count) in rules {
            assert!(count > 0, "no case met {rule}");
        }
        for function in ELSEWHERE {
            assert!(self.elsewhere.contains_key(function), "no strategy has {function}");
        }
        assert!(self.traded * 3 > self.trials, "{} of {} trials traded", self.traded, self.trials);
    }
}
