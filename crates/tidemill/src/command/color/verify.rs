//! `tidemill color verify`: checks a colouring of any origin.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;
use tidemill_coloring::{Certificate, read_graph};

use tidemill_lab::number;

use crate::exit::ExitCode;

#[derive(Args)]
#[command(after_help = "Exit codes: 0 the colouring is proper, 1 it is not, 2 a file cannot be read.")]
pub struct VerifyArgs {
    /// The graph.
    #[arg(value_name = "GRAPH")]
    graph: PathBuf,
    /// The colouring: a .sol file, or one colour a line in the order of the vertices.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &VerifyArgs) -> Result<ExitCode> {
    let instance = read_graph(&args.graph)?;
    let certificate = Certificate::read(&args.file)?;
    let mut out = std::io::stdout().lock();
    let checked = certificate.check(&instance);
    if args.json {
        let answer = json!({
            "graph": instance.name,
            "vertices": instance.n,
            "edges": instance.edges().len(),
            "verified": checked.is_ok(),
            "k": checked.as_ref().ok().map(|verified| verified.k),
            "problem": checked.as_ref().err().map(ToString::to_string),
        });
        writeln!(out, "{answer:#}")?;
    }
    match checked {
        Ok(verified) => {
            if !args.json {
                let (k, m) = (verified.k as u64, instance.edges().len() as u64);
                let (k, m) = (number::counted(k, "colour"), number::counted(m, "edge"));
                writeln!(out, "proper: {k}, {}, {m} checked", super::vertices(instance.n))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(refutation) => {
            eprintln!("not proper: {}: {refutation}", args.file.display());
            Ok(ExitCode::from(1))
        }
    }
}
