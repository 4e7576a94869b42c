//! The CUDA executor against the CPU executor, bit for bit.
//!
//! Where there is a GPU the kernels run on it, else under emulation on the host. What is missing is said;
//! `TIDEMILL_REQUIRE_GPU=1`, `TIDEMILL_REQUIRE_EMULATION=1` and `TIDEMILL_REQUIRE_NVRTC=1` make it a failure.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use rayon::prelude::*;
use tidemill_backtest::cuda::{column_source, device_source};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{Engine, EngineOptions, Overrides, Strategy};
use tidemill_gpu::{Device, GpuError, HostOptions, Source};
use tidemill_market::Universe;
use tidemill_market::synth::lcg;

use crate::case::Case;

/// Says what is missing, which is a failure if the variable says so.
fn is_missing(error: &GpuError, required: &str) {
    let required_is_set = std::env::var_os(required).is_some_and(|value| value == "1");
    assert!(!required_is_set, "{required}=1, but: {error}");
    println!("skipped: {error}");
}

/// The GPU and true, or the host in its place; none where kernels cannot be compiled for either.
fn device() -> Option<(Device, bool)> {
    match Device::cuda(0) {
        Ok(device) => return Some((device, true)),
        Err(error) => is_missing(&error, "TIDEMILL_REQUIRE_GPU"),
    }
    let host = Device::host(HostOptions::default());
    match host.load(&Source::splice("nothing.cu", &[])) {
        Ok(_) => Some((host, false)),
        Err(error @ GpuError::Unavailable { .. }) => {
            is_missing(&error, "TIDEMILL_REQUIRE_EMULATION");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn random_strategies_give_the_same_bits() {
    let Some((device, is_gpu)) = device() else { return };
    // A strategy is compiled for each case, which takes its time.
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        Config::default().cases
    } else if is_gpu {
        60
    } else {
        12
    };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let result = TestRunner::new(config).run(&vec(any::<u32>(), 300..700), |numbers| {
        Case::new(&numbers).check_device(&device).map_err(TestCaseError::fail)
    });
    if let Err(error) = result {
        let text = error.to_string();
        panic!("{}", &text[..text.len().min(6_000)]);
    }
}

#[test]
fn every_shipped_strategy_compiles_for_a_gpu() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../strategies");
    let universe = Universe { symbols: vec![lcg(300)] };
    let mut sources = vec![column_source()];
    // Where only the binary is, there is nothing to read.
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let strategy = Strategy::open(&entry.unwrap().path(), &Overrides::default()).unwrap();
        let segments = Layout::default().segments(&universe).unwrap();
        let engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
        sources.push(device_source(&engine, &strategy));
    }
    let compiled: Result<Vec<Vec<u8>>, GpuError> =
        sources.par_iter().map(|source| tidemill_gpu::compile(source, "sm_90")).collect();
    match compiled {
        Ok(compiled) => assert!(compiled.iter().all(|binary| !binary.is_empty())),
        Err(error @ GpuError::Unavailable { .. }) => is_missing(&error, "TIDEMILL_REQUIRE_NVRTC"),
        Err(error) => panic!("{error}"),
    }
}
