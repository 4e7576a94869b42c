//! Processes that a test starts, watches and ends. What a test waits for is something that happened, never an amount of time: the limits
//! here only end a test that hangs.

use std::io::Read;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{CommandOutput, Place};

/// Longer than anything takes on the slowest machine.
const LONG: Duration = Duration::from_secs(600);

/// Starts the program; what it says is kept.
pub fn spawn(place: &Place, line: &str) -> Child {
    let args: Vec<&str> = line.split_whitespace().collect();
    place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Starts the program and discards its output.
pub fn spawn_silent(place: &Place, line: &str) -> Child {
    let args: Vec<&str> = line.split_whitespace().collect();
    place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until something is there.
pub fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_there() {
        assert!(began.elapsed() < LONG, "{what} never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What a process said in the end. It is read meanwhile, because a pipe that is full would hold the process up.
pub fn ended(mut child: Child) -> CommandOutput {
    let read = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut said = Vec::new();
            if let Some(mut pipe) = pipe {
                pipe.read_to_end(&mut said).unwrap();
            }
            said
        })
    };
    let stdout = read(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    let stderr = read(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let began = Instant::now();
    let mut is_late = false;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if !is_late && began.elapsed() > LONG => {
                child.kill().unwrap();
                is_late = true;
            }
            None => {}
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let [stdout, stderr] = [stdout, stderr].map(|reader| reader.join().unwrap());
    let said = CommandOutput::new(Output { status, stdout, stderr });
    assert!(!is_late, "did not end: {}", said.stderr);
    said
}

/// Sends a signal by its name, such as `INT`.
#[cfg(unix)]
pub fn signal(child: &Child, name: &str) {
    let sent =
        std::process::Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.unwrap().success(), "{name}");
}

/// Kills a process; returns whether it was still running.
pub fn kill(mut child: Child) -> bool {
    let was_at_work = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    // Between the look and the signal it may have come to its end.
    let status = child.wait().unwrap();
    was_at_work && !status.success()
}

/// Tries in one folder after the other until a process could be interrupted before it came to its end, which a machine that is busy elsewhere
/// may prevent; gives the name of that folder.
pub fn caught(mut attempt: impl FnMut(&str) -> bool) -> String {
    for nth in 0..20 {
        let folder = format!("caught-{nth}");
        if attempt(&folder) {
            return folder;
        }
    }
    panic!("every run ended before it could be interrupted");
}
