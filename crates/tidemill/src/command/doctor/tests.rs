use super::*;
use tidemill_gpu::Fault;

fn host(faults: &[Fault]) -> Device {
    Device::host(HostOptions { faults: faults.to_vec(), ..HostOptions::default() })
}

#[test]
fn what_is_missing_comes_with_its_cure() {
    let mut report = DoctorReport::default();
    report.add("driver", CheckState::Ok, "for CUDA 13.0");
    report.add_error(
        "NVRTC",
        &GpuError::Unavailable { what: "not found".into(), cure: "pip install it".into() },
    );
    assert!(!report.is_usable());
    assert_eq!(
        text(&report),
        "driver  ok       for CUDA 13.0\nNVRTC   missing  not found\n                 cure: pip install it\n"
    );
    let answer = json(&report, "no");
    assert_eq!(answer["checks"][1]["cure"], "pip install it");
    assert_eq!(answer["usable"], false);
}

#[test]
fn a_device_without_a_compiler_fails_its_round_trip_with_a_cure() {
    let mut report = DoctorReport::default();
    round_trips(&mut report, &GpuSettings::default(), &[host(&[Fault::NoCompiler])]);
    assert_eq!(report.checks[0].state, CheckState::Missing);
    assert!(report.checks[0].cure.is_some());
}

#[test]
fn the_least_capability_is_named_with_that_of_the_compiler() {
    let nvrtc = |version: &str, architectures: &[u32]| NvrtcInfo {
        version: version.into(),
        file: PathBuf::new(),
        architectures: architectures.into(),
    };
    let of_kernels = "a GPU needs at least compute capability 6.0";
    assert_eq!(least_capability(None), of_kernels);
    assert_eq!(least_capability(Some(&nvrtc("12.9", &[50, 52, 60, 90]))), of_kernels);
    let text = least_capability(Some(&nvrtc("13.0", &[75, 80, 90])));
    assert_eq!(text, format!("{of_kernels}, with NVRTC 13.0 7.5"));
}

#[test]
fn a_card_says_its_capability() {
    let info = DeviceInfo { name: "a card".into(), architecture: "sm_61".into(), ..host(&[]).info().clone() };
    assert!(shown(&info).contains("sm_61, compute capability 6.1, "), "{}", shown(&info));
    assert!(!shown(host(&[]).info()).contains("capability"));
}

#[test]
fn a_cache_that_cannot_be_written_is_only_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let mut report = DoctorReport::default();
    cache(&mut report, Some(file.join("kernels")));
    cache(&mut report, None);
    cache(&mut report, Some(folder.path().join("new")));
    let states: Vec<CheckState> = report.checks.iter().map(|check| check.state).collect();
    assert_eq!(states, [CheckState::Warning, CheckState::Warning, CheckState::Ok]);
    assert!(report.is_usable());
}
