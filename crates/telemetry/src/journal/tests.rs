use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;

use super::*;
use crate::read::read_journal;

/// Collects lines in memory, waits for permission before each, and fails on demand.
struct SlowOutput {
    lines: Arc<Mutex<Vec<String>>>,
    gate: Receiver<()>,
    enter: Sender<()>,
    fail_after: usize,
}

impl Output for SlowOutput {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.lines.lock().unwrap().len() >= self.fail_after {
            return Err(io::Error::other("disk full"));
        }
        let _ = self.enter.send(());
        // A closed gate lets everything pass.
        let _ = self.gate.recv();
        let mut kept = self.lines.lock().unwrap();
        kept.extend(String::from_utf8(lines.to_vec()).unwrap().split_inclusive('\n').map(str::to_owned));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn len_bytes(&self) -> u64 {
        0
    }

    fn rotate(&mut self, _: &Snapshot) -> io::Result<()> {
        Ok(())
    }
}

fn start(output: impl Output, capacity: usize) -> Journal {
    let options = JournalOptions { capacity, ..JournalOptions::default() };
    Journal::start(Some(Path::new("memory")), output, Snapshot::default(), &options).unwrap()
}

fn events(path: &Path) -> Vec<Event> {
    read_journal(path).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn concurrent_writers_lose_and_mix_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let journal = Journal::create(&path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let journal = &journal;
            scope.spawn(move || {
                for idx in 0..1000 {
                    let event = Event::new("r", format!("thread_{thread}"), format!("step_{idx}"));
                    assert_eq!(journal.record(event), Recorded::Queued);
                }
            });
        }
    });
    assert_eq!(journal.close().unwrap(), Summary { n_written: 8000, n_dropped: 0 });
    let events = events(&path);
    assert_eq!(events.len(), 8000);
    for thread in 0..8 {
        let phase = format!("thread_{thread}");
        let steps = events.iter().filter(|event| event.phase == phase).map(|event| event.step.clone());
        assert!(steps.eq((0..1000).map(|idx| format!("step_{idx}"))), "order within {phase}");
    }
}

#[test]
fn a_slow_writer_blocks_nobody_and_drops_are_told_when_they_happen() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let (open_gate, gate) = crossbeam_channel::unbounded();
    let (enter, entered) = crossbeam_channel::unbounded();
    let output = SlowOutput { lines: Arc::clone(&lines), gate, enter, fail_after: usize::MAX };
    let journal = start(output, 4);
    journal.record(Event::new("run-7", "kernel", "held"));
    entered.recv().unwrap();
    let outcomes: Vec<Recorded> =
        (0..100).map(|idx| journal.record(Event::new("run-7", "kernel", format!("{idx}")))).collect();
    assert_eq!(outcomes[..4], [Recorded::Queued; 4]);
    assert_eq!(outcomes[4..], [Recorded::Dropped; 96]);
    assert_eq!(journal.n_dropped(), 96);
    drop(open_gate);
    let summary = journal.close().unwrap();
    assert_eq!(summary, Summary { n_written: 5, n_dropped: 96 });
    let lines = lines.lock().unwrap();
    // At once, and not only at the end.
    let told: Event = serde_json::from_str(&lines[1]).unwrap();
    assert!(told.run == "run-7" && told.is("journal", "dropped"), "{told:?}");
    assert_eq!((lines.len(), told.values["dropped"], told.values["dropped_in_all"]), (6, 96.0, 96.0));
    assert!(lines.iter().all(|line| line.ends_with('\n') && line.matches('\n').count() == 1));
}

#[test]
fn a_failed_write_is_reported_on_close_and_later_events_count_as_dropped() {
    let (_open_gate, gate) = crossbeam_channel::bounded(0);
    let output =
        SlowOutput { lines: Arc::default(), gate, enter: crossbeam_channel::unbounded().0, fail_after: 0 };
    let journal = start(output, 4);
    journal.record(Event::new("r", "a", "first"));
    let began = Instant::now();
    while journal.n_dropped() < 2 {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "what could not be written does not count as dropped"
        );
        journal.record(Event::new("r", "a", "later"));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(matches!(journal.close(), Err(JournalError::Write { .. })));
}

#[test]
fn a_torn_last_line_is_cut_off_before_appending() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let long = "x".repeat(10_000);
    for torn in ["{\"v\":1,\"timest", long.as_str(), ""] {
        let journal = Journal::create(&path).unwrap();
        journal.record(Event::new("r", "a", "kept"));
        drop(journal);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(torn.as_bytes());
        std::fs::write(&path, bytes).unwrap();
        let journal = Journal::open_append(&path).unwrap();
        journal.record(Event::new("r", "a", "added"));
        journal.close().unwrap();
        let steps: Vec<_> = events(&path).into_iter().map(|event| event.step).collect();
        assert_eq!(steps, ["kept", "added"]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().all(|line| serde_json::from_str::<Event>(line).is_ok()));
    }
}

#[test]
fn a_file_of_one_torn_line_becomes_empty_and_a_missing_one_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    for contents in [Some("{\"v\":1"), None] {
        match contents {
            Some(contents) => std::fs::write(&path, contents).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        Journal::open_append(&path).unwrap().close().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }
}

#[test]
fn a_journal_that_cannot_be_opened_says_which() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("absent/journal.jsonl");
    for result in [Journal::create(&path), Journal::open_append(&path)] {
        let error = result.unwrap_err();
        assert!(error.to_string().ends_with("journal.jsonl"), "{error}");
    }
}

#[test]
fn the_end_is_the_last_record_and_drops_are_told_before_it() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let (open_gate, gate) = crossbeam_channel::unbounded();
    let (enter, entered) = crossbeam_channel::unbounded();
    let output = SlowOutput { lines: Arc::clone(&lines), gate, enter, fail_after: usize::MAX };
    let options =
        JournalOptions { capacity: 2, alive_every: Duration::from_millis(30), ..JournalOptions::default() };
    let journal = Journal::start(None, output, Snapshot::default(), &options).unwrap();
    let batch = |step: &str| Event::new("r", "kernel", step);
    journal.record(batch("held"));
    entered.recv().unwrap();
    (0..10).for_each(|_| _ = journal.record(batch("fast")));
    drop(open_gate);
    // Told already, then more drops, which are told at the end because they come too soon after.
    while journal.look(|fold| fold.n_dropped) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    journal.shared.n_dropped.fetch_add(3, Ordering::Relaxed);
    journal.record_durable(Event::new("r", "run", "end").parameter("outcome", "complete")).unwrap();
    assert_eq!(journal.snapshot().state, crate::RunState::Complete);
    // Neither silence nor drops add anything to it.
    journal.shared.n_dropped.fetch_add(1, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(700));
    journal.close().unwrap();
    let lines = lines.lock().unwrap();
    let events: Vec<Event> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let n = events.len();
    assert!(events[n - 1].is("run", "end"), "{lines:?}");
    assert!(events[n - 2].is("journal", "dropped"), "{lines:?}");
    let told: Vec<f64> = events.iter().filter_map(|event| event.values.get("dropped").copied()).collect();
    assert_eq!((told, events[n - 2].values["dropped_in_all"]), (vec![8.0, 3.0], 11.0));
}

#[test]
fn silence_is_broken_by_a_sign_of_life() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let options = JournalOptions { alive_every: Duration::from_millis(100), ..JournalOptions::default() };
    let journal = options.create(&path).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(std::fs::read(&path).unwrap(), b"", "before the run has said anything, there is no run");
    journal.record(Event::new("run-7", "run", "start"));
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(journal.close().unwrap().n_written, 1, "signs of life are not the run's own");
    let events = events(&path);
    assert!(events[0].is("run", "start"));
    assert!(events[1..].iter().all(|event| event.is("run", "alive") && event.run == "run-7"));
    assert!((3..=15).contains(&events.len()), "{}", events.len());
}

#[test]
fn an_event_is_in_the_file_soon_without_being_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let journal = Journal::create(&path).unwrap();
    for pause_ms in [0, 700] {
        std::thread::sleep(Duration::from_millis(pause_ms));
        let n_before = events(&path).len();
        let began = std::time::Instant::now();
        journal.record(Event::new("r", "kernel", "batch"));
        while events(&path).len() == n_before {
            assert!(began.elapsed() < Duration::from_secs(5), "it never came");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(journal.snapshot().n_events as usize, n_before + 1);
    }
}

/// Fails for a while.
struct FullDisk {
    lines: Arc<Mutex<Vec<u8>>>,
    is_full: Arc<AtomicBool>,
}

impl Output for FullDisk {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.lines.lock().unwrap().extend_from_slice(lines);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn len_bytes(&self) -> u64 {
        0
    }

    fn rotate(&mut self, _: &Snapshot) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_to_who_must_know_and_the_journal_goes_on_when_there_is_room() {
    let (lines, is_full) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(true)));
    let journal = start(FullDisk { lines: Arc::clone(&lines), is_full: Arc::clone(&is_full) }, 64);
    let error = journal.record_durable(Event::new("r", "hypertune", "apply")).unwrap_err();
    assert!(
        matches!(&error, JournalError::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    );
    assert_eq!((journal.n_dropped(), journal.snapshot().n_events), (1, 1));
    is_full.store(false, Ordering::SeqCst);
    journal.record_durable(Event::new("r", "hypertune", "apply")).unwrap();
    assert_eq!(journal.close().unwrap(), Summary { n_written: 1, n_dropped: 1 });
    let text = String::from_utf8(lines.lock().unwrap().clone()).unwrap();
    let steps: Vec<_> = text.lines().map(|line| serde_json::from_str::<Event>(line).unwrap().step).collect();
    assert_eq!(steps, ["apply", "dropped"]);
}

#[test]
fn a_journal_without_a_file_folds() {
    let journal = Journal::without_file().unwrap();
    journal.record(Event::new("r", "run", "start"));
    journal.record_durable(Event::new("r", "kernel", "batch_0").value("trials", 5.0)).unwrap();
    assert_eq!((journal.snapshot().done, journal.path()), (5.0, None));
    assert_eq!(journal.close().unwrap(), Summary { n_written: 2, n_dropped: 0 });
}

#[test]
fn a_new_journal_leaves_nothing_of_an_old_one_but_keeps_its_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let options = JournalOptions { rotate_bytes: 500, ..JournalOptions::default() };
    for n_events in [20, 1] {
        std::fs::write(dir.path().join("other-000001.jsonl"), "").unwrap();
        let journal = options.create(&path).unwrap();
        (0..n_events).for_each(|_| _ = journal.record(Event::new("r", "kernel", "batch")));
        journal.close().unwrap();
    }
    let mut names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["journal.jsonl", "other-000001.jsonl"]);
}

#[test]
fn a_file_that_cannot_be_put_aside_is_written_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let options = JournalOptions { rotate_bytes: 500, ..JournalOptions::default() };
    let journal = options.create(&path).unwrap();
    // A folder of that name, with something in it, stands in the way.
    std::fs::create_dir_all(dir.path().join("journal-000001.jsonl/x")).unwrap();
    (0..20).for_each(|_| _ = journal.record(Event::new("r", "kernel", "batch")));
    assert_eq!(journal.close().unwrap(), Summary { n_written: 20, n_dropped: 0 });
    assert_eq!(events(&path).len(), 20);
}

#[test]
fn full_files_end_behind_whole_records_and_sum_up_to_their_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let journal = JournalOptions { rotate_bytes: 1000, ..JournalOptions::default() }.create(&path).unwrap();
    for idx in 0..40 {
        journal.record(Event::new("r", "kernel", format!("batch_{idx}")).value("trials", f64::from(idx)));
    }
    journal.close().unwrap();
    let segments = crate::segment::Segments::new(&path);
    let mut fold = Snapshot::default();
    let numbers = segments.numbers().unwrap();
    assert_eq!((numbers[0], numbers.len()), (1, segments.checkpoints().unwrap().len()));
    for number in numbers {
        let len_bytes = std::fs::metadata(segments.full(number)).unwrap().len();
        assert!((1000..1400).contains(&len_bytes), "{len_bytes}");
        events(&segments.full(number)).into_iter().for_each(|event| fold.take(event));
        let text = std::fs::read_to_string(segments.checkpoint(number)).unwrap();
        let checkpoint: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(checkpoint["snapshot"], serde_json::to_value(&fold).unwrap());
    }
}
