//! Folders after a kill, a full disk or somebody else's hand: nothing complete is lost, and the damage is named.

use std::fs;
use std::path::Path;

use tidemill_search::{FolderError, Scores, StudyFolder, read_trials};

use crate::trials::{
    METRICS, append, append_rows, assert_holds, finish, header, part_names, rows, space, trials,
};

/// Copies the files of a study.
fn copy_study(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("trials")).unwrap();
    fs::copy(from.join("study.toml"), to.join("study.toml")).unwrap();
    for name in part_names(from) {
        fs::copy(from.join("trials").join(&name), to.join("trials").join(&name)).unwrap();
    }
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
