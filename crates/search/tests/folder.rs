//! The study folder as others see it: parts on disk, whatever happened to the writer.

#[path = "folder/damage.rs"]
mod damage;
#[path = "folder/table.rs"]
mod table;
#[path = "folder/trials.rs"]
mod trials;

use std::fs;

use tidemill_search::folder::TRIALS_DIR;
use tidemill_search::{
    ExportFormat, FolderError, Points, SamplerKind, SamplerSettings, Score, Scores, StudyFolder, Value,
    export, read_trials,
};
use trials::{
    METRICS, Trials, append, append_rows, append_with, assert_holds, header, part_names, read_all, space,
    trials,
};

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
                // The receiver is gone once everything is written.
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
    // As a copy that leaves out empty folders has it.
    fs::remove_dir(dir.path().join(TRIALS_DIR)).unwrap();
    assert!(read_all(dir.path()).is_empty());
    assert_eq!(folder.n_trials().unwrap(), 0);
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
