//! What a colouring run prints.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};
use tidemill_coloring::{Ending, Instance, Outcome, PhaseTotal, verify};
use tidemill_telemetry::DeviceMode;

use super::ColorArgs;
use crate::table::{Screen, Table};
use tidemill_lab::number;

/// Prints the outcome, after the verifier has checked it once more.
pub fn print(
    args: &ColorArgs,
    instance: &Instance,
    outcome: &Outcome,
    seconds: f64,
    screen: &Screen,
) -> Result<()> {
    verified(instance, outcome)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", answer(instance, outcome, seconds))?;
    } else {
        write!(out, "{}", text(instance, outcome, screen))?;
    }
    out.flush()?;
    Ok(())
}

/// Has the verifier check the colouring once more.
pub fn verified(instance: &Instance, outcome: &Outcome) -> Result<()> {
    let found = verify(instance, &outcome.colors).map(|verified| verified.k);
    anyhow::ensure!(found == Ok(outcome.k), "the colouring did not pass the verifier: {found:?}");
    Ok(())
}

/// The outcome as JSON.
pub fn answer(instance: &Instance, outcome: &Outcome, seconds: f64) -> Value {
    json!({
        "graph": instance.name,
        "vertices": instance.n,
        "edges": instance.edges().len(),
        "k": outcome.k,
        "verified": true,
        "lower_bound": outcome.bound,
        "is_optimal": outcome.k == outcome.bound,
        "time_s": seconds,
        "found_s": outcome.found_s,
        "found_by": outcome.by.name(),
        "ended": outcome.ending,
        "passes": outcome.passes,
        "iterations": outcome.iterations,
        "phases": outcome.phases.iter().map(phase).collect::<Vec<Value>>(),
        "coloring": outcome.colors,
    })
}

fn phase(total: &PhaseTotal) -> Value {
    json!({
        "phase": total.kind.name(),
        "device": total.device,
        "slices": total.slices,
        "iterations": total.iterations,
        "seconds": total.seconds,
        "it_per_s": speed(total),
        "improvements": total.improvements,
        "k": total.k,
    })
}

fn speed(total: &PhaseTotal) -> Option<f64> {
    (total.iterations > 0 && total.seconds > 0.0).then(|| total.iterations as f64 / total.seconds)
}

fn text(instance: &Instance, outcome: &Outcome, screen: &Screen) -> String {
    let proof = match outcome.k == outcome.bound {
        true => "which no colouring can beat".to_owned(),
        false => format!("at least {} are needed", outcome.bound),
    };
    let mut text = format!(
        "{}: {}, verified; {proof}\nfound by {} after {:.2} s; ended after {:.2} s and {} iterations: {}\n\n",
        instance.name,
        number::counted(outcome.k as u64, "colour"),
        outcome.by.name(),
        outcome.found_s,
        outcome.seconds,
        number::count(outcome.iterations),
        outcome.ending.words()
    );
    let mut table =
        Table::new(["phase", "on", "colours", "improved", "slices", "iterations", "it/s", "seconds"]);
    for total in &outcome.phases {
        let on = match &total.device {
            DeviceMode::Gpu { stream } => format!("GPU, stream {stream}"),
            _ => "CPU".to_owned(),
        };
        let dash = || "–".to_owned();
        table.row([
            total.kind.name().to_owned(),
            on,
            total.k.map_or_else(dash, |k| k.to_string()),
            total.improvements.to_string(),
            total.slices.to_string(),
            number::count(total.iterations),
            speed(total).map_or_else(dash, |speed| format!("{speed:.1e}")),
            format!("{:.2}", total.seconds),
        ]);
    }
    text += &table.render(2, screen);
    if outcome.ending == Ending::Stopped {
        text += "\nstopped: this is the best so far\n";
    }
    text
}
