use proptest::prelude::*;
use tidemill_gpu::{ContextOptions, Device, Fault, HostOptions};
use tidemill_market::atc::{AtcOptions, Preset};
use tidemill_scan::{
    DeviceOptions, Overlap, RecordContext, ScanError, ScanEvent, ScanOptions, Scanner, Stage, StageSpan,
};

use crate::rig::{all_signals, assert_same, host, on_cpu, on_device, ragged, symbols, walk};

fn streams(streams: usize) -> DeviceOptions {
    DeviceOptions { context: ContextOptions::parallel(streams), ..DeviceOptions::default() }
}

#[test]
fn any_number_of_streams_finds_what_the_cpu_finds() {
    let all = ragged();
    for history in [false, true] {
        let options = ScanOptions { history, ..all_signals() };
        let expected = on_cpu(&options, &all);
        for n in 1..=16 {
            let device_options = DeviceOptions { batch_symbols: Some(1 + n % 5), ..streams(n) };
            let Some(mut scanner) = on_device(&options, &[host(&[])], &device_options) else { return };
            let found = scanner.scan(&symbols(&all), |_| ()).unwrap();
            assert_same(&found, &expected, &format!("{n} streams, history {history}"));
        }
    }
}

#[test]
fn every_preset_and_window_has_the_bits_of_the_cpu() {
    let all = ragged();
    for preset in [Preset::V2, Preset::Head, Preset::Pine] {
        let atc = AtcOptions { cutout: 5, ..AtcOptions::preset(preset) };
        let options = ScanOptions { atc, bars: Some(50), history: true, ..all_signals() };
        let Some(mut scanner) = on_device(&options, &[host(&[])], &streams(3)) else { return };
        let found = scanner.scan(&symbols(&all), |_| ()).unwrap();
        assert_same(&found, &on_cpu(&options, &all), &preset.to_string());
        assert!(!found.rows.is_empty());
    }
}

#[test]
fn a_scanner_scans_again_without_asking_for_memory() {
    let options = all_signals();
    let device = host(&[]);
    let Some(mut scanner) = on_device(&options, std::slice::from_ref(&device), &streams(4)) else { return };
    let all = ragged();
    let expected = on_cpu(&options, &all);
    let mut memory = None;
    for turn in 0..20 {
        assert_same(&scanner.scan(&symbols(&all), |_| ()).unwrap(), &expected, &format!("turn {turn}"));
        if turn >= 2 {
            let now = (device.free_bytes().unwrap(), device.events().created());
            assert_eq!(*memory.get_or_insert(now), now, "turn {turn}");
        }
    }
    // Longer symbols than before need a longer table of growth.
    let longer = vec![("LONG".to_string(), walk(9, 500)), ("SHORT".to_string(), walk(8, 40))];
    assert_same(&scanner.scan(&symbols(&longer), |_| ()).unwrap(), &on_cpu(&options, &longer), "longer");
    let nothing = scanner.scan(&[], |_| ()).unwrap();
    assert!(nothing.rows.is_empty() && nothing.skipped.is_empty());
}

#[test]
fn several_devices_share_the_symbols() {
    let all = ragged();
    let devices = [host(&[]), host(&[]), host(&[])];
    let device_options = DeviceOptions { batch_symbols: Some(2), ..streams(2) };
    let Some(mut scanner) = on_device(&all_signals(), &devices, &device_options) else { return };
    let mut done = Vec::new();
    let found = scanner.scan(&symbols(&all), |event| {
        if let ScanEvent::Batch(batch) = event {
            done.push((batch.done, batch.number));
        }
    });
    assert_same(&found.unwrap(), &on_cpu(&all_signals(), &all), "three devices");
    assert!(done.is_sorted() && done.len() > 10, "{done:?}");
}

/// Scans on a device and says how often batches became smaller.
fn shrunk(device: Device, device_options: &DeviceOptions) -> Option<usize> {
    let all = ragged();
    let options = ScanOptions { history: true, ..all_signals() };
    let mut scanner = on_device(&options, &[device], device_options)?;
    let mut limits: Vec<usize> = Vec::new();
    let found = scanner.scan(&symbols(&all), |event| {
        if let ScanEvent::Shrunk { device: 0, symbols, reason } = event {
            assert!(reason.contains("out of device memory"), "{reason}");
            limits.push(symbols);
        }
    });
    assert_same(&found.unwrap(), &on_cpu(&options, &all), "shrunk");
    assert!(limits.is_sorted_by(|a, b| a > b), "{limits:?}");
    Some(limits.len())
}

#[test]
fn memory_that_does_not_suffice_makes_batches_smaller() {
    // An allocation of a lane fails once, whichever it is. The first ones are those of the growth table and of empty buffers.
    let mut n_shrunk = 0;
    for nth in 2..9 {
        let Some(n) = shrunk(host(&[Fault::OutOfMemory { nth }]), &streams(3)) else { return };
        n_shrunk += n;
    }
    assert_eq!(n_shrunk, 7);
    // A device with room for the working memory of 32 symbols, not for that of 45.
    let small = Device::host(HostOptions { memory_bytes: 192 << 10, ..HostOptions::default() });
    let greedy = DeviceOptions {
        context: ContextOptions { memory_fraction: 1.0, ..ContextOptions::parallel(1) },
        batch_symbols: Some(45),
    };
    assert!(shrunk(small, &greedy).unwrap() >= 1);
}

#[test]
fn a_device_without_room_for_one_symbol_is_an_error() {
    let all = ragged();
    let tiny =
        Device::host(HostOptions { memory_bytes: 2 << 10, name: "tiny".into(), ..HostOptions::default() });
    let Some(mut scanner) = on_device(&all_signals(), &[tiny], &streams(2)) else { return };
    let error = scanner.scan(&symbols(&all), |_| ()).unwrap_err();
    assert!(
        matches!(&error, ScanError::Device { device, error } if device == "tiny" && error.is_out_of_memory())
    );
}

#[test]
fn a_refused_launch_ends_one_scan_and_a_lost_device_all() {
    let all = ragged();
    let expected = on_cpu(&all_signals(), &all);
    let device_options = DeviceOptions { batch_symbols: Some(6), ..streams(4) };
    let device = host(&[Fault::LaunchFails { kernel: "atc_fused".into(), nth: 3 }]);
    let Some(mut scanner) = on_device(&all_signals(), &[device], &device_options) else { return };
    let error = scanner.scan(&symbols(&all), |_| ()).unwrap_err().to_string();
    assert!(error.contains("`atc_fused` could not be launched"), "{error}");
    assert_same(&scanner.scan(&symbols(&all), |_| ()).unwrap(), &expected, "after a refused launch");

    let device = host(&[Fault::DeviceLost { after_launches: 2 }]);
    let mut scanner = on_device(&all_signals(), &[device], &device_options).unwrap();
    for _ in 0..2 {
        let error = scanner.scan(&symbols(&all), |_| ()).unwrap_err();
        assert!(matches!(&error, ScanError::Device { error, .. } if error.is_lost()), "{error}");
    }
}

#[test]
fn stages_run_in_order_on_the_streams_that_there_are() {
    let all = ragged();
    let device_options = DeviceOptions { batch_symbols: Some(4), ..streams(5) };
    let Some(mut scanner) = on_device(&all_signals(), &[host(&[])], &device_options) else { return };
    let mut spans: Vec<StageSpan> = Vec::new();
    let (mut n_records, mut ended) = (0, None);
    scanner
        .scan(&symbols(&all), |event| {
            n_records += event.to_events(&RecordContext { run: "r".into(), fallback: None }).len();
            let batch = match event {
                ScanEvent::Batch(batch) => batch,
                ScanEvent::DeviceDone { device: 0, statistics } => {
                    ended = Some(statistics);
                    return;
                }
                other => panic!("{other:?}"),
            };
            let stages: Vec<Stage> = batch.stages.iter().map(|span| span.stage).collect();
            assert_eq!(stages, [Stage::Upload, Stage::Kernel, Stage::Download]);
            assert!(batch.stages.windows(2).all(|pair| pair[0].end_ms <= pair[1].begin_ms + 1e-6));
            spans.extend(batch.stages);
        })
        .unwrap();
    assert!(spans.iter().all(|span| span.device == Some(0) && span.stream < 5));
    let used = |stage: Stage| {
        let streams = spans.iter().filter(|span| span.stage == stage).map(|span| span.stream);
        streams.collect::<std::collections::BTreeSet<usize>>().into_iter().collect::<Vec<usize>>()
    };
    assert_eq!(
        (used(Stage::Upload), used(Stage::Kernel), used(Stage::Download)),
        (vec![0], vec![2, 3, 4], vec![1])
    );
    assert_eq!(n_records, spans.len() + 1);
    let statistics = ended.unwrap();
    assert_eq!(statistics.iterations as usize, spans.len() / 3);
    assert!(statistics.busy_ms <= statistics.wall_ms && statistics.fill > 0.0, "{statistics:?}");
    let overlap = Overlap::of(&spans);
    assert!(overlap.wall_ms >= overlap.kernel_ms && overlap.kernel_ms > 0.0, "{overlap:?}");
}

#[test]
fn settings_of_a_device_are_checked() {
    let nothing = ContextOptions { memory_fraction: 0.0, ..ContextOptions::parallel(2) };
    for (device_options, what) in [
        (streams(0), "streams = 0"),
        (streams(17), "streams = 17"),
        (DeviceOptions { batch_symbols: Some(0), ..streams(2) }, "batch_symbols"),
        (DeviceOptions { context: nothing, ..streams(2) }, "memory_fraction = 0"),
    ] {
        let error = Scanner::on_devices(all_signals(), &[], &device_options).err().unwrap().to_string();
        assert!(error.contains(what), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_cut_changes_a_bit(
        lengths in prop::collection::vec(0_usize..130, 1..40),
        n_streams in 1_usize..=16,
        batch in 1_usize..40,
        history: bool,
    ) {
        let all: Vec<(String, Vec<f64>)> =
            lengths.iter().enumerate().map(|(at, &n)| (at.to_string(), walk(at as u64, n))).collect();
        let options = ScanOptions { history, ..all_signals() };
        let device_options = DeviceOptions { batch_symbols: Some(batch), ..streams(n_streams) };
        if let Some(mut scanner) = on_device(&options, &[host(&[])], &device_options) {
            let found = scanner.scan(&symbols(&all), |_| ()).unwrap();
            assert_same(&found, &on_cpu(&options, &all), "random cuts");
        }
    }
}
