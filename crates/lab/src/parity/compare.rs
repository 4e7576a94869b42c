//! One comparison of a device with the CPU, bit for bit.

use std::sync::Arc;

use tidemill_backtest::segment::Segment;
use tidemill_backtest::tally::Tally;
use tidemill_backtest::{DeviceEngine, Engine, Outcome};
use tidemill_gpu::GpuError;
use tidemill_search::Points;

/// Trials of a population whose masks and trades are compared one by one.
const DETAILED: usize = 24;

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Trials that were compared.
    pub trials: u64,
    /// Their trades, by the CPU.
    pub trades: u64,
    /// Trials whose entry masks and single trades were compared too.
    pub detailed: u64,
    /// Trials that differ in any bit.
    pub different: u64,
    /// The first of them.
    pub first: Option<Difference>,
}

/// In what one trial differs.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Number of the trial in its population.
    pub trial: usize,
    /// Its parameters, encoded; NaN where inactive.
    pub row: Vec<f64>,
    /// The segment, or the pool of several.
    pub part: String,
    /// Fields that differ: name, by the CPU, by the device.
    pub fields: Vec<(&'static str, f64, f64)>,
}

impl Compared {
    /// Adds another comparison; the first difference stays.
    pub fn add(&mut self, other: &Self) {
        self.trials += other.trials;
        self.trades += other.trades;
        self.detailed += other.detailed;
        self.different += other.different;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }
}

/// Evaluates points on both sides and compares every sum of every segment and pool.
pub fn compare(
    engine: &mut Engine<'_>,
    device: &mut DeviceEngine,
    points: &Arc<Points>,
) -> Result<Compared, GpuError> {
    device.submit(points.clone())?;
    // The CPU works while the device does.
    let expected = engine.evaluate(points);
    let got = device.collect()?;
    let mut compared = compare_outcomes(engine.segments(), points, &expected, &got);
    compared.add(&compare_details(engine, device, points)?);
    Ok(compared)
}

/// Compares the entry masks and every trade of some trials, spread over all: sums could hide two errors that cancel.
fn compare_details(
    engine: &mut Engine<'_>,
    device: &mut DeviceEngine,
    points: &Points,
) -> Result<Compared, GpuError> {
    let step = points.len().div_ceil(DETAILED).max(1);
    let chosen: Vec<usize> = (0..points.len()).step_by(step).collect();
    let mut some = Points::new(points.n_params());
    chosen.iter().for_each(|trial| some.extend_from(points, *trial..trial + 1));
    let found = device.detail(&some)?;
    let mut out = Compared { detailed: chosen.len() as u64, ..Compared::default() };
    let mut row = vec![0.0; points.n_params()];
    for (at, trial) in chosen.into_iter().enumerate() {
        points.read_row(trial, &mut row);
        let part = match found.get(at) {
            Some(found) => found.difference(engine, &row),
            None => Some("no details came back".into()),
        };
        if let Some(part) = part {
            out.different += 1;
            out.first.get_or_insert_with(|| Difference { trial, row: row.clone(), part, fields: Vec::new() });
        }
    }
    Ok(out)
}

fn compare_outcomes(
    segments: &[Segment],
    points: &Points,
    expected: &[Outcome],
    got: &[Outcome],
) -> Compared {
    let mut out = Compared { trials: points.len() as u64, ..Compared::default() };
    for (trial, cpu) in expected.iter().enumerate() {
        out.trades += [Some(&cpu.train), cpu.test.as_deref()]
            .into_iter()
            .flatten()
            .map(|t| u64::from(t.trades))
            .sum::<u64>();
        let difference = match got.get(trial) {
            Some(device) => outcome_difference(segments, cpu, device),
            None => Some(("no result came back".into(), Vec::new())),
        };
        if let Some((part, fields)) = difference {
            out.different += 1;
            out.first.get_or_insert_with(|| {
                let mut row = vec![0.0; points.n_params()];
                points.read_row(trial, &mut row);
                Difference { trial, row, part, fields }
            });
        }
    }
    out
}

type Fields = Vec<(&'static str, f64, f64)>;

/// The first part in which two outcomes differ, and its fields.
fn outcome_difference(segments: &[Segment], cpu: &Outcome, device: &Outcome) -> Option<(String, Fields)> {
    if cpu.segments().len() != device.segments().len() {
        return Some((
            format!("{} segments, not {}", device.segments().len(), cpu.segments().len()),
            Vec::new(),
        ));
    }
    let of_segments = cpu.segments().iter().zip(device.segments()).enumerate().map(|(at, (cpu, device))| {
        (
            segments.get(at).map_or_else(|| format!("segment {at}"), |segment| segment.name.clone()),
            cpu,
            device,
        )
    });
    let mut parts = of_segments.chain([("pool".to_owned(), &cpu.train, &device.train)]);
    if let Some((part, cpu, device)) = parts.find(|(_, cpu, device)| cpu.bits() != device.bits()) {
        return Some((part, tally_difference(cpu, device)));
    }
    let bits = |outcome: &Outcome| -> Vec<u64> {
        let sums = outcome.blocks.iter().flatten();
        sums.map(|sum| if sum.is_nan() { f64::NAN.to_bits() } else { sum.to_bits() }).collect()
    };
    if bits(cpu) != bits(device) {
        return Some(("blocks of time".into(), Vec::new()));
    }
    match (&cpu.test, &device.test) {
        (None, None) => None,
        (Some(cpu), Some(device)) if cpu.bits() == device.bits() => None,
        (Some(cpu), Some(device)) => Some(("out-of-sample pool".into(), tally_difference(cpu, device))),
        _ => Some(("only one side has an out-of-sample pool".into(), Vec::new())),
    }
}

fn tally_difference(cpu: &Tally, device: &Tally) -> Fields {
    let bits = |value: f64| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
    let pairs = cpu.fields().into_iter().zip(device.fields());
    pairs.filter(|(a, b)| bits(a.1) != bits(b.1)).map(|(a, b)| (a.0, a.1, b.1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill_backtest::segment::Role;

    fn outcome(equity: f64, wins: u32) -> Outcome {
        let tally = Tally { equity, wins, trades: 3, ..Tally::default() };
        let segments = [Tally { trades: 3, ..Tally::default() }, tally];
        Outcome::new(segments.into_iter(), Some(tally), None, Vec::new())
    }

    #[test]
    fn a_difference_is_named_by_trial_part_and_field() {
        let segment = |name: &str| Segment { symbol: 0, range: 0..9, role: Role::Train, name: name.into() };
        let segments = [segment("A"), segment("B")];
        let mut points = Points::new(1);
        [5.0, 6.0, 7.0].iter().for_each(|value| points.push(&[*value]));
        let cpu = [outcome(1.0, 1), outcome(1.0, 2), outcome(f64::NAN, 2)];
        let same = compare_outcomes(&segments, &points, &cpu, &cpu);
        assert_eq!((same.trials, same.trades, same.different), (3, 9, 0));
        assert!(same.first.is_none());

        let device = [outcome(1.0, 1), outcome(1.0 + f64::EPSILON, 2), outcome(-f64::NAN, 2)];
        let compared = compare_outcomes(&segments, &points, &cpu, &device);
        assert_eq!(compared.different, 1, "another NaN is no difference");
        let first = compared.first.unwrap();
        assert_eq!((first.trial, first.row, first.part.as_str()), (1, vec![6.0], "B"));
        assert_eq!(first.fields, [("equity", 1.0, 1.0 + f64::EPSILON)]);

        let short = compare_outcomes(&segments, &points, &cpu, &cpu[..1]);
        assert_eq!(short.different, 2, "a missing result differs");
    }
}
