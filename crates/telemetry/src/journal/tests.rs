use std::cell::Cell;
use std::rc::Rc;
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
    let options = JournalOptions { capacity, ..without_signs() };
    Journal::start(Some(Path::new("memory")), output, Snapshot::default(), &options).unwrap()
}

/// Waits for what must come. The limit is there to end a test that hangs.
fn until(what: &str, is_there: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < Duration::from_secs(600), "{what} never came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Options of a journal that adds no signs of life, however slow the machine.
fn without_signs() -> JournalOptions {
    JournalOptions { alive_every: Duration::from_secs(86_400), ..JournalOptions::default() }
}

fn events(path: &Path) -> Vec<Event> {
    read_journal(path).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn concurrent_writers_lose_and_mix_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let journal = without_signs().create(&path).unwrap();
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
    assert_eq!(journal.close().unwrap(), JournalSummary { n_written: 8000, n_dropped: 0 });
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
    assert_eq!(summary, JournalSummary { n_written: 5, n_dropped: 96 });
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
    until("the count of what could not be written", || {
        journal.record(Event::new("r", "a", "later"));
        journal.n_dropped() >= 2
    });
    assert!(matches!(journal.close(), Err(JournalError::Write { .. })));
}

#[test]
fn a_torn_last_line_is_cut_off_before_appending() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let long = "x".repeat(10_000);
    for torn in ["{\"v\":1,\"timest", long.as_str(), ""] {
        let journal = without_signs().create(&path).unwrap();
        journal.record(Event::new("r", "a", "kept"));
        drop(journal);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(torn.as_bytes());
        std::fs::write(&path, bytes).unwrap();
        let journal = without_signs().open_append(&path).unwrap();
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

/// A writer that is turned by hand and whose clock is set by hand, so that nothing here depends on how long something takes.
struct ByHand {
    sender: Sender<Message>,
    shared: Arc<Shared>,
    lines: Arc<Mutex<Vec<u8>>>,
    now: Rc<Cell<Instant>>,
    writer: Writer<FullDisk, Box<dyn Fn() -> Instant>>,
}

impl ByHand {
    fn new(options: &JournalOptions) -> Self {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let (shared, lines) = (Arc::new(Shared::default()), Arc::new(Mutex::new(Vec::new())));
        let output = FullDisk { lines: Arc::clone(&lines), is_full: Arc::default() };
        let now = Rc::new(Cell::new(Instant::now()));
        let clock: Box<dyn Fn() -> Instant> = Box::new({
            let now = Rc::clone(&now);
            move || now.get()
        });
        let writer = Writer::new(receiver, output, clock, Arc::clone(&shared), options);
        Self { sender, shared, lines, now, writer }
    }

    fn record(&self, event: Event) {
        self.sender.send(Message::Event(event)).unwrap();
    }

    fn drop_events(&self, n_events: u64) {
        self.shared.n_dropped.fetch_add(n_events, Ordering::Relaxed);
    }

    /// Lets so much time pass, has the writer do what is due, and gives the steps that it wrote.
    fn after(&mut self, passed: Duration) -> Vec<String> {
        self.now.set(self.now.get() + passed);
        assert!(self.writer.turn());
        self.steps()
    }

    /// Ends the channel: the number of records written, and the steps that were added last.
    fn end(self) -> (u64, Vec<String>) {
        let Self { sender, writer, lines, .. } = self;
        drop(sender);
        (writer.run().unwrap(), steps_of(&lines))
    }

    fn steps(&self) -> Vec<String> {
        steps_of(&self.lines)
    }
}

/// Takes the lines away; steps, with the number of drops where a record tells of some.
fn steps_of(lines: &Mutex<Vec<u8>>) -> Vec<String> {
    let text = String::from_utf8(std::mem::take(&mut *lines.lock().unwrap())).unwrap();
    let step = |line: &str| {
        let event: Event = serde_json::from_str(line).unwrap();
        match event.values.get("dropped") {
            Some(n_dropped) => format!("{} {n_dropped} of {}", event.step, event.values["dropped_in_all"]),
            None => event.step.to_string(),
        }
    };
    text.lines().map(step).collect()
}

#[test]
fn the_end_is_the_last_record_and_drops_are_told_before_it() {
    let mut journal = ByHand::new(&JournalOptions::default());
    let batch = |step: &str| Event::new("r", "kernel", step);
    journal.record(batch("batch_0"));
    journal.drop_events(8);
    assert_eq!(journal.after(Duration::ZERO), ["batch_0", "dropped 8 of 8"], "told at once");
    journal.drop_events(2);
    assert_eq!(journal.after(Duration::from_millis(999)), [""; 0], "too soon after");
    assert_eq!(journal.after(Duration::from_millis(1)), ["dropped 2 of 10"]);
    journal.drop_events(3);
    journal.record(Event::new("r", "run", "end").parameter("outcome", "complete"));
    assert_eq!(journal.after(Duration::ZERO), ["dropped 3 of 13", "end"], "before the end, however soon");
    assert_eq!(journal.shared.snapshot.lock().unwrap().state, crate::RunState::Complete);
    // Neither silence nor drops add anything to it.
    journal.drop_events(1);
    assert_eq!(journal.after(Duration::from_secs(3600)), [""; 0]);
    assert_eq!(journal.end(), (2, vec![]));
}

#[test]
fn silence_is_broken_by_a_sign_of_life() {
    let mut journal = ByHand::new(&JournalOptions::default());
    assert_eq!(journal.after(Duration::from_secs(3600)), [""; 0], "there is no run yet");
    journal.record(Event::new("run-7", "run", "start"));
    assert_eq!(journal.after(Duration::ZERO), ["start"]);
    assert_eq!(journal.after(Duration::from_millis(4999)), [""; 0]);
    assert_eq!(journal.after(Duration::from_millis(1)), ["alive"]);
    assert_eq!(journal.after(Duration::from_millis(4999)), [""; 0]);
    journal.record(Event::new("run-7", "kernel", "batch_0"));
    assert_eq!(journal.after(Duration::ZERO), ["batch_0"]);
    assert_eq!(journal.after(Duration::from_millis(4999)), [""; 0], "the record was a sign");
    assert_eq!(journal.after(Duration::from_millis(1)), ["alive"]);
    assert_eq!(journal.end(), (2, vec![]), "signs of life are not the run's own");
}

#[test]
fn a_silent_journal_gives_signs_of_life_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let options = JournalOptions { alive_every: Duration::from_millis(1), ..JournalOptions::default() };
    let journal = options.create(&path).unwrap();
    journal.record(Event::new("run-7", "run", "start"));
    // So many that it has come to the long sleeps of a quiet journal.
    until("signs of life", || events(&path).len() > 30);
    assert_eq!(journal.close().unwrap().n_written, 1);
    let events = events(&path);
    assert!(events[0].is("run", "start"));
    assert!(events[1..].iter().all(|event| event.is("run", "alive") && event.run == "run-7"));
}

#[test]
fn an_event_comes_into_the_file_without_being_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let journal = without_signs().create(&path).unwrap();
    // While it looks often, and after a silence in which it has come to wait for the next event.
    for pause_ms in [0, 700] {
        std::thread::sleep(Duration::from_millis(pause_ms));
        let n_before = events(&path).len();
        journal.record(Event::new("r", "kernel", "batch"));
        until("the event in the file", || events(&path).len() > n_before);
        until("the event in the fold", || journal.snapshot().n_events as usize > n_before);
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
    assert_eq!(journal.close().unwrap(), JournalSummary { n_written: 1, n_dropped: 1 });
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
    assert_eq!(journal.close().unwrap(), JournalSummary { n_written: 2, n_dropped: 0 });
}

#[test]
fn a_new_journal_leaves_nothing_of_an_old_one_but_keeps_its_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let options = JournalOptions { rotate_bytes: 500, ..without_signs() };
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
    let options = JournalOptions { rotate_bytes: 500, ..without_signs() };
    let journal = options.create(&path).unwrap();
    // A folder of that name, with something in it, stands in the way.
    std::fs::create_dir_all(dir.path().join("journal-000001.jsonl/x")).unwrap();
    (0..20).for_each(|_| _ = journal.record(Event::new("r", "kernel", "batch")));
    assert_eq!(journal.close().unwrap(), JournalSummary { n_written: 20, n_dropped: 0 });
    assert_eq!(events(&path).len(), 20);
}

#[test]
fn full_files_end_behind_whole_records_and_sum_up_to_their_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.jsonl");
    let journal = JournalOptions { rotate_bytes: 1000, ..without_signs() }.create(&path).unwrap();
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
