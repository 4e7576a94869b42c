use super::rig::{add, kernel, launch, on_every_device};
use tidemill_gpu::Launch;

#[test]
fn a_stream_tells_how_much_of_the_device_its_launches_fill() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        assert_eq!(stream.take_load().share(), 0.0, "nothing was launched");
        let n_resident = kernel(device, "add").resident_blocks(128, 0);
        assert!(n_resident >= u64::from(device.info().multiprocessors), "{n_resident}");
        // Three blocks of 128 threads.
        let buffer = device.alloc::<u64>(300).unwrap();
        add(&stream, &buffer, 1).unwrap();
        let share = 3.0_f64.min(n_resident as f64) / n_resident as f64;
        assert_eq!(stream.take_load().share(), share);
        assert_eq!(stream.take_load().share(), 0.0, "it is told once");
        // As many as fit, and many more than that.
        for n_blocks in [n_resident, 5 * n_resident] {
            let args = super::rig::AddArgs { data: buffer.ptr(), amount: 1, n: 300, unused: 0 };
            launch(&stream, &kernel(device, "add"), Launch::blocks(n_blocks as u32, 128), &args).unwrap();
            assert_eq!(stream.take_load().share(), 1.0);
        }
        stream.synchronize().unwrap();
    });
}

#[test]
fn threads_and_shared_memory_decide_how_many_blocks_fit() {
    on_every_device(|device| {
        let kernel = kernel(device, "sum");
        let (few, many) = (kernel.resident_blocks(1024, 0), kernel.resident_blocks(32, 0));
        assert!(0 < few && few < many, "{few} of 1024 threads, {many} of 32");
        assert_eq!(kernel.resident_blocks(1024, 0), few, "it is kept");
        assert_eq!(few % u64::from(device.info().multiprocessors), 0);
    });
}
