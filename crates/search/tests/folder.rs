//! The study folder as others see it: parts on disk, whatever happened to the writer.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tidemill_search::{
    Choice, Domain, ExportFormat, FolderError, Param, Points, SamplerKind, SamplerSettings, Score, Scores,
    Space, StudyFolder, StudyHeader, TrialBatch, Value, export, read_trials,
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
    StudyHeader {
        version: "0.1.0".into(),
        semantics: 2,
        seed: 7,
        data_hash: "d4".into(),
        config: toml::Table::new(),
    }
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
    append_with(folder, trials, batch, rows_per_part, |_| ())
}

/// The same, with something done after each batch, which is told how many trials there are.
fn append_with(
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
    drop(folder.writer(&space(), &METRICS, 1).unwrap());
    assert!(!leftover.exists());
    assert_holds(dir.path(), &expected);
}

#[test]
fn a_second_writer_continues_the_count() {
    let dir = tempfile::tempdir().unwrap();
    StudyFolder::create(dir.path(), &header()).unwrap();
    let folder = StudyFolder::open(dir.path()).unwrap();
    append(&folder, &trials(70), 70, 50);
    let mut writer = folder.writer(&space(), &METRICS, 1).unwrap();
    assert_eq!((writer.n_trials(), writer.n_compacted()), (70, 70));
    let more = trials(5);
    writer.append(&more.points, &Scores::single(&more.scores), &more.metrics).unwrap();
    assert_eq!((writer.n_trials(), writer.n_compacted()), (75, 70));
    // What a writer was given can be read at once, and stays if the writer never finishes.
    for _ in 0..2 {
        let numbers: Vec<u64> = read_all(dir.path()).iter().flat_map(|batch| batch.trials.clone()).collect();
        assert_eq!(numbers, (0..75).collect::<Vec<u64>>());
        assert_eq!(folder.n_trials().unwrap(), 75);
        std::mem::forget(folder.writer(&space(), &METRICS, 1).unwrap());
    }
}

/// Copies the files of a study.
fn copy_study(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("trials")).unwrap();
    fs::copy(from.join("study.toml"), to.join("study.toml")).unwrap();
    for name in part_names(from) {
        fs::copy(from.join("trials").join(&name), to.join("trials").join(&name)).unwrap();
    }
}

fn rows(trials: &Trials, range: std::ops::Range<usize>) -> Trials {
    let mut points = Points::new(space().len());
    points.extend_from(&trials.points, range.clone());
    let metrics = trials.metrics.iter().map(|column| column[range.clone()].to_vec()).collect();
    Trials { points, scores: trials.scores[range].to_vec(), metrics }
}

fn append_rows(dir: &Path, trials: &Trials, range: std::ops::Range<usize>, rows_per_part: usize) {
    let folder = StudyFolder::open(dir).unwrap();
    let mut writer = folder.writer(&space(), &METRICS, 1).unwrap().with_rows_per_part(rows_per_part);
    let batch = rows(trials, range);
    writer.append(&batch.points, &Scores::single(&batch.scores), &batch.metrics).unwrap();
}

fn finish(dir: &Path, rows_per_part: usize) -> Vec<(String, Vec<u8>)> {
    let writer = StudyFolder::open(dir).unwrap().writer(&space(), &METRICS, 1).unwrap();
    writer.with_rows_per_part(rows_per_part).finish().unwrap();
    let names = part_names(dir).into_iter();
    names.map(|name| (name.clone(), fs::read(dir.join("trials").join(name)).unwrap())).collect()
}

/// A kill can come between any two of: the batch is in the log, its parts appear one after the other, the shorter log takes the
/// place of the old one. Every such moment is put together here from its files.
#[test]
fn a_kill_at_any_step_of_a_compaction_neither_loses_nor_doubles_a_batch() {
    const ROWS_PER_PART: usize = 20;
    let expected = trials(183);
    let cuts = [0, 7, 19, 20, 27, 40, 95, 96, 160, 161, 183];
    let place = tempfile::tempdir().unwrap();
    let live = place.path().join("live");
    StudyFolder::create(&live, &header()).unwrap();
    let mut states = Vec::new();
    for pair in cuts.windows(2) {
        let range = pair[0]..pair[1];
        let before = place.path().join(format!("logged-{}", range.end));
        copy_study(&live, &before);
        append_rows(&before, &expected, range.clone(), usize::MAX);
        append_rows(&live, &expected, range.clone(), ROWS_PER_PART);
        states.push((before.clone(), range.end));
        let (old, new) = (part_names(&before), part_names(&live));
        let appeared: Vec<&String> = new.iter().filter(|name| !old.contains(name)).collect();
        for n_parts in 1..=appeared.len() {
            let state = place.path().join(format!("parts-{}-{n_parts}", range.end));
            copy_study(&before, &state);
            for name in &appeared[..n_parts] {
                fs::copy(live.join("trials").join(name), state.join("trials").join(name)).unwrap();
            }
            // The new log, or the next part, half-written.
            fs::write(state.join("trials/.log.bin.tmp"), b"tide").unwrap();
            fs::write(state.join("trials/.part-000099.parquet.tmp"), b"PAR1").unwrap();
            states.push((state, range.end));
        }
    }
    // The end: the last parts are there and the log is not yet gone.
    let ended = place.path().join("ended");
    copy_study(&live, &ended);
    let uninterrupted = finish(&live, ROWS_PER_PART);
    assert_eq!(uninterrupted.len(), 183_usize.div_ceil(ROWS_PER_PART));
    for (name, bytes) in &uninterrupted {
        fs::write(ended.join("trials").join(name), bytes).unwrap();
    }
    states.push((ended, 183));
    assert_eq!(states.len(), 20, "ten batches, nine parts and the end");
    for (state, n_trials) in states {
        assert_holds(&state, &rows(&expected, 0..n_trials));
        for pair in cuts.windows(2).filter(|pair| pair[0] >= n_trials) {
            append_rows(&state, &expected, pair[0]..pair[1], ROWS_PER_PART);
        }
        assert_holds(&state, &expected);
        assert!(finish(&state, ROWS_PER_PART) == uninterrupted, "{}", state.display());
        assert_holds(&state, &expected);
    }
}

#[test]
fn a_torn_batch_is_not_read_and_cut_by_the_next_writer() {
    let dir = tempfile::tempdir().unwrap();
    StudyFolder::create(dir.path(), &header()).unwrap();
    let expected = trials(30);
    append_rows(dir.path(), &expected, 0..10, 100);
    let log = dir.path().join("trials/log.bin");
    let whole = fs::read(&log).unwrap();
    append_rows(dir.path(), &expected, 10..20, 100);
    let longer = fs::read(&log).unwrap();
    for len in (whole.len()..longer.len()).step_by(37) {
        fs::write(&log, &longer[..len]).unwrap();
        assert_holds(dir.path(), &rows(&expected, 0..10));
        append_rows(dir.path(), &expected, 10..20, 100);
        assert!(fs::read(&log).unwrap() == longer, "torn at {len}");
    }
    append_rows(dir.path(), &expected, 20..30, 100);
    assert_holds(dir.path(), &expected);
}

#[test]
fn a_live_study_can_be_read_at_any_moment() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    let expected = trials(600);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            // The end of this thread, also by a panic, is the end of the channel.
            let tell = tell;
            let mut n_before = 0;
            loop {
                let was_done = is_done.load(std::sync::atomic::Ordering::SeqCst);
                let numbers: Vec<u64> =
                    read_all(dir.path()).iter().flat_map(|batch| batch.trials.clone()).collect();
                assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{} trials", numbers.len());
                assert!(numbers.len() >= n_before, "{} after {n_before}", numbers.len());
                n_before = numbers.len();
                if was_done {
                    return n_before;
                }
                // Nobody listens once everything is written.
                let _ = tell.send(());
            }
        });
        // Written while it is read: every hundred trials another look has come to its end meanwhile.
        append_with(&folder, &expected, 3, 10, |n_written| {
            if n_written % 100 < 3 {
                told.try_iter().for_each(drop);
                let _ = told.recv();
            }
        });
        is_done.store(true, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(reader.join().unwrap(), 600);
    });
    assert_holds(dir.path(), &expected);
}

#[test]
fn several_objectives_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    let Trials { points, metrics, .. } = trials(50);
    let column = |factor: f64| (0..50).map(|idx| idx as f64 * factor).collect::<Vec<_>>();
    let mut first = column(1.0);
    first[3] = f64::NAN;
    let scores = Scores::from_columns(50, vec![first, column(-2.0), column(0.5)]);
    let mut writer = folder.writer(&space(), &METRICS, 3).unwrap().with_rows_per_part(40);
    writer.append(&points, &scores, &metrics).unwrap();
    let error = writer.append(&points, &Scores::single(&[Score::Invalid; 50]), &metrics).unwrap_err();
    assert_eq!(error.to_string(), "objectives of an append: expected 3, got 1");
    drop(writer);
    let mut n_read = 0;
    for batch in read_all(dir.path()) {
        let read = batch.to_scores();
        assert_eq!((read.n_objectives(), batch.further_objectives.len()), (3, 2));
        for row in 0..read.len() {
            for objective_idx in 0..3 {
                let (a, b) = (read.column(objective_idx)[row], scores.column(objective_idx)[n_read]);
                assert!(a == b || (a.is_nan() && b.is_nan() && n_read == 3), "trial {n_read}: {a} {b}");
            }
            n_read += 1;
        }
    }
    assert_eq!(n_read, 50);
    // Another number of objectives is another study.
    let error = folder.writer(&space(), &METRICS, 2).unwrap_err();
    assert!(error.to_string().contains("expected nothing, found objective_3 (Float64)"), "{error}");
}

#[test]
fn a_fixed_value_outside_its_range_comes_back_as_a_point() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    let mut space = space();
    space.params[0].fixed = Some(500.0);
    let points = SamplerKind::Random.build(&space, &SamplerSettings::new(3)).unwrap().ask(20);
    let mut writer = folder.writer(&space, &[], 1).unwrap();
    writer.append(&points, &Scores::single(&[Score::Invalid; 20]), &[]).unwrap();
    writer.finish().unwrap();
    let batch = &read_all(dir.path())[0];
    assert_eq!(batch.to_points(&space).unwrap().column(0), [500.0; 20]);
    space.params[0].fixed = None;
    assert_eq!(batch.to_points(&space), None);
}

#[test]
fn exports_depend_on_the_trials_alone() {
    let expected = trials(1000);
    let mut exports: Vec<Vec<Vec<u8>>> = Vec::new();
    for (batch, rows_per_part, is_finished) in [(1000, 1000, true), (64, 300, false), (7, 50, true)] {
        let dir = tempfile::tempdir().unwrap();
        let folder = StudyFolder::create(dir.path(), &header()).unwrap();
        if is_finished {
            append(&folder, &expected, batch, rows_per_part);
        } else {
            for from in (0..1000).step_by(batch) {
                append_rows(dir.path(), &expected, from..1000.min(from + batch), rows_per_part);
            }
        }
        let bytes = ExportFormat::ALL.map(|format| {
            let mut bytes = Vec::new();
            assert_eq!(export(dir.path(), format, &mut bytes).unwrap(), 1000);
            bytes
        });
        exports.push(bytes.to_vec());
    }
    assert!(exports[0] == exports[1] && exports[1] == exports[2]);

    let csv = String::from_utf8(exports[0][0].clone()).unwrap();
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("trial,fast,mode,tail,level,mixed,use_stop,param:sharpe,param:trial,sharpe,trades,objective")
    );
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 1000);
    let json: serde_json::Value = serde_json::from_slice(&exports[0][2]).unwrap();
    for (row, fields) in rows.iter().enumerate() {
        assert!(fields.len() == 12 && fields[0] == row.to_string());
        let fast = expected.points.value(row, 0);
        assert_eq!(fields[1].parse::<f64>().unwrap(), fast);
        let tail = expected.points.value(row, 2);
        assert_eq!(fields[3].parse().ok(), Some(tail).filter(|tail| !tail.is_nan()));
        assert_eq!(fields[11].parse().ok(), expected.scores[row].value());
        let trial = &json[row];
        assert_eq!(trial["trial"], row);
        assert_eq!(trial["params"]["fast"], fast as i64);
        assert_eq!(trial["params"]["tail"].as_f64(), Some(tail).filter(|tail| !tail.is_nan()));
        assert_eq!(trial["params"]["mode"].as_str(), Some(fields[2]));
        assert_eq!(trial["metrics"]["trades"].as_f64(), Some(row as f64));
        assert_eq!(trial["objective"].as_f64(), expected.scores[row].value());
    }
    // The Parquet file is a part like others, so that it can be read as one.
    let dir = tempfile::tempdir().unwrap();
    StudyFolder::create(dir.path(), &header()).unwrap();
    fs::write(dir.path().join("trials/part-000000.parquet"), &exports[0][1]).unwrap();
    assert_holds(dir.path(), &expected);
}

#[test]
fn an_empty_study_exports_as_an_empty_document() {
    let dir = tempfile::tempdir().unwrap();
    StudyFolder::create(dir.path(), &header()).unwrap();
    let text = |format| {
        let mut bytes = Vec::new();
        assert_eq!(export(dir.path(), format, &mut bytes).unwrap(), 0);
        bytes
    };
    assert_eq!(text(ExportFormat::Csv), b"");
    assert_eq!(text(ExportFormat::Json), b"[\n]\n");
    assert!(!text(ExportFormat::Parquet).is_empty());
    assert_eq!("csv".parse(), Ok(ExportFormat::Csv));
    let error = "xls".parse::<ExportFormat>().unwrap_err();
    assert_eq!(error.to_string(), "there is no format `xls`; choose one of csv, parquet, json");
}

#[test]
fn a_study_without_trials_reads_as_empty() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    assert_eq!(folder.writer(&space(), &METRICS, 1).unwrap().finish().unwrap(), 0);
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
fn a_folder_that_is_gone_is_named_and_the_batch_can_be_handed_over_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    let expected = trials(80);
    let mut writer = folder.writer(&space(), &METRICS, 1).unwrap().with_rows_per_part(80);
    // A file in place of the folder stands in for an unwritable one, also where tests run as root.
    let (trials_dir, aside) = (dir.path().join("trials"), dir.path().join("aside"));
    fs::rename(&trials_dir, &aside).unwrap();
    fs::write(&trials_dir, b"").unwrap();
    let error =
        writer.append(&expected.points, &Scores::single(&expected.scores), &expected.metrics).unwrap_err();
    assert!(matches!(error, FolderError::Io { .. }), "{error}");
    assert!(error.to_string().contains("log.bin"), "{error}");
    assert_eq!(writer.n_trials(), 0);
    fs::remove_file(&trials_dir).unwrap();
    fs::rename(&aside, &trials_dir).unwrap();
    writer.append(&expected.points, &Scores::single(&expected.scores), &expected.metrics).unwrap();
    assert_eq!(writer.finish().unwrap(), 80);
    assert_holds(dir.path(), &expected);
}

/// A link to a device that is always full makes the disk full for one file.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_for_a_part_loses_nothing_and_the_next_append_tries_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    let expected = trials(90);
    let mut writer = folder.writer(&space(), &METRICS, 1).unwrap().with_rows_per_part(40);
    let full = dir.path().join("trials/.part-000000.parquet.tmp");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let first = rows(&expected, 0..50);
    let error = writer.append(&first.points, &Scores::single(&first.scores), &first.metrics).unwrap_err();
    let reason = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ");
    assert!(reason.contains("part-000000.parquet") && reason.contains("No space left"), "{reason}");
    assert_eq!((writer.n_trials(), writer.n_compacted()), (50, 0));
    assert_holds(dir.path(), &first);
    // The failed attempt took the link away: there is space again.
    assert!(!full.exists());
    let second = rows(&expected, 50..90);
    writer.append(&second.points, &Scores::single(&second.scores), &second.metrics).unwrap();
    assert_eq!((writer.n_trials(), writer.n_compacted()), (90, 80));
    assert_holds(dir.path(), &expected);
}

#[test]
fn wrong_shapes_and_names_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let folder = StudyFolder::create(dir.path(), &header()).unwrap();
    for names in [["sharpe", "sharpe"], ["sharpe", "objective"]] {
        assert!(matches!(folder.writer(&space(), &names, 1), Err(FolderError::ColumnName { .. })));
    }
    let mut writer = folder.writer(&space(), &METRICS, 1).unwrap();
    let good = trials(10);
    let error = writer.append(&good.points, &Scores::single(&good.scores[..9]), &good.metrics).unwrap_err();
    assert_eq!(error.to_string(), "scores of an append: expected 10, got 9");
    assert!(writer.append(&good.points, &Scores::single(&good.scores), &good.metrics[..1]).is_err());
    assert!(writer.append(&Points::new(2), &Scores::single(&[]), &good.metrics).is_err());
    assert_eq!(writer.n_trials(), 0);
    assert!(matches!(read_trials(&dir.path().join("nowhere")), Err(FolderError::NotAStudy { .. })));
}

#[test]
fn a_part_with_other_columns_is_named() {
    let place = tempfile::tempdir().unwrap();
    let (ours, other) = (place.path().join("ours"), place.path().join("other"));
    append(&StudyFolder::create(&ours, &header()).unwrap(), &trials(60), 60, 30);
    let folder = StudyFolder::create(&other, &header()).unwrap();
    let mut space = space();
    space.params[0].name = "slow".into();
    let mut writer = folder.writer(&space, &METRICS, 1).unwrap().with_rows_per_part(30);
    let sixty = trials(60);
    writer.append(&sixty.points, &Scores::single(&sixty.scores), &sixty.metrics).unwrap();
    writer.finish().unwrap();
    fs::copy(other.join("trials/part-000001.parquet"), ours.join("trials/part-000001.parquet")).unwrap();
    let error = read_trials(&ours).unwrap().in_batches_of(45).find_map(Result::err).unwrap().to_string();
    let expected = "part-000001.parquet: its columns differ from those of the trials before";
    assert!(error.ends_with(expected), "{error}");
    let error = StudyFolder::open(&ours).unwrap().writer(&self::space(), &METRICS, 1).unwrap_err();
    assert!(error.to_string().contains("expected fast (Int64), found slow (Int64)"), "{error}");
}
