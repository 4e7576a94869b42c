use super::rig::on_every_device;
use tidemill_gpu::{Context, ContextOptions, Device, GpuError, HostOptions, Purpose};

/// Places in the pool of what these calls give.
fn places(context: &Context, purpose: Purpose, n: usize) -> Vec<usize> {
    let place = |_| context.pool().position(context.pool().of(purpose).unwrap().number()).unwrap();
    (0..n).map(place).collect()
}

#[test]
fn every_purpose_has_its_streams() {
    use Purpose::{Compute, Download, Prepare, Upload};
    on_every_device(|device| {
        let five = Context::new(device, ContextOptions::parallel(5)).unwrap();
        assert_eq!(places(&five, Upload, 2), [0, 0]);
        assert_eq!(places(&five, Download, 2), [1, 1]);
        assert_eq!(places(&five, Compute, 5), [2, 3, 4, 2, 3]);
        assert_eq!(places(&five, Prepare, 1), [5]);
        let two = Context::new(device, ContextOptions::parallel(2)).unwrap();
        assert_eq!([Upload, Download, Compute].map(|purpose| places(&two, purpose, 1)[0]), [0, 0, 1]);
        let one = Context::new(device, ContextOptions::parallel(1)).unwrap();
        assert_eq!([Upload, Download, Compute].map(|purpose| places(&one, purpose, 1)[0]), [0, 0, 0]);
    });
}

#[test]
fn every_lane_has_a_stream_of_its_own_and_keeps_it() {
    on_every_device(|device| {
        let context = Context::new(device, ContextOptions::parallel(2)).unwrap();
        let lanes = [0, 1, 2, 1].map(|lane| context.pool().lane(lane).unwrap().number());
        assert_eq!(
            lanes.map(|number| context.pool().position(number)),
            [1, 2, 3, 2].map(Some),
            "behind transfers"
        );
        let beside = [0, 1, 0].map(|lane| context.pool().beside(lane).unwrap().number());
        assert_eq!(
            beside.map(|number| context.pool().position(number)),
            [3, 4, 3].map(Some),
            "behind what prepares"
        );
        assert!(beside.iter().all(|number| !lanes.contains(number)), "{beside:?} {lanes:?}");
    });
}

#[test]
fn in_sequential_mode_there_is_one_stream() {
    on_every_device(|device| {
        let context =
            Context::new(device, ContextOptions { streams: 4, ..ContextOptions::sequential() }).unwrap();
        assert_eq!(context.options().n_lanes(), 1);
        for purpose in [Purpose::Upload, Purpose::Compute, Purpose::Prepare, Purpose::Download] {
            assert_eq!(places(&context, purpose, 2), [0, 0]);
        }
        let pool = context.pool();
        for stream in [pool.lane(3).unwrap(), pool.beside(3).unwrap()] {
            assert_eq!(pool.position(stream.number()), Some(0));
        }
    });
}

#[test]
fn a_context_without_streams_is_refused() {
    let made = Context::new(&Device::host(HostOptions::default()), ContextOptions::parallel(0));
    assert!(matches!(made, Err(GpuError::Misuse { .. })));
}

#[test]
fn a_context_offers_its_share_of_the_memory() {
    let device = Device::host(HostOptions { memory_bytes: 1 << 20, ..HostOptions::default() });
    let options = ContextOptions { memory_fraction: 0.25, ..ContextOptions::parallel(2) };
    assert_eq!(Context::new(&device, options).unwrap().free_bytes().unwrap(), 1 << 18);
}
