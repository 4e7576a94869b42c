//! `cargo xtask stress`: the tests that sleep, wait, spawn or race, many times over beside processes that take all cores.
//!
//! A test that judges by the clock or by who comes first passes on a quiet machine. The list of the tests is kept by hand, because only people
//! know how often a slow one has to run; that it is complete is checked against the source.

mod busy;
mod list;
pub mod test_source;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use cargo_metadata::{Artifact, Message, TargetKind};

use list::{LIST, UNLISTED};
use test_source::{TestFn, test_fns};

/// How often each test runs unless told otherwise.
const ROUNDS: u32 = 100;

/// Processes that take all the time they get.
const N_BUSY: usize = 4;

/// Tests of a binary that run at the same time.
const THREADS: &str = "4";

/// Binaries that run at the same time. Their tests wait for most of the time, and press on each other besides.
const N_AT_ONCE: usize = 16;

/// Ends a binary that hangs.
const LONG: Duration = Duration::from_secs(1200);

pub use busy::{COMMAND as SPIN, spin};

/// Command-line options of `stress`.
struct StressOptions {
    rounds: u32,
    /// Only tests whose file or name has one of these in it; none means all.
    words: Vec<String>,
}

/// A test binary and those of its tests that are run.
struct TestBinary {
    program: PathBuf,
    /// Where cargo would run it.
    dir: PathBuf,
    shown: String,
    /// Names for the harness, and the most rounds of each.
    tests: Vec<(String, u32)>,
}

/// Runs the listed tests.
pub fn run(root: &Path, arguments: &[String], variables: Vec<(&'static str, OsString)>) -> Result<()> {
    let wish = StressOptions::parse(arguments)?;
    let problems = check(root)?;
    ensure!(problems.is_empty(), "the list of tests is out of date\n  {}", problems.join("\n  "));
    let binaries = binaries(root, &wish)?;
    let n_tests: usize = binaries.iter().map(|binary| binary.tests.len()).sum();
    ensure!(n_tests > 0, "no test of the list is called like {}", wish.words.join(", "));
    crate::step(&format!("{n_tests} tests, {} rounds, beside {N_BUSY} busy processes", wish.rounds));
    let _busy = busy::Busy::start(N_BUSY)?;
    let mut failures: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let began = Instant::now();
    for round in 1..=wish.rounds {
        let before: usize = failures.values().map(Vec::len).sum();
        for (binary, failed) in run_round(&binaries, round, &variables)? {
            for test in failed {
                failures.entry(format!("{}: {test}", binary.shown)).or_default().push(round);
            }
        }
        let n_failed = failures.values().map(Vec::len).sum::<usize>() - before;
        eprintln!(
            "    round {round} of {}: {n_failed} failed, {:.0} s",
            wish.rounds,
            began.elapsed().as_secs_f64()
        );
    }
    for (test, rounds) in &failures {
        eprintln!("  - {test} failed in {} of {} rounds: {}", rounds.len(), wish.rounds, first_few(rounds));
    }
    ensure!(failures.is_empty(), "{} test(s) failed beside busy processes", failures.len());
    Ok(())
}

/// Runs all binaries once, a few at a time; the tests that failed in each.
fn run_round<'a>(
    binaries: &'a [TestBinary],
    round: u32,
    variables: &[(&'static str, OsString)],
) -> Result<Vec<(&'a TestBinary, Vec<String>)>> {
    let next = AtomicUsize::new(0);
    let run = || -> Result<Vec<(&TestBinary, Vec<String>)>> {
        let mut done = Vec::new();
        while let Some(binary) = binaries.get(next.fetch_add(1, Ordering::SeqCst)) {
            done.push((binary, binary.round(round, variables)?));
        }
        Ok(done)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..N_AT_ONCE).map(|_| scope.spawn(run)).collect();
        let mut done = Vec::new();
        for worker in workers {
            done.extend(worker.join().map_err(|_| anyhow!("a thread that runs tests panicked"))??);
        }
        Ok(done)
    })
}

/// What is wrong with the list: tests that do not exist, and tests that should be on it.
pub fn check(root: &Path) -> Result<Vec<String>> {
    Ok(problems(&test_fns(root)?, LIST, UNLISTED))
}

fn problems(tests: &[TestFn], listed: &[list::TestFile], unlisted: &[(&str, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    let exists = |file: &str, name: &str| tests.iter().any(|test| test.file == file && test.name == name);
    for file in listed {
        let missing = file.tests.iter().filter(|test| !exists(file.path, test.0));
        problems.extend(missing.map(|test| format!("{}: there is no test `{}`", file.path, test.0)));
    }
    for (path, _) in unlisted {
        if !tests.iter().any(|test| test.file == *path && test.is_timed) {
            problems.push(format!(
                "{path}: no test here sleeps, waits, spawns or races, and none need be excused"
            ));
        }
    }
    let is_listed = |test: &TestFn| {
        listed.iter().any(|file| file.path == test.file && file.tests.iter().any(|row| row.0 == test.name))
    };
    for test in tests.iter().filter(|test| test.is_timed && test.ignored.is_none()) {
        let is_excused = test.name == "child" || unlisted.iter().any(|(path, _)| *path == test.file);
        if !is_listed(test) && !is_excused {
            problems.push(format!(
                "{}: `{}` sleeps, waits, spawns or races; add it to xtask/src/stress/list.rs",
                test.file, test.name
            ));
        }
    }
    problems
}

impl StressOptions {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut wish = Self { rounds: ROUNDS, words: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--rounds" => {
                    let number = arguments.next().context("--rounds needs a number")?;
                    wish.rounds = number.parse().with_context(|| format!("--rounds {number}"))?;
                    ensure!(wish.rounds > 0, "--rounds 0: expected at least 1");
                }
                option if option.starts_with('-') => bail!("unknown option {option}"),
                word => wish.words.push(word.to_owned()),
            }
        }
        Ok(wish)
    }

    fn wants(&self, file: &str, test: &str) -> bool {
        self.words.is_empty()
            || self.words.iter().any(|word| file.contains(word.as_str()) || test.contains(word.as_str()))
    }
}

/// Builds all tests and finds the listed ones in them.
fn binaries(root: &Path, wish: &StressOptions) -> Result<Vec<TestBinary>> {
    let artifacts = build(root)?;
    let mut binaries: Vec<TestBinary> = Vec::new();
    for file in LIST {
        for (name, most_rounds) in file.tests.iter().filter(|test| wish.wants(file.path, test.0)) {
            let (program, dir, shown, harness_name) = find(root, &artifacts, file.path, name)?;
            let test = (harness_name, most_rounds.unwrap_or(u32::MAX));
            match binaries.iter_mut().find(|binary| binary.program == program) {
                Some(binary) => binary.tests.push(test),
                None => binaries.push(TestBinary { program, dir, shown, tests: vec![test] }),
            }
        }
    }
    Ok(binaries)
}

/// The test binaries, built in release mode.
fn build(root: &Path) -> Result<Vec<(Artifact, Vec<String>)>> {
    let arguments =
        ["test", "--workspace", "--release", "--no-run", "--message-format=json-render-diagnostics"];
    crate::step(&format!("cargo {}", arguments.join(" ")));
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    let output = std::io::BufReader::new(cargo.stdout.take().context("cargo has no output")?);
    let mut artifacts = Vec::new();
    for message in Message::parse_stream(output) {
        if let Message::CompilerArtifact(artifact) = message?
            && artifact.profile.test
            && let Some(program) = &artifact.executable
        {
            let tests = tests_in(program.as_std_path())?;
            artifacts.push((artifact, tests));
        }
    }
    ensure!(cargo.wait()?.success(), "the tests do not build");
    Ok(artifacts)
}

/// The names that the harness gives to the tests of a binary.
fn tests_in(program: &Path) -> Result<Vec<String>> {
    let output = Command::new(program).args(["--list", "--format", "terse"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Where a test is: the program, its folder, how to show it, and what the harness calls it.
fn find(
    root: &Path,
    artifacts: &[(Artifact, Vec<String>)],
    file: &str,
    name: &str,
) -> Result<(PathBuf, PathBuf, String, String)> {
    let parts: Vec<&str> = file.split('/').collect();
    let crate_dir = if parts[0] == "crates" { parts[..2].join("/") } else { parts[0].to_owned() };
    let inside =
        parts.iter().position(|part| *part == "tests" || *part == "src").context("no file of a crate")?;
    let is_integration = parts[inside] == "tests";
    let target = parts.get(inside + 1).context("no file of a crate")?.trim_end_matches(".rs");
    let stem = parts[parts.len() - 1].trim_end_matches(".rs");
    let mut found = Vec::new();
    for (artifact, tests) in artifacts {
        let dir = artifact.manifest_path.parent().context("a manifest lies in a folder")?;
        let is_test = artifact.target.kind.contains(&TargetKind::Test);
        let is_here = dir.as_std_path() == root.join(&crate_dir)
            && is_test == is_integration
            && (!is_test || artifact.target.name == target);
        let program = artifact.executable.as_ref().filter(|_| is_here);
        for test in tests {
            let is_named = test.rsplit("::").next() == Some(name);
            if let Some(program) = program.filter(|_| is_named) {
                let shown = format!("{crate_dir} {}", artifact.target.name);
                found.push((program.clone().into(), dir.to_path_buf().into(), shown, test.clone()));
            }
        }
    }
    if found.len() > 1 {
        // Modules of one binary may have tests of the same name.
        found.retain(|(_, _, _, test)| test.split("::").any(|part| part == stem));
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => bail!("{file}: the test binaries hold no test `{name}`"),
        n => bail!("{file}: {n} tests are called `{name}`"),
    }
}

impl TestBinary {
    /// Runs its tests once; the names of those that failed.
    fn round(&self, round: u32, variables: &[(&str, OsString)]) -> Result<Vec<String>> {
        let tests: Vec<&String> =
            self.tests.iter().filter(|(_, most)| round <= *most).map(|(test, _)| test).collect();
        if tests.is_empty() {
            return Ok(Vec::new());
        }
        let log = tempfile::tempfile()?;
        let mut child = Command::new(&self.program)
            .args(["--exact", "--test-threads", THREADS])
            .args(&tests)
            .envs(variables.iter().cloned())
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let began = Instant::now();
        let status = loop {
            match child.try_wait()? {
                Some(status) => break Some(status),
                None if began.elapsed() > LONG => {
                    child.kill()?;
                    child.wait()?;
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        if status.is_some_and(|status| status.success()) {
            return Ok(Vec::new());
        }
        let text = read(log)?;
        let mut failed = failed_tests(&text);
        if status.is_none() {
            failed.push(format!("(did not end within {} s)", LONG.as_secs()));
        } else if failed.is_empty() {
            failed.push("(the process died)".to_owned());
        }
        eprintln!("    round {round}, {}: {}\n{}", self.shown, failed.join(", "), last_lines(&text, 40));
        Ok(failed)
    }
}

fn read(mut file: std::fs::File) -> Result<String> {
    use std::io::{Read, Seek};
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn failed_tests(text: &str) -> Vec<String> {
    let failed = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    failed.map(str::to_owned).collect()
}

fn last_lines(text: &str, n: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}

fn first_few(rounds: &[u32]) -> String {
    let shown: Vec<String> = rounds.iter().take(10).map(u32::to_string).collect();
    shown.join(", ") + if rounds.len() > 10 { ", …" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_agrees_with_the_source() {
        let root = crate::workspace_root().unwrap();
        assert_eq!(check(&root).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_test_that_does_not_exist_and_one_that_is_not_listed_are_named() {
        let timed = |name: &str| TestFn { is_timed: true, ..TestFn::example("a.rs", name, None) };
        let seldom = TestFn { is_timed: true, ..TestFn::example("a.rs", "seldom", Some("slow")) };
        let plain = TestFn::example("a.rs", "plain", None);
        let tests = [timed("listed"), timed("new"), timed("child"), seldom, plain];
        let listed = [list::TestFile { path: "a.rs", tests: &[("listed", None), ("gone", None)] }];
        assert_eq!(
            problems(&tests, &listed, &[("b.rs", "why")]),
            [
                "a.rs: there is no test `gone`",
                "b.rs: no test here sleeps, waits, spawns or races, and none need be excused",
                "a.rs: `new` sleeps, waits, spawns or races; add it to xtask/src/stress/list.rs",
            ]
        );
        assert_eq!(problems(&tests, &[], &[("a.rs", "why")]), Vec::<String>::new());
    }

    #[test]
    fn the_failures_of_a_binary_are_read_from_what_it_prints() {
        let text =
            "test a::b ... ok\ntest a::c ... FAILED\nthread 'a::c' panicked\ntest d ... ignored, why\n";
        assert_eq!(failed_tests(text), ["a::c"]);
    }

    #[test]
    fn rounds_and_words_are_understood() {
        let parse = |line: &str| {
            StressOptions::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        let wish = parse("--rounds 7 follow.rs crash").unwrap();
        assert_eq!(wish.rounds, 7);
        assert!(wish.wants("crates/telemetry/tests/follow.rs", "x") && wish.wants("a.rs", "a_crash"));
        assert!(!wish.wants("a.rs", "b") && parse("").unwrap().wants("a.rs", "b"));
        for bad in ["--rounds", "--rounds 0", "--rounds x", "--fast"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
