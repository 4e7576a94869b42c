use super::*;

fn host() -> Device {
    Device::host(HostOptions::default())
}

fn unavailable(what: &str) -> GpuError {
    GpuError::Unavailable { what: what.into(), cure: "get one".into() }
}

#[test]
fn choices_are_read() {
    let read = |text: &str| text.parse::<DeviceChoice>();
    assert_eq!(read("auto"), Ok(DeviceChoice::Auto));
    assert_eq!(read("cpu"), Ok(DeviceChoice::Cpu));
    assert_eq!(read("cuda"), Ok(DeviceChoice::Cuda(None)));
    assert_eq!(read("cuda:1"), Ok(DeviceChoice::Cuda(Some(1))));
    assert_eq!(read("emulated"), Ok(DeviceChoice::Emulated(1)));
    assert_eq!(read("emulated:3"), Ok(DeviceChoice::Emulated(3)));
    for wrong in ["", "gpu", "cuda:", "cuda:x", "cpu:0", "auto:1", "CUDA"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn without_a_driver_auto_takes_the_cpu_and_says_why() {
    let devices = Devices::auto(Err(unavailable("no driver")), false);
    assert!(devices.devices.is_empty() && devices.note.is_none() && devices.unusable.is_none());
    assert!(devices.shown().starts_with("the CPU, ") && devices.shown().ends_with("no GPU driver)"));
    assert!(!Devices::of(Vec::new(), false).shown().contains("driver"), "who asks for the CPU knows why");
}

#[test]
fn a_gpu_that_cannot_be_used_is_worth_a_note_and_is_recorded() {
    let devices = Devices::auto(Err(unavailable("NVRTC was not found")), true);
    assert!(devices.devices.is_empty());
    assert_eq!(devices.unusable.as_deref(), Some("NVRTC was not found"));
    let note = devices.note.unwrap();
    assert!(note.contains("NVRTC was not found") && note.contains("tidemill doctor"), "{note}");
}

#[test]
fn auto_takes_all_devices_and_may_leave_them() {
    let found = (0..2).map(|at| (at, Ok(host()))).collect::<Vec<_>>();
    let devices = Devices::auto(usable(found.into_iter()), true);
    assert!(devices.may_fall_back && devices.devices.len() == 2 && devices.note.is_none());
    assert_eq!(devices.shown(), "host and 1 more");
}

#[test]
fn an_old_card_beside_a_good_one_is_left_out_with_a_note() {
    let old = || Err(unavailable("a card has compute capability 5.2; the least that can be used is 6.0"));
    let (devices, note) = usable([(0, Ok(host())), (1, old())].into_iter()).unwrap();
    assert_eq!(devices.len(), 1);
    let note = note.unwrap();
    assert!(note.contains("device 1: a card has compute capability 5.2") && !note.contains('\n'), "{note}");
    assert_eq!(usable([(0, old())].into_iter()).err(), old().err());
}

#[test]
fn devices_are_waited_for_as_long_as_they_may() {
    let limit = |limit: Option<Duration>| {
        Devices::of(vec![host()], true).with_wait_limit(limit).devices[0].wait_limit()
    };
    assert_eq!(limit(Some(Duration::from_secs(90))), Duration::from_secs(90));
    assert_eq!(limit(None), Duration::MAX, "a host device as it is");
}
