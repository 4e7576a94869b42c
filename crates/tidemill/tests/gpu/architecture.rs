//! Every kernel compiled for every generation of cards that can be used, by both generations of the compiler.
//!
//! NVRTC 12.9 is the last one that knows Pascal and Volta; 13.0 begins with Turing. `cargo xtask test` installs both and names their
//! folders in `TIDEMILL_NVRTC_12` and `TIDEMILL_NVRTC_13`. Machine code is made, not PTX alone: shared memory and registers that an
//! architecture does not have are noticed by the assembler.
//!
//! That takes some minutes of two cores, and nothing for what was compiled before: code is kept where programs keep theirs, under a
//! hash of all that decides it. What does not compile is not kept.
//!
//! The code of strategies is generated. One strategy per architecture is compiled, in turn, so that every one is met; the largest is left to the
//! test of the executor, which compiles all of them for one architecture.

use std::path::Path;

use rayon::prelude::*;
use tidemill_backtest::cuda::{column_source, device_sources};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Engine, EngineOptions, Overrides, Strategy};
use tidemill_coloring::device as coloring;
use tidemill_gpu::{GpuError, LEAST_ARCHITECTURE, Nvrtc, Source};
use tidemill_market::atc;

/// The architectures that docs/gpu.md names.
const ARCHITECTURES: [u32; 10] = [60, 61, 70, 75, 80, 86, 89, 90, 100, 120];

/// NVRTC 13 begins with this one.
const LEAST_OF_13: u32 = 75;

/// The largest strategy: half a minute for each architecture.
const LARGEST: &str = "perps-trend.toml";

/// The NVRTC of a version, or why there is none.
fn nvrtc(variable: &str, version: &str) -> Result<Nvrtc, String> {
    let folder = std::env::var_os(variable).filter(|folder| !folder.is_empty()).ok_or_else(|| {
        format!(
            "{variable} names no folder with NVRTC {version}; `cargo xtask test` installs it and sets that"
        )
    })?;
    let nvrtc = Nvrtc::in_folder(Path::new(&folder)).map_err(|error| format!("{variable}: {error}"))?;
    if nvrtc.info().version != version {
        return Err(format!("{variable} names NVRTC {}, not {version}", nvrtc.info().version));
    }
    Ok(nvrtc)
}

/// What does not depend on a strategy, the slowest first.
fn fixed_sources() -> Vec<Source> {
    let overlap = ("overlap.cu", include_str!("../../../bench/src/overlap.cu"));
    let tabu = [1, 2, 4, 8].map(coloring::tabu_source);
    let mut sources = vec![atc::device::source(), column_source()];
    sources.extend(tabu);
    sources.extend([
        coloring::source(),
        Source::splice("overlap", &[overlap]),
        crate::runtime::rig::source(),
    ]);
    sources
}

/// The code of the shipped strategies, in the order of their names. None where only the binary is.
fn strategy_sources() -> Vec<Vec<Source>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../strategies");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name != LARGEST));
    paths.sort();
    let universe = tidemill_lab::shipped::universe(300);
    let sources = |path: &std::path::PathBuf| {
        let strategy = Strategy::open(path, &Overrides::default()).unwrap();
        let segments = Layout::default().segments(&universe).unwrap();
        let engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
        device_sources(&engine, &strategy)
    };
    paths.iter().map(sources).collect()
}

/// Compiles everything for these architectures.
fn compile_all(nvrtc: &Nvrtc, architectures: &[u32]) {
    let (fixed, strategies) = (fixed_sources(), strategy_sources());
    let mut work: Vec<(u32, &Source)> =
        fixed.iter().flat_map(|source| architectures.iter().map(move |number| (*number, source))).collect();
    for (at, number) in architectures.iter().enumerate() {
        let of_one = strategies.get(at % strategies.len().max(1)).into_iter().flatten();
        work.extend(of_one.map(|source| (*number, source)));
    }
    let problems: Vec<String> = work
        .par_iter()
        .filter_map(|(number, source)| match nvrtc.compile_kept(source, &format!("sm_{number}")) {
            Ok(code) if !code.is_empty() => None,
            Ok(_) => Some(format!("sm_{number}: {} became nothing", source.name)),
            Err(error) => {
                let text = error.to_string();
                Some(format!("sm_{number}: {}", text.lines().take(6).collect::<Vec<_>>().join("\n  ")))
            }
        })
        .collect();
    let shown = problems.iter().take(4).cloned().collect::<Vec<_>>().join("\n");
    assert!(problems.is_empty(), "{} of {} do not compile:\n{shown}", problems.len(), work.len());
}

/// Compiles with a version, or says why not, which is a failure if `TIDEMILL_REQUIRE_NVRTC=1`.
fn check(variable: &str, version: &str, architectures: &[u32]) {
    match nvrtc(variable, version) {
        Ok(nvrtc) => compile_all(&nvrtc, architectures),
        Err(reason) => {
            tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_NVRTC", reason);
        }
    }
}

#[test]
fn every_kernel_compiles_for_every_architecture_with_nvrtc_12() {
    check("TIDEMILL_NVRTC_12", "12.9", &ARCHITECTURES);
}

#[test]
fn every_kernel_compiles_for_turing_and_later_with_nvrtc_13() {
    let known: Vec<u32> = ARCHITECTURES.into_iter().filter(|number| *number >= LEAST_OF_13).collect();
    check("TIDEMILL_NVRTC_13", "13.0", &known);
}

#[test]
fn what_is_compiled_for_begins_with_the_least_that_can_be_used() {
    assert_eq!(ARCHITECTURES[0], LEAST_ARCHITECTURE);
    // An architecture that a compiler does not know is an error that names it.
    if let Ok(nvrtc) = nvrtc("TIDEMILL_NVRTC_13", "13.0") {
        let older: Vec<u32> = ARCHITECTURES.into_iter().filter(|number| *number < LEAST_OF_13).collect();
        assert!(
            nvrtc.info().architectures.iter().all(|number| *number >= LEAST_OF_13 && !older.contains(number))
        );
        let error = nvrtc.compile(&Source::splice("nothing.cu", &[]), "sm_61").unwrap_err();
        assert!(matches!(&error, GpuError::Compile { .. }), "{error}");
    }
}
