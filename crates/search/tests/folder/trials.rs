//! Trials to write, and how the tests write and read them.

use std::fs;
use std::path::Path;

use tidemill_search::{
    Choice, Condition, Domain, Param, Points, SamplerKind, SamplerSettings, Score, Scores, Space,
    StudyFolder, StudyHeader, TrialBatch, read_trials,
};

pub const METRICS: [&str; 2] = ["sharpe", "trades"];

pub fn space() -> Space {
    let text = |name: &str| Choice::Text(name.into());
    let mut tail = Param::new("tail", Domain::Float { low: 0.5, high: 3.0, step: None, log: false }, 1.0);
    tail.when = Some(Condition::new(|row| row[1] == 1.0));
    Space {
        params: vec![
            Param::new("fast", Domain::Int { low: 5, high: 60, step: 1, log: false }, 20.0),
            Param::new("mode", Domain::Choice { options: vec![text("tight"), text("wide")] }, 0.0),
            tail,
            Param::new(
                "level",
                Domain::Choice { options: vec![Choice::Number(1.5), Choice::Number(2.0)] },
                0.0,
            ),
            Param::new("mixed", Domain::Choice { options: vec![text("off"), Choice::Number(2.5)] }, 0.0),
            Param::new("use_stop", Domain::Bool, 0.0),
            // Called like a metric and like a fixed column: both must stay apart.
            Param::new("sharpe", Domain::Bool, 0.0),
            Param::new("trial", Domain::Bool, 0.0),
        ],
    }
}

pub fn header() -> StudyHeader {
    StudyHeader {
        version: "0.1.0".into(),
        semantics: 2,
        seed: 7,
        data_hash: "d4".into(),
        config: toml::Table::new(),
    }
}

pub struct Trials {
    pub points: Points,
    pub scores: Vec<Score>,
    pub metrics: Vec<Vec<f64>>,
}

pub fn trials(n: usize) -> Trials {
    let points = SamplerKind::Random.build(&space(), &SamplerSettings::new(3)).unwrap().ask(n);
    let number = |idx: usize| if idx % 7 == 3 { f64::NAN } else { idx as f64 * 0.5 };
    Trials {
        points,
        scores: (0..n).map(|idx| Score::new(-number(idx))).collect(),
        metrics: vec![(0..n).map(number).collect(), (0..n).map(|idx| idx as f64).collect()],
    }
}

pub fn append(folder: &StudyFolder, trials: &Trials, batch: usize, rows_per_part: usize) -> u64 {
    append_with(folder, trials, batch, rows_per_part, |_| ())
}

/// The same, with a callback after each batch, which gets the number of trials so far.
pub fn append_with(
    folder: &StudyFolder,
    trials: &Trials,
    batch: usize,
    rows_per_part: usize,
    mut after: impl FnMut(usize),
) -> u64 {
    let mut writer = folder.writer(&space(), &METRICS, 1).unwrap().with_rows_per_part(rows_per_part);
    let n = trials.points.len();
    for from in (0..n).step_by(batch) {
        let range = from..n.min(from + batch);
        let mut points = Points::new(space().len());
        points.extend_from(&trials.points, range.clone());
        let metrics: Vec<Vec<f64>> =
            trials.metrics.iter().map(|column| column[range.clone()].to_vec()).collect();
        writer.append(&points, &Scores::single(&trials.scores[range.clone()]), &metrics).unwrap();
        after(range.end);
    }
    writer.finish().unwrap()
}

pub fn read_all(dir: &Path) -> Vec<TrialBatch> {
    read_trials(dir).unwrap().collect::<Result<_, _>>().unwrap()
}

pub fn part_names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir.join("trials"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

pub fn assert_holds(dir: &Path, expected: &Trials) {
    let batches = read_all(dir);
    let mut row = 0;
    for batch in &batches {
        let points = batch.to_points(&space()).expect("the same space");
        for idx in 0..batch.trials.len() {
            assert_eq!(batch.trials[idx], row as u64);
            for param_idx in 0..space().len() {
                let (read, wrote) = (points.value(idx, param_idx), expected.points.value(row, param_idx));
                assert!(read == wrote || (read.is_nan() && wrote.is_nan()), "trial {row}: {read} {wrote}");
            }
            assert_eq!(batch.scores[idx], expected.scores[row]);
            for (column, (_, values)) in expected.metrics.iter().zip(&batch.metrics) {
                assert_eq!(values[idx], Some(column[row]).filter(|value| value.is_finite()));
            }
            row += 1;
        }
    }
    assert_eq!(row, expected.points.len());
}

pub fn rows(trials: &Trials, range: std::ops::Range<usize>) -> Trials {
    let mut points = Points::new(space().len());
    points.extend_from(&trials.points, range.clone());
    let metrics = trials.metrics.iter().map(|column| column[range.clone()].to_vec()).collect();
    Trials { points, scores: trials.scores[range].to_vec(), metrics }
}

pub fn append_rows(dir: &Path, trials: &Trials, range: std::ops::Range<usize>, rows_per_part: usize) {
    let folder = StudyFolder::open(dir).unwrap();
    let mut writer = folder.writer(&space(), &METRICS, 1).unwrap().with_rows_per_part(rows_per_part);
    let batch = rows(trials, range);
    writer.append(&batch.points, &Scores::single(&batch.scores), &batch.metrics).unwrap();
}

pub fn finish(dir: &Path, rows_per_part: usize) -> Vec<(String, Vec<u8>)> {
    let writer = StudyFolder::open(dir).unwrap().writer(&space(), &METRICS, 1).unwrap();
    writer.with_rows_per_part(rows_per_part).finish().unwrap();
    let names = part_names(dir).into_iter();
    names.map(|name| (name.clone(), fs::read(dir.join("trials").join(name)).unwrap())).collect()
}
