//! The study folder as others see it: parts on disk, whatever happened to the writer.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tidemill_search::{
    Choice, Domain, FolderError, Param, Points, SamplerKind, SamplerSettings, Score, Space, StudyFolder,
    StudyHeader, TrialBatch, Value, read_trials,
};

const METRICS: [&str; 2] = ["sharpe", "trades"];

fn space() -> Space {
    let text = |name: &str| Choice::Text(name.into());
    let mut tail = Param::new("tail", Domain::Float { low: 0.5, high: 3.0, step: None, log: false }, 1.0);
    tail.when = Some(Arc::new(|row| row[1] == 1.0));
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

fn header() -> StudyHeader {
    StudyHeader { version: "0.1.0".into(), seed: 7, data_hash: "d4".into(), config: toml::Table::new() }
}

struct Trials {
    points: Points,
    scores: Vec<Score>,
    metrics: Vec<Vec<f64>>,
}

fn trials(n: usize) -> Trials {
    let points = SamplerKind::Random.build(&space(), &SamplerSettings::new(3)).unwrap().ask(n);
    let number = |idx: usize| if idx % 7 == 3 { f64::NAN } else { idx as f64 * 0.5 };
    Trials {
        points,
        scores: (0..n).map(|idx| Score::new(-number(idx))).collect(),
        metrics: vec![(0..n).map(number).collect(), (0..n).map(|idx| idx as f64).collect()],
    }
}

fn append(folder: &StudyFolder, trials: &Trials, batch: usize, rows_per_part: usize) -> u64 {
    let mut writer = folder.trials_writer(&space(), &METRICS).unwrap().with_rows_per_part(rows_per_part);
    let n = trials.points.len();
    for from in (0..n).step_by(batch) {
        let range = from..n.min(from + batch);
        let mut points = Points::new(space().len());
        points.extend_from(&trials.points, range.clone());
        let metrics: Vec<Vec<f64>> =
            trials.metrics.iter().map(|column| column[range.clone()].to_vec()).collect();
        writer.append(&points, &trials.scores[range], &metrics).unwrap();
    }
    writer.finish().unwrap()
}

fn read_all(dir: &Path) -> Vec<TrialBatch> {
    read_trials(dir).unwrap().collect::<Result<_, _>>().unwrap()
}

fn part_names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir.join("trials"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn assert_holds(dir: &Path, expected: &Trials) {
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

#[test]
fn trials_round_trip_whatever_the_batches() {
    let expected = trials(1000);
    let mut bytes = Vec::new();
    for batch in [1, 64, 300, 1000] {
        let dir = tempfile::tempdir().unwrap();
        let folder = StudyFolder::create(dir.path(), &header()).unwrap();
        assert_eq!(append(&folder, &expected, batch, 300), 1000);
        assert_eq!(
            part_names(dir.path()),
            ["part-000000.parquet", "part-000001.parquet", "part-000002.parquet", "part-000003.parquet"]
        );
        assert_holds(dir.path(), &expected);
        bytes.push(fs::read(dir.path().join("trials/part-000003.parquet")).unwrap());
    }
    assert!(bytes.windows(2).all(|pair| pair[0] == pair[1]), "equal studies have equal parts");
}

#[test]
fn columns_have_the_types_and_names_that_other_tools_expect() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    append(&folder, &trials(200), 200, 300);
    let file = fs::File::open(dir.path().join("trials/part-000000.parquet")).unwrap();
    let schema = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file)
        .unwrap()
        .schema()
        .clone();
    let columns: Vec<String> =
        schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    assert_eq!(
        columns,
        [
            "trial UInt64",
            "fast Int64",
            "mode Utf8",
            "tail Float64",
            "level Float64",
            "mixed Utf8",
            "use_stop Boolean",
            "param:sharpe Boolean",
            "param:trial Boolean",
            "sharpe Float64",
            "trades Float64",
            "objective Float64"
        ]
    );
    let batch = &read_all(dir.path())[0];
    let names: Vec<&str> = batch.params.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["fast", "mode", "tail", "level", "mixed", "use_stop", "sharpe", "trial"]);
    let wide = |row: usize| batch.params[1].1.value(row) == Some(Value::Text("wide".into()));
    assert!((0..200).all(|row| batch.params[2].1.value(row).is_some() == wide(row)));
    assert!((0..200).any(wide) && !(0..200).all(wide));
}

#[test]
fn a_half_written_part_is_ignored_by_readers_and_removed_by_the_next_writer() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    let expected = trials(100);
    append(&folder, &expected, 50, 50);
    let leftover = dir.path().join("trials/.part-000002.parquet.tmp");
    fs::write(&leftover, b"PAR1 half").unwrap();
    assert_holds(dir.path(), &expected);
    drop(folder.trials_writer(&space(), &METRICS).unwrap());
    assert!(!leftover.exists());
    assert_holds(dir.path(), &expected);
}

#[test]
fn a_second_writer_continues_the_count() {
    let dir = tempfile::tempdir().unwrap();
    StudyFolder::create(dir.path(), &header()).unwrap();
    let folder = StudyFolder::open(dir.path()).unwrap();
    append(&folder, &trials(70), 70, 50);
    let mut writer = folder.trials_writer(&space(), &METRICS).unwrap();
    assert_eq!((writer.n_trials(), writer.n_saved()), (70, 70));
    let more = trials(5);
    writer.append(&more.points, &more.scores, &more.metrics).unwrap();
    assert_eq!((writer.n_trials(), writer.n_saved()), (75, 70));
    drop(writer); // an early return still saves
    let numbers: Vec<u64> = read_all(dir.path()).iter().flat_map(|batch| batch.trials.clone()).collect();
    assert_eq!(numbers, (0..75).collect::<Vec<u64>>());
}

#[test]
fn a_study_without_trials_reads_as_empty() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    assert_eq!(folder.trials_writer(&space(), &METRICS).unwrap().finish().unwrap(), 0);
    assert!(read_all(dir.path()).is_empty());
    assert!(part_names(dir.path()).is_empty());
}

#[test]
fn a_missing_part_and_a_damaged_part_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    append(&folder, &trials(90), 90, 30);
    let part = |idx: usize| dir.path().join(format!("trials/part-{idx:06}.parquet"));
    fs::write(part(2), b"not parquet").unwrap();
    let results: Vec<_> = read_trials(dir.path()).unwrap().collect();
    assert_eq!(results.len(), 3);
    let error = results[2].as_ref().unwrap_err();
    assert!(error.to_string().ends_with("part-000002.parquet"), "{error}");
    // Swapped parts are noticed by their trial numbers.
    fs::copy(part(1), part(2)).unwrap();
    let error = read_trials(dir.path()).unwrap().find_map(Result::err).unwrap();
    assert!(error.to_string().ends_with("part-000002.parquet: expected trial 60 to follow"), "{error}");
    fs::remove_file(part(1)).unwrap();
    let error = read_trials(dir.path()).err().unwrap();
    assert!(error.to_string().contains("part-000001.parquet: this part is missing"), "{error}");
}

#[test]
fn a_folder_that_is_gone_loses_nothing_that_was_handed_over() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    let expected = trials(80);
    let mut writer = folder.trials_writer(&space(), &METRICS).unwrap().with_rows_per_part(80);
    // A file in place of the folder stands in for a full or unwritable disk, also where tests run as root.
    let (trials_dir, aside) = (dir.path().join("trials"), dir.path().join("aside"));
    fs::rename(&trials_dir, &aside).unwrap();
    fs::write(&trials_dir, b"").unwrap();
    let error = writer.append(&expected.points, &expected.scores, &expected.metrics).unwrap_err();
    assert!(matches!(error, FolderError::Io { .. }), "{error}");
    assert!(error.to_string().contains("part-000000.parquet"), "{error}");
    assert_eq!((writer.n_trials(), writer.n_saved()), (80, 0));
    fs::remove_file(&trials_dir).unwrap();
    fs::rename(&aside, &trials_dir).unwrap();
    assert_eq!(writer.finish().unwrap(), 80);
    assert_holds(dir.path(), &expected);
}

#[test]
fn wrong_shapes_and_names_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    for names in [["sharpe", "sharpe"], ["sharpe", "objective"]] {
        assert!(matches!(folder.trials_writer(&space(), &names), Err(FolderError::ColumnName { .. })));
    }
    let mut writer = folder.trials_writer(&space(), &METRICS).unwrap();
    let good = trials(10);
    let error = writer.append(&good.points, &good.scores[..9], &good.metrics).unwrap_err();
    assert_eq!(error.to_string(), "scores of an append: expected 10, got 9");
    assert!(writer.append(&good.points, &good.scores, &good.metrics[..1]).is_err());
    assert!(writer.append(&Points::new(2), &[], &good.metrics).is_err());
    assert_eq!(writer.n_trials(), 0);
    assert!(matches!(read_trials(&dir.path().join("nowhere")), Err(FolderError::NotAStudy { .. })));
}
