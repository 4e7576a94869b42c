//! Colours a graph with all options on one line, for measuring: FILE TARGET SECONDS SEED [PHASES].

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tidemill_coloring::phase::PhaseKind;
use tidemill_coloring::{ColoringError, Controller, Moment, Observer, Options, read_graph};

struct Loud;

impl Observer for Loud {
    fn hear(&mut self, moment: Moment<'_>) -> Result<(), ColoringError> {
        match moment {
            Moment::Improved { k, by, pass, iterations, .. } => {
                println!("  k={k} by {} in pass {pass} after {iterations} iterations", by.name());
            }
            Moment::Ended { pass, k, is_solved } if !is_solved => println!("  pass {pass}: k={k} failed"),
            _ => {}
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, target, seconds, seed, rest @ ..] = &args[..] else {
        return Err("FILE TARGET SECONDS SEED [PHASES]".into());
    };
    let instance = read_graph(Path::new(file))?;
    let mut options = Options {
        target: Some(target.parse::<usize>()?).filter(|target| *target > 0),
        time: Some(Duration::from_secs_f64(seconds.parse()?)),
        seed: seed.parse()?,
        ..Options::default()
    };
    if let Some(names) = rest.first() {
        options.phases = names.split(',').map(str::parse).collect::<Result<Vec<PhaseKind>, _>>()?;
    }
    let outcome = Controller::new(&instance, options)?.run(&mut Loud, &AtomicBool::new(false))?;
    let (k, found_s, by) = (outcome.k, outcome.found_s, outcome.by.name());
    println!(
        "{}: k={k} bound={} {found_s:.2} s by {by}; {:?} {:.2} s",
        instance.name, outcome.bound, outcome.ending, outcome.seconds
    );
    for total in &outcome.phases {
        let speed = total.iterations as f64 / total.seconds / 1e6;
        println!(
            "  {:10} {:6} slices {:12} iterations {:8.2} s {speed:8.3} M it/s",
            total.kind.name(),
            total.slices,
            total.iterations,
            total.seconds
        );
    }
    Ok(())
}
