use super::rig::on_every_device;
use tidemill_gpu::{Device, GpuError, HostOptions, Purpose, StreamMode, StreamPool, StreamPoolOptions};

fn pool(device: &Device, streams: usize, mode: StreamMode) -> StreamPool {
    StreamPool::new(device, StreamPoolOptions { streams, mode, ..StreamPoolOptions::default() }).unwrap()
}

/// Places in the pool of what these calls give.
fn places(pool: &StreamPool, purpose: Option<Purpose>, n: usize) -> Vec<usize> {
    (0..n)
        .map(|_| {
            let stream = purpose.map_or_else(|| pool.next(), |purpose| pool.of(purpose));
            pool.streams().iter().position(|other| other.is_same(stream)).unwrap()
        })
        .collect()
}

#[test]
fn streams_come_in_turn() {
    on_every_device(|device| {
        let pool = pool(device, 3, StreamMode::Parallel);
        assert_eq!(places(&pool, None, 7), [0, 1, 2, 0, 1, 2, 0]);
    });
}

#[test]
fn every_purpose_has_its_streams() {
    on_every_device(|device| {
        let four = pool(device, 4, StreamMode::Parallel);
        assert_eq!(places(&four, Some(Purpose::Upload), 2), [0, 0]);
        assert_eq!(places(&four, Some(Purpose::Download), 2), [1, 1]);
        assert_eq!(places(&four, Some(Purpose::Compute), 4), [2, 3, 2, 3]);
        let two = pool(device, 2, StreamMode::Parallel);
        assert_eq!(places(&two, Some(Purpose::Upload), 1), places(&two, Some(Purpose::Download), 1));
        assert_eq!(places(&two, Some(Purpose::Compute), 3), [1, 1, 1]);
    });
}

#[test]
fn in_sequential_mode_there_is_one_stream() {
    on_every_device(|device| {
        for pool in [pool(device, 4, StreamMode::Sequential), pool(device, 1, StreamMode::Parallel)] {
            assert_eq!(pool.streams().len(), 1);
            for purpose in [None, Some(Purpose::Upload), Some(Purpose::Compute), Some(Purpose::Download)] {
                assert_eq!(places(&pool, purpose, 2), [0, 0]);
            }
        }
    });
}

#[test]
fn a_pool_without_streams_is_refused() {
    let options = StreamPoolOptions { streams: 0, ..StreamPoolOptions::default() };
    let made = StreamPool::new(&Device::host(HostOptions::default()), options);
    assert!(matches!(made, Err(GpuError::Misuse { .. })));
}
