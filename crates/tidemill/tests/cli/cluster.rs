//! Searches on workers: the export has the bytes of one process, whatever happens to the workers or to the search itself.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Place;

/// A sweep of many batches, long enough that much can happen meanwhile.
const SWEEP: &str =
    "sweep zscore-dip --data long.csv --split 0.7 --trials 3000 --batch 50 --lag 2 --verdict off --threads 2";

fn place() -> Place {
    let place = Place::new();
    place.ok("data generate --kind lcg --bars 20000 --out long.csv");
    place
}

fn export(place: &Place, dir: &str) -> Vec<u8> {
    place.ok(&format!("study export {dir} --format csv --out {dir}.csv"));
    std::fs::read(place.path(&format!("{dir}.csv"))).unwrap()
}

/// A process that ends with the test.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn args(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Processes whose parent is this one.
fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

fn kill(process: u32) {
    drop(Command::new("kill").args(["-9", &process.to_string()]).stderr(Stdio::null()).status());
}

fn stored(place: &Place, dir: &str) -> u64 {
    tidemill_search::StudyFolder::open(&place.path(dir)).and_then(|folder| folder.n_trials()).unwrap_or(0)
}

#[test]
fn a_sweep_on_worker_processes_has_the_bytes_of_one_process() {
    let place = place();
    for (name, options) in [("learns", "--sampler tpe"), ("drawn", "--sampler sobol")] {
        place.ok(&format!("{SWEEP} {options} --out {name}"));
        let out = place.ok(&format!("{SWEEP} {options} --out {name}-2 --workers local:2"));
        assert!(out.stderr.contains("on 2 worker processes"), "{}", out.stderr);
        assert!(export(&place, name) == export(&place, &format!("{name}-2")));
    }
}

#[test]
fn workers_that_are_killed_all_the_time_change_no_byte() {
    if !std::path::Path::new("/proc/self/task").exists() {
        return tidemill_skip::skipped("the children of a process are listed on Linux alone");
    }
    let most_kills: u32 = std::env::var("TIDEMILL_KILLS").map_or(24, |text| text.parse().unwrap());
    let place = place();
    // A study in which every worker answers a shard between two kills, however often they come.
    let trials = format!("--trials {}", 3000 + 150 * u64::from(most_kills));
    let sweep = format!("{SWEEP} --sampler tpe").replace("--trials 3000", &trials);
    place.ok(&format!("{sweep} --out alone"));
    let command = format!("{sweep} --out killed --workers local:3");
    let mut search =
        Guarded(place.command(&args(&command)).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    let (mut n_kills, mut last) = (0, 0);
    let until = Instant::now() + Duration::from_secs(3600);
    while search.0.try_wait().unwrap().is_none() && Instant::now() < until {
        let now = stored(&place, "killed");
        if now > last && n_kills < most_kills {
            last = now;
            let workers = children(search.0.id());
            if let Some(worker) = workers.get(n_kills as usize % workers.len().max(1)) {
                kill(*worker);
                n_kills += 1;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(search.0.wait().unwrap().success());
    assert!(n_kills > 0);
    eprintln!("{n_kills} workers were killed");
    assert!(export(&place, "alone") == export(&place, "killed"));
}

#[test]
fn a_search_that_was_killed_goes_on_with_another_number_of_workers() {
    let place = place();
    let sweep = format!("{SWEEP} --sampler tpe");
    place.ok(&format!("{sweep} --out alone"));
    let command = format!("{sweep} --out resumed --workers local:3");
    let mut search =
        Guarded(place.command(&args(&command)).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    while stored(&place, "resumed") < 400 && search.0.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    search.0.kill().unwrap();
    search.0.wait().unwrap();
    let n_stored = stored(&place, "resumed");
    assert!((400..3000).contains(&n_stored), "{n_stored}");
    place.ok(&format!("{sweep} --out resumed --workers local:1"));
    assert!(export(&place, "alone") == export(&place, "resumed"));
}

/// A worker that listens, and its address.
fn listener(place: &Place, options: &str) -> (Guarded, String) {
    let command = format!("worker --listen 0 --token-file token --device cpu --threads 1 {options}");
    let mut worker = Guarded(place.command(&args(&command)).stderr(Stdio::piped()).spawn().unwrap());
    let mut stderr = BufReader::new(worker.0.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    // Whoever does not read would stop it once the pipe is full.
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    (worker, address)
}

#[test]
fn workers_behind_sockets_serve_who_knows_the_token_and_tell_others_nothing() {
    let place = place();
    place.write("token", "a secret of many letters\n");
    place.write("other", "another secret, as long\n");
    let sweep = format!("{SWEEP} --sampler tpe");
    place.ok(&format!("{sweep} --out alone"));
    let workers = [listener(&place, ""), listener(&place, "--data long.csv")];
    let addresses = workers.iter().map(|(_, address)| address.as_str()).collect::<Vec<_>>().join(",");
    assert!(addresses.starts_with("127.0.0.1:"), "{addresses}");
    place.ok(&format!("{sweep} --out together --workers {addresses} --token-file token"));
    assert!(export(&place, "alone") == export(&place, "together"));
    // Nobody who does not know the token hears more than a random number.
    let mut stranger = std::net::TcpStream::connect(&workers[0].1).unwrap();
    let mut nonce = [0; 32];
    std::io::Read::read_exact(&mut stranger, &mut nonce).unwrap();
    std::io::Write::write_all(&mut stranger, &[7; 64]).unwrap();
    let mut rest = Vec::new();
    drop(std::io::Read::read_to_end(&mut stranger, &mut rest));
    assert!(rest.is_empty());
    // Nor does a search with another token, which is told why it waits.
    let command = format!("{sweep} --workers {addresses} --token-file other");
    let mut search = Guarded(place.command(&args(&command)).stderr(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(search.0.stderr.take().unwrap()).lines();
    let told =
        lines.map_while(Result::ok).find(|line| line.contains("both sides need the same --token-file"));
    assert!(told.is_some());
    // And the workers are still there.
    drop(search);
    place.ok(&format!("{sweep} --out again --workers {addresses} --token-file token"));
    assert!(export(&place, "alone") == export(&place, "again"));
}

#[test]
fn a_walk_forward_on_workers_is_the_same() {
    let place = place();
    let walk =
        "walkforward zscore-dip --data long.csv --train 60d --test 30d --trials 200 --json --threads 2";
    assert_eq!(place.ok(walk).stdout, place.ok(&format!("{walk} --workers local:2")).stdout);
}

fn spawned(place: &Place, command: &str) -> Guarded {
    let mut command = place.command(&args(command));
    Guarded(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Waits until a study holds so many trials.
fn until_stored(place: &Place, dir: &str, n_trials: u64) {
    let end = Instant::now() + Duration::from_secs(120);
    while stored(place, dir) < n_trials {
        assert!(Instant::now() < end, "{dir} holds {}", stored(place, dir));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_search_on_workers_stops_when_it_is_told_to() {
    let place = place();
    place.write("token", "a secret of many letters\n");
    let endless = SWEEP.replace("--trials 3000", "--trials 100000000").replace("--batch 50", "--batch 4096");
    // One whose batches are all sent ahead, and one that nobody serves.
    for (dir, workers) in [("drawn", "local:1"), ("lonely", "127.0.0.1:1 --token-file token")] {
        let mut search =
            spawned(&place, &format!("{endless} --sampler sobol --out {dir} --workers {workers}"));
        if dir == "drawn" {
            until_stored(&place, dir, 4096);
        } else {
            let mut line = String::new();
            let mut told = BufReader::new(search.0.stderr.take().unwrap());
            while !line.contains("nobody listens there") {
                line.clear();
                assert_ne!(told.read_line(&mut line).unwrap(), 0);
            }
            std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        }
        let interrupt = Command::new("kill").args(["-INT", &search.0.id().to_string()]).status();
        assert!(interrupt.unwrap().success());
        assert_eq!(search.0.wait().unwrap().code(), Some(130), "{dir}");
    }
}

#[test]
fn a_worker_that_is_busy_says_so_once_and_serves_who_waits() {
    let place = place();
    place.write("token", "a secret of many letters\n");
    let sweep = format!("{SWEEP} --sampler tpe");
    place.ok(&format!("{sweep} --out alone"));
    let (_worker, address) = listener(&place, "");
    let served = format!("--workers {address} --token-file token");
    let endless = SWEEP.replace("--trials 3000", "--trials 100000000");
    let first = spawned(&place, &format!("{endless} --sampler tpe --out first {served}"));
    until_stored(&place, "first", 100);
    let mut second = spawned(&place, &format!("{sweep} --out second {served}"));
    let mut told = BufReader::new(second.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(told.any(|line| line.contains("it is busy with another search")));
    std::thread::sleep(Duration::from_secs(1));
    drop(first);
    assert!(!told.any(|line| line.contains("it is busy with another search")), "once is enough");
    assert!(second.0.wait().unwrap().success());
    assert!(export(&place, "alone") == export(&place, "second"));
}

#[test]
fn a_merge_goes_on_where_it_stopped_and_takes_complete_parts_only() {
    let place = place();
    let sweep = format!("{SWEEP} --sampler sobol");
    place.ok(&format!("{sweep} --out alone"));
    place.ok(&format!("{sweep} --part 1/2 --out part-1"));
    let part = format!("{sweep} --part 2/2 --out part-2");
    let second = spawned(&place, &part);
    until_stored(&place, "part-2", 50);
    drop(second);
    assert!(stored(&place, "part-2") < 1500);
    let merge = "study merge merged part-1 part-2";
    let out = place.line(merge);
    assert!(
        out.code == Some(2) && out.stderr.contains("part-2: it is not complete: it has "),
        "{}",
        out.stderr
    );
    assert!(!place.path("merged").exists());
    place.ok(&part);
    // As if it had been stopped: the first trials of the whole are there.
    let whole = spawned(&place, &format!("{sweep} --out merged"));
    until_stored(&place, "merged", 50);
    drop(whole);
    assert!((50..3000).contains(&stored(&place, "merged")));
    place.ok(merge);
    assert!(export(&place, "alone") == export(&place, "merged"));
    place.refused(&format!("{merge} part-1"), "part 1/2 is named twice: part-1 and part-1");
}

#[test]
fn local_workers_read_the_settings_that_the_search_reads() {
    let place = Place::new();
    place.write("tidemill.toml", "what = \"no setting\"\n");
    place.write("good.toml", "");
    place.refused("sweep zscore-dip --trials 20", "what");
    place.ok("sweep zscore-dip --trials 20 --verdict off --config good.toml --workers local:1");
}

#[test]
fn wrong_workers_are_refused_before_the_work() {
    let place = Place::new();
    for (options, reason) in [
        ("--workers local:0", "a number of processes from 1 to 256"),
        ("--workers local:x", "a number of processes from 1 to 256"),
        ("--workers nowhere", "expected local:N, or HOST:PORT"),
        ("--workers 127.0.0.1:1", "needs --token-file"),
        ("--workers 127.0.0.1:1 --token-file none", "cannot read the token file"),
        ("--token-file none", "is for workers behind sockets"),
    ] {
        let out = place.line(&format!("sweep --trials 10 {options}"));
        assert!(out.code == Some(2) && out.stderr.contains(reason), "{options}: {}", out.stderr);
    }
    let out = place.line("worker --listen nowhere --token-file none");
    assert!(out.code == Some(2) && out.stderr.contains("cannot read the token file"), "{}", out.stderr);
}

#[test]
fn parts_of_a_study_merge_into_the_study_that_was_never_cut() {
    let place = place();
    for sampler in ["sobol", "grid"] {
        let sweep = format!(
            "{} --sampler {sampler}",
            SWEEP.replace("--trials 3000", "--trials 500").replace("--verdict off", "")
        );
        place.ok(&format!("{sweep} --out {sampler}"));
        let part = |number: u32| format!("{sweep} --part {number}/3 --out {sampler}-{number}");
        (1..3).for_each(|number| drop(place.ok(&part(number))));
        let merge = format!("study merge {sampler}-all {sampler}-2 {sampler}-1");
        place.refused(&merge, "of 3 parts these are missing: 3");
        // A part may be spread over workers too.
        place.ok(&format!("{} --workers local:2", part(3)));
        place.refused(&format!("{merge} {sampler}"), "it is a whole study, and no part of one");
        place.ok(&format!("{merge} {sampler}-3"));
        assert!(export(&place, sampler) == export(&place, &format!("{sampler}-all")));
        let best = |dir: &str| place.ok(&format!("study best {dir} --json")).stdout.replace(dir, "DIR");
        assert_eq!(best(sampler), best(&format!("{sampler}-all")));
        place.refused(&part(1).replace("--trials 500", "--trials 600"), "trials");
    }
    place.refused(&format!("{SWEEP} --sampler tpe --part 1/2 --out learns"), "learns from all trials");
    place.refused(&format!("{SWEEP} --sampler sobol --part 3/2 --out wrong"), "2/8");
}
