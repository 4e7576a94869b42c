//! `tidemill color generate`: graphs of known families.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use tidemill_coloring::generate::Family;

use crate::exit::ExitCode;

#[derive(Args)]
pub struct GenerateArgs {
    #[command(subcommand)]
    family: FamilyArgs,
    /// Seed.
    #[arg(long, value_name = "N", default_value_t = 1, global = true)]
    seed: u64,
    /// Write to this file [default: standard output].
    #[arg(long, value_name = "FILE", global = true)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Subcommand)]
enum FamilyArgs {
    /// Every pair of vertices is joined with the same probability.
    Random {
        #[arg(long, value_name = "N", default_value_t = 250)]
        vertices: usize,
        #[arg(long, value_name = "P", default_value_t = 0.5)]
        density: f64,
    },
    /// Classes of equal size hide a colouring, and all degrees are nearly the same.
    Flat {
        #[arg(long, value_name = "N", default_value_t = 300)]
        vertices: usize,
        #[arg(long, value_name = "K", default_value_t = 20)]
        colors: usize,
        #[arg(long, value_name = "P", default_value_t = 0.5)]
        density: f64,
    },
    /// Points in a square, joined if they are near each other.
    Geometric {
        #[arg(long, value_name = "N", default_value_t = 250)]
        vertices: usize,
        #[arg(long, value_name = "R", default_value_t = 0.2)]
        radius: f64,
    },
    /// Cliques laid over each other, after Leighton; exactly --colors are needed.
    Leighton {
        #[arg(long, value_name = "N", default_value_t = 450)]
        vertices: usize,
        #[arg(long, value_name = "K", default_value_t = 15)]
        colors: usize,
        #[arg(long, value_name = "M", default_value_t = 8000)]
        edges: usize,
    },
    /// Fields of a chess board, joined if a queen gets from one to the other.
    Queen {
        #[arg(long, value_name = "N", default_value_t = 8)]
        side: usize,
    },
    /// Cells of a Latin square, joined if they share a row, a column or a symbol.
    Latin {
        #[arg(long, value_name = "N", default_value_t = 10)]
        side: usize,
    },
}

/// Runs it.
pub fn run(args: &GenerateArgs) -> Result<ExitCode> {
    let family = match args.family {
        FamilyArgs::Random { vertices: n, density: p } => Family::Random { n, p },
        FamilyArgs::Flat { vertices: n, colors: k, density: p } => Family::Flat { n, k, p },
        FamilyArgs::Geometric { vertices: n, radius } => Family::Geometric { n, radius },
        FamilyArgs::Leighton { vertices: n, colors: k, edges: m } => Family::Leighton { n, k, m },
        FamilyArgs::Queen { side } => Family::Queen { side },
        FamilyArgs::Latin { side } => Family::Latin { side },
    };
    let instance = family.generate(args.seed)?;
    match &args.out {
        Some(path) => {
            std::fs::write(path, instance.dimacs())
                .with_context(|| format!("cannot write {}", path.display()))?;
            eprintln!("wrote {}: {} vertices, {} edges", path.display(), instance.n, instance.edges().len());
        }
        None => std::io::stdout().lock().write_all(instance.dimacs().as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}
