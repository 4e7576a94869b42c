//! One curve for several symbols, for reports whose caller has none.

use super::{Curve, EquityKind};

/// Mean of the symbols' equity, each starting with the same amount and left alone; for additive equity their sum.
/// A symbol counts with its start before its first day and with its last value after its last.
pub fn combine(curves: &[&Curve], kind: EquityKind) -> Curve {
    let lines = |line: fn(&Curve) -> &[(i64, f64)]| {
        let used: Vec<(f64, &[(i64, f64)])> = curves
            .iter()
            .map(|curve| (curve.start, line(curve)))
            .filter(|(_, days)| !days.is_empty())
            .collect();
        merge(&used, kind)
    };
    Curve {
        start: match kind {
            EquityKind::Compound => 1.0,
            EquityKind::Additive => 0.0,
        },
        equity: lines(|curve| &curve.equity),
        buy_hold: lines(|curve| &curve.buy_hold),
    }
}

/// Combines (start, days) lines day by day, over all days any of them has.
fn merge(lines: &[(f64, &[(i64, f64)])], kind: EquityKind) -> Vec<(i64, f64)> {
    let mut days: Vec<i64> = lines.iter().flat_map(|(_, line)| line.iter().map(|point| point.0)).collect();
    days.sort_unstable();
    days.dedup();
    let mut next = vec![0; lines.len()];
    let mut last: Vec<f64> = lines.iter().map(|(start, _)| *start).collect();
    let mut merged = Vec::with_capacity(days.len());
    for day in days {
        let mut sum = 0.0;
        for (i, (start, line)) in lines.iter().enumerate() {
            while next[i] < line.len() && line[next[i]].0 <= day {
                if line[next[i]].1.is_finite() {
                    last[i] = line[next[i]].1;
                }
                next[i] += 1;
            }
            sum += match kind {
                EquityKind::Compound => last[i] / start,
                EquityKind::Additive => last[i] - start,
            };
        }
        merged.push(match kind {
            EquityKind::Compound => (day, sum / lines.len() as f64),
            EquityKind::Additive => (day, sum),
        });
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_symbol_counts_with_its_start() {
        let early = Curve { start: 1.0, equity: vec![(0, 1.2), (1, 1.4)], buy_hold: vec![] };
        let late = Curve { start: 1.0, equity: vec![(1, 0.8)], buy_hold: vec![] };
        let both = combine(&[&early, &late], EquityKind::Compound);
        assert_eq!(both.equity, [(0, 1.1), (1, 1.1)]);
        assert!(both.buy_hold.is_empty());
    }

    #[test]
    fn additive_curves_are_summed() {
        let one = Curve { start: 0.0, equity: vec![(0, 3.0), (1, f64::NAN)], buy_hold: vec![] };
        let two = Curve { start: 0.0, equity: vec![(0, -1.0), (1, 5.0)], buy_hold: vec![] };
        assert_eq!(combine(&[&one, &two], EquityKind::Additive).equity, [(0, 2.0), (1, 8.0)]);
    }
}
