//! A follower sees what was written, once and in order, whatever happens to the files.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidemill_telemetry::{
    Event, Follower, Journal, JournalOptions, Polled, RunState, Snapshot, Timestamp, find, read_all,
    read_journal,
};

/// Small files, and no signs of life, however slow the machine.
fn small(rotate_bytes: u64) -> JournalOptions {
    let alive_every = Duration::from_secs(86_400);
    JournalOptions { rotate_bytes, alive_every, ..JournalOptions::default() }
}

fn batch(idx: u64) -> Event {
    Event::new("r", "kernel", format!("batch_{idx}"))
        .lasting_ms(2.0)
        .value("trials", (idx + 1) as f64 * 10.0)
        .value("best", 0.5)
}

/// The same at a given time, by which a journal is told from another one of the same name.
fn batch_at(idx: u64, ms: i64) -> Event {
    Event { timestamp: Timestamp::from_ms(ms + idx as i64), ..batch(idx) }
}

fn line(event: &Event) -> String {
    serde_json::to_string(event).unwrap() + "\n"
}

fn poll(follower: &mut Follower) -> (Vec<String>, Polled) {
    let mut steps = Vec::new();
    let polled = follower.poll(|event| steps.push(event.step.to_string())).unwrap();
    assert_eq!(polled.n_events, steps.len() as u64);
    (steps, polled)
}

fn steps(from: u64, to: u64) -> Vec<String> {
    (from..to).map(|idx| format!("batch_{idx}")).collect()
}

/// Compares many steps and shows only the first that differs.
fn assert_steps(told: &[String], expected: &[String]) {
    if let Some(at) = told.iter().zip(expected).position(|(told, expected)| told != expected) {
        panic!("step {at} is {}, expected {}", told[at], expected[at]);
    }
    assert_eq!(told.len(), expected.len(), "the steps are right as far as they go");
}

fn full_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().unwrap() == "jsonl" && !path.ends_with("journal.jsonl"));
    files.sort();
    files
}

/// Writes batches, a few of them to a file.
fn write(dir: &Path, from: u64, to: u64) {
    let journal = small(1000).open_append(&dir.join("journal.jsonl")).unwrap();
    for idx in from..to {
        journal.record(batch(idx));
    }
    journal.close().unwrap();
}

#[test]
fn a_poll_tells_what_is_new_across_any_number_of_rotations() {
    let dir = tempfile::tempdir().unwrap();
    let mut follower = Follower::open(dir.path());
    assert_eq!(poll(&mut follower).1, Polled::default());
    let mut n_told = 0;
    for to in [1, 2, 3, 40, 41, 100, 101] {
        write(dir.path(), n_told, to);
        assert_eq!(
            poll(&mut follower),
            (steps(n_told, to), Polled { n_events: to - n_told, is_restarted: false })
        );
        assert_eq!(poll(&mut follower).0.len(), 0);
        n_told = to;
    }
    assert!(full_files(dir.path()).len() > 10);
    let told: Vec<String> =
        read_all(dir.path()).unwrap().map(|event| event.unwrap().step.to_string()).collect();
    assert_steps(&told, &steps(0, 101));
    assert_eq!(follower.snapshot().done, 1010.0);
}

#[test]
fn a_checkpoint_and_what_follows_give_the_fold_of_everything() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0, 100);
    let mut everything = Snapshot::default();
    for event in read_all(dir.path()).unwrap() {
        everything.apply(&event.unwrap());
    }
    assert_eq!(everything.n_events, 100);
    let fold = || {
        let mut follower = Follower::open(&dir.path().join("journal.jsonl"));
        let (told, _) = poll(&mut follower);
        (told.len(), follower.into_snapshot())
    };
    let (n_read, snapshot) = fold();
    assert!(n_read < 10, "{n_read} events were read again");
    assert_eq!(snapshot, everything);
    // The newest is broken, then of another file, then gone: the one before it serves.
    let newest = full_files(dir.path()).last().unwrap().with_extension("snapshot.json");
    let good = std::fs::read_to_string(&newest).unwrap();
    for bad in [
        Some(good[..good.len() / 2].to_owned()),
        Some(good.replacen("\"len_bytes\":", "\"len_bytes\":9", 1)),
        None,
    ] {
        match bad {
            Some(bad) => std::fs::write(&newest, bad).unwrap(),
            None => std::fs::remove_file(&newest).unwrap(),
        }
        let (n_read_more, snapshot) = fold();
        assert!(n_read_more > n_read && n_read_more < 20, "{n_read_more}");
        assert_eq!(snapshot, everything);
    }
    // Without any checkpoint everything is read.
    for file in full_files(dir.path()) {
        let _ = std::fs::remove_file(file.with_extension("snapshot.json"));
    }
    assert_eq!(fold(), (100, everything));
}

#[test]
fn a_journal_goes_on_with_the_fold_of_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0, 60);
    let journal = small(1000).open_append(&dir.path().join("journal.jsonl")).unwrap();
    assert_eq!((journal.snapshot().n_events, journal.look(|fold| fold.done)), (60, 600.0));
    journal.record_durable(batch(60)).unwrap();
    assert_eq!(journal.snapshot().done, 610.0);
}

#[test]
fn files_that_are_renamed_while_they_are_read_lose_and_double_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let journal = small(20_000).create(&dir.path().join("journal.jsonl")).unwrap();
    // A follower that comes later begins with a checkpoint. This one is there from the first record on.
    journal.record_durable(batch(0)).unwrap();
    let mut follower = Follower::open(dir.path());
    let mut told = poll(&mut follower).0;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for idx in 1..10_000 {
                while journal.record(batch(idx)) != tidemill_telemetry::Recorded::Queued {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            journal.close().unwrap()
        });
        while !writer.is_finished() {
            told.extend(poll(&mut follower).0);
        }
        writer.join().unwrap();
        told.extend(poll(&mut follower).0);
    });
    told.retain(|step| step != "dropped");
    assert_steps(&told, &steps(0, 10_000));
    assert!(full_files(dir.path()).len() > 50);
}

#[test]
fn a_file_that_is_renamed_in_the_middle_of_a_poll_is_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let journal = small(1000).create(&dir.path().join("journal.jsonl")).unwrap();
    journal.record_durable(batch(0)).unwrap();
    let mut follower = Follower::open(dir.path());
    let (mut told, mut n_written, mut n_renamed, mut n_polls) = (Vec::new(), 1, 0, 0);
    while told.len() < 200 {
        n_polls += 1;
        assert!(n_polls < 1000, "{} of 200 were told", told.len());
        let polled = follower.poll(|event| {
            told.push(event.step.to_string());
            // While the follower holds a file open: enough to fill it, to have it renamed, and to begin others.
            if told.len() % 3 == 1 && n_written < 200 {
                let n_before = full_files(dir.path()).len();
                let last = (n_written + 10).min(199);
                (n_written..last).for_each(|idx| _ = journal.record(batch(idx)));
                journal.record_durable(batch(last)).unwrap();
                n_written = last + 1;
                n_renamed += full_files(dir.path()).len() - n_before;
            }
        });
        assert!(!polled.unwrap().is_restarted);
    }
    assert_steps(&told, &steps(0, 200));
    assert!(n_renamed > 20, "{n_renamed}");
}

#[test]
fn a_journal_made_anew_is_folded_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    write(dir.path(), 0, 100);
    let mut follower = Follower::open(dir.path());
    poll(&mut follower);
    // Shorter than before, then longer than before, then in another file of that name, then cut to nothing.
    for n_new in [1, 300] {
        let journal = small(1000).create(&path).unwrap();
        for idx in 0..n_new {
            journal.record(batch_at(idx, n_new as i64));
        }
        journal.close().unwrap();
        let (_, polled) = poll(&mut follower);
        assert!(polled.is_restarted);
        assert_eq!(follower.snapshot().n_events, n_new);
    }
    for file in std::fs::read_dir(dir.path()).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    std::fs::write(&path, (0..500).map(|idx| line(&batch_at(idx, 500))).collect::<String>()).unwrap();
    let (told, polled) = poll(&mut follower);
    assert_steps(&told, &steps(0, 500));
    assert_eq!(polled, Polled { n_events: 500, is_restarted: true });
    std::fs::write(&path, "").unwrap();
    assert!(poll(&mut follower).1.is_restarted);
    assert_eq!(follower.snapshot(), &Snapshot::default());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(poll(&mut follower).1, Polled::default());
}

#[test]
fn a_folder_that_is_not_there_yet_is_followed_once_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("later");
    let mut follower = Follower::open(&folder);
    assert_eq!(poll(&mut follower).1, Polled::default());
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(poll(&mut follower).1, Polled::default());
    write(&folder, 0, 3);
    assert_eq!(poll(&mut follower).0, steps(0, 3));
    assert_eq!(follower.path(), folder.join("journal.jsonl"));
}

#[test]
fn half_a_line_waits_for_its_end_and_a_cut_one_for_its_successor() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let second = line(&batch(1));
    std::fs::write(&path, line(&batch(0)) + &second[..50]).unwrap();
    let mut follower = Follower::open(&path);
    assert_eq!(poll(&mut follower).0, steps(0, 1));
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&second.as_bytes()[50..]).unwrap();
    assert_eq!(poll(&mut follower).0, steps(1, 2));
    // A kill in the middle of a line: the next writer cuts it off.
    file.write_all(b"{\"v\":1,\"time").unwrap();
    assert_eq!(poll(&mut follower).0.len(), 0);
    let journal = Journal::open_append(&path).unwrap();
    journal.record(batch(2));
    journal.close().unwrap();
    assert_eq!(poll(&mut follower), (steps(2, 3), Polled { n_events: 1, is_restarted: false }));
    assert_eq!(follower.n_malformed(), 0);
}

#[test]
fn malformed_lines_are_passed_over_counted_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    std::fs::write(
        dir.path().join("journal-000001.jsonl"),
        line(&batch(0)) + "{\"v\":1}\n" + &line(&batch(1)) + "torn",
    )
    .unwrap();
    std::fs::write(&path, format!("\n{}nonsense\n", line(&batch(2)))).unwrap();
    let mut follower = Follower::open(&path);
    assert_eq!(poll(&mut follower).0, steps(0, 3));
    assert_eq!(follower.n_malformed(), 3);
    let newest = follower.malformed().unwrap();
    assert_eq!((newest.path.as_path(), newest.line), (path.as_path(), 3));
    assert!(newest.reason.contains("expected"), "{}", newest.reason);
}

#[test]
fn old_files_may_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), 0, 100);
    let mut follower = Follower::open(dir.path());
    poll(&mut follower);
    for file in full_files(dir.path()) {
        std::fs::remove_file(file).unwrap();
    }
    write(dir.path(), 100, 150);
    poll(&mut follower);
    assert_eq!((follower.snapshot().n_events, follower.snapshot().done), (150, 1500.0));
    // Numbers are never used again.
    assert!(read_all(dir.path()).unwrap().count() < 60);
}

#[test]
fn the_records_of_a_phase_are_found_in_all_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    assert!(find(dir.path(), "hypertune").unwrap().is_empty());
    let journal = small(3000).create(&path).unwrap();
    for idx in 0..300 {
        journal.record(batch(idx).note("a note that names \"hypertune\" is none of it"));
        if idx % 100 == 50 {
            journal.record(Event::new("r", "hypertune", "apply").value("id", idx as f64));
        }
    }
    journal.close().unwrap();
    let found: Vec<f64> =
        find(dir.path(), "hypertune").unwrap().iter().map(|event| event.values["id"]).collect();
    assert_eq!(found, [50.0, 150.0, 250.0]);
    assert_eq!(find(&path, "kernel").unwrap().len(), 300);
    assert!(find(&path, "hyper").unwrap().is_empty());
    // Half a line was never recorded; a whole one that cannot be read may have been a decision.
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    write!(file, "{{\"phase\":\"hypertune\",").unwrap();
    assert_eq!(find(&path, "hypertune").unwrap().len(), 3);
    let n_lines = std::fs::read_to_string(&path).unwrap().lines().count();
    writeln!(file).unwrap();
    let error = find(&path, "hypertune").unwrap_err().to_string();
    assert!(error.ends_with(&format!("journal.jsonl:{n_lines}: not an event")), "{error}");
}

#[test]
fn a_killed_writer_leaves_whole_lines_and_what_it_was_told_is_on_disk() {
    const DIR: &str = "TIDEMILL_TEST_JOURNAL_DIR";
    if let Some(dir) = std::env::var_os(DIR) {
        // The child: it writes until it is killed, and says on disk what it knows to be durable.
        let dir = PathBuf::from(dir);
        let journal = small(20_000).create(&dir.join("journal.jsonl")).unwrap();
        for idx in 0.. {
            journal.record(batch(2 * idx));
            journal.record_durable(batch(2 * idx + 1)).unwrap();
            std::fs::write(dir.join("told.tmp"), (2 * idx + 2).to_string()).unwrap();
            std::fs::rename(dir.join("told.tmp"), dir.join("told")).unwrap();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_writer_leaves_whole_lines_and_what_it_was_told_is_on_disk"])
        .env(DIR, dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let told = || {
        let text = std::fs::read_to_string(dir.path().join("told")).unwrap_or_default();
        text.parse::<u64>().unwrap_or(0)
    };
    // No limit of time: how long a record takes to be on disk is up to whoever else writes there.
    while told() < 300 {
        assert!(child.try_wait().unwrap().is_none(), "the child has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let told = told();
    let mut follower = Follower::open(dir.path());
    poll(&mut follower);
    assert!(follower.snapshot().done >= told as f64 * 10.0, "{} < {told}", follower.snapshot().done);
    assert_eq!((follower.snapshot().state, follower.n_malformed()), (RunState::Running, 0));
    let n_kept = follower.snapshot().n_events;
    write(dir.path(), n_kept, n_kept + 1);
    let read: Vec<String> =
        read_all(dir.path()).unwrap().map(|event| event.unwrap().step.to_string()).collect();
    assert_steps(&read, &steps(0, n_kept + 1));
    assert!(read_journal(&dir.path().join("journal.jsonl")).unwrap().all(|event| event.is_ok()));
}
