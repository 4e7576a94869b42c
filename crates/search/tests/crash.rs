//! A study whose process is killed again and again, at random moments, ends as if nothing had happened.
//!
//! The process that is killed is this test binary itself, told by the environment to run the study. It evaluates a given number of batches
//! and then waits to be killed, so that it never comes to its end first, however long its killer takes.

#![cfg(unix)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tidemill_search::rng::Stream;
use tidemill_search::{
    Batch, Domain, Evaluated, ExportFormat, FunctionEvaluator, Param, Points, Sampler, Scores, Space, Study,
    StudyFolder, StudyHeader, StudySummary, export,
};

/// Names the folder to the process that is killed.
const DIR: &str = "TIDEMILL_CRASH_DIR";

/// The number of batches after which it waits to be killed; without it, it runs to its end.
const MOST: &str = "TIDEMILL_CRASH_MOST";

/// Batches that are evaluated between two kills, at most.
const MOST_BATCHES: u64 = 16;

const N_TRIALS: u64 = 40_000;
const BATCH: usize = 37;
const LAG: usize = 2;
/// Small and no multiple of the batch, so that parts appear often and end inside batches.
const ROWS_PER_PART: usize = 500;
const N_KILLS: usize = 60;

/// Points that depend on every score told so far.
struct Chain {
    space: Space,
    state: u64,
    n_asked: u64,
}

impl Sampler for Chain {
    fn name(&self) -> &'static str {
        "chain"
    }

    fn ask(&mut self, n: usize) -> Points {
        let first = self.n_asked;
        self.n_asked += n as u64;
        let column = |(param, dimension): (&Param, u64)| {
            let stream = Stream::new(self.state, dimension);
            (first..first + n as u64).map(|trial| param.domain.from_unit(stream.unit(trial))).collect()
        };
        Points::from_columns(n, self.space.params.iter().zip(0..).map(column).collect())
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        for row in 0..points.len() {
            let bits = scores.first(row).value().unwrap_or(9.0).to_bits();
            self.state = Stream::new(self.state, bits).bits(points.value(row, 0).to_bits());
        }
    }

    fn remaining(&self) -> Option<u64> {
        None
    }
}

fn space() -> Space {
    let float = Domain::Float { low: -1.0, high: 1.0, step: None, log: false };
    let int = Domain::Int { low: 0, high: 1000, step: 1, log: false };
    Space {
        params: vec![
            Param::new("x", float, 0.0),
            Param::new("n", int, 0.0),
            Param::new("b", Domain::Bool, 0.0),
        ],
    }
}

/// Creates or resumes the study. After so many evaluations it goes no further.
fn run_study(dir: &Path, most: Option<u64>) -> StudySummary {
    let config = toml::toml! { trials = 40000 };
    let header =
        StudyHeader { version: "0.1.0".into(), semantics: 2, seed: 1, data_hash: "none".into(), config };
    let folder = StudyFolder::open_or_create(dir, &header).unwrap().folder;
    let space = space();
    let mut sampler = Chain { space: space.clone(), state: 1, n_asked: 0 };
    let mut n_evaluated = 0;
    let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
        if let Some(most) = most {
            // Held here until the process is killed.
            if n_evaluated >= most {
                loop {
                    std::thread::park();
                }
            }
            // So that moments at random also fall into evaluations.
            std::thread::sleep(Duration::from_millis(1));
        }
        n_evaluated += 1;
        let points = &batch.points;
        let score = |row| if points.value(row, 2) == 1.0 { f64::NAN } else { points.value(row, 0) };
        let scores = (0..points.len()).map(score).collect();
        let metric = points.column(1).iter().map(|n| n / 7.0).collect();
        Ok(Evaluated { scores: Scores::from_columns(points.len(), vec![scores]), metrics: vec![metric] })
    });
    Study::new(&space, &mut sampler)
        .trials(N_TRIALS)
        .batch(BATCH)
        .lag(LAG)
        .metrics(&["seventh"])
        .rows_per_part(ROWS_PER_PART)
        .folder(&folder)
        .run(&mut evaluator)
        .unwrap()
}

/// Not a test of its own: what the killed process runs. Without the variable there is nothing to do.
#[test]
fn child() {
    if let Some(dir) = std::env::var_os(DIR) {
        let most = std::env::var(MOST).ok().map(|most| most.parse().unwrap());
        run_study(Path::new(&dir), most);
    }
}

fn spawn(dir: &Path, most: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(DIR, dir)
        .env(MOST, most.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// All exports, and the bytes of all parts.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut contents: Vec<(String, Vec<u8>)> = ExportFormat::ALL
        .iter()
        .map(|format| {
            let mut bytes = Vec::new();
            export(dir, *format, &mut bytes).unwrap();
            (format.name().to_owned(), bytes)
        })
        .collect();
    for entry in std::fs::read_dir(dir.join("trials")).unwrap() {
        let path = entry.unwrap().path();
        contents
            .push((path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()));
    }
    contents.sort();
    contents
}

#[test]
fn a_study_killed_at_random_moments_ends_as_if_uninterrupted() {
    let place = tempfile::tempdir().unwrap();
    let (whole, killed) = (place.path().join("whole"), place.path().join("killed"));
    let summary = run_study(&whole, None);
    assert!(summary.is_complete && summary.n_trials == N_TRIALS);

    // Another sequence of moments each time the test runs, and written down if it fails.
    let seed = u64::from(std::process::id());
    let moments = Stream::new(seed, 0);
    let (mut n_kills, mut n_torn, mut n_before, mut n_progressed) = (0, 0, 0, 0);
    while n_kills < N_KILLS {
        let mut child = spawn(&killed, 1 + moments.bits(2 * n_kills as u64) % MOST_BATCHES);
        // Most processes must get somewhere before they die, or the test would kill start-ups only.
        while n_kills % 4 != 0
            && StudyFolder::open(&killed).and_then(|folder| folder.n_trials()).unwrap_or(0) <= n_before
        {
            assert!(child.try_wait().unwrap().is_none(), "seed {seed}: a child ended, after {n_kills} kills");
            std::thread::sleep(Duration::from_millis(1));
        }
        // Then a moment at random: while it works, or while it waits.
        std::thread::sleep(Duration::from_micros(moments.bits(2 * n_kills as u64 + 1) % 20_000));
        assert!(child.try_wait().unwrap().is_none(), "seed {seed}: a child ended, after {n_kills} kills");
        child.kill().unwrap();
        child.wait().unwrap();
        n_kills += 1;
        // What a reader sees after a kill is whole batches, and never fewer than before.
        let Ok(folder) = StudyFolder::open(&killed) else { continue };
        let n_trials = folder.n_trials().unwrap();
        assert!(
            n_trials >= n_before && n_trials.is_multiple_of(BATCH as u64),
            "seed {seed}: {n_before}, then {n_trials}"
        );
        let n_read: usize = folder.trials().unwrap().map(|batch| batch.unwrap().trials.len()).sum();
        assert_eq!(n_read as u64, n_trials, "seed {seed}");
        n_progressed += usize::from(n_trials > n_before);
        n_before = n_trials;
        let entries = std::fs::read_dir(killed.join("trials")).unwrap();
        n_torn += entries
            .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "tmp"))
            .count();
    }
    assert!(n_before < N_TRIALS && n_progressed >= N_KILLS / 4 * 3, "{n_progressed} of {n_kills}");
    let summary = run_study(&killed, None);
    assert!(summary.is_complete && summary.n_replayed == n_before);
    let (whole, killed) = (contents(&whole), contents(&killed));
    let names =
        |contents: &[(String, Vec<u8>)]| contents.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&whole), names(&killed), "seed {seed}");
    assert!(whole == killed, "seed {seed}: the killed study differs");
    eprintln!(
        "{n_kills} kills, {n_progressed} with progress, {n_torn} half-written files, {n_before} trials before the last run"
    );
}

/// A limit on the size of files stands in for a full disk: the write of a record fails in the middle.
#[test]
fn a_log_that_cannot_grow_ends_the_study_and_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (whole, limited) = (place.path().join("whole"), place.path().join("limited"));
    run_study(&whole, None);
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact child --nocapture";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env(DIR, &limited)
        .output()
        .unwrap();
    assert!(!output.status.success(), "8 blocks hold no 500 trials");
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("log.bin") && said.contains("File too large"), "{said}");
    let n_kept = StudyFolder::open(&limited).unwrap().n_trials().unwrap();
    assert!(n_kept > 0 && n_kept.is_multiple_of(BATCH as u64) && n_kept < N_TRIALS, "{n_kept}");
    let summary = run_study(&limited, None);
    assert_eq!(summary.n_replayed, n_kept);
    assert!(contents(&limited) == contents(&whole));
}
