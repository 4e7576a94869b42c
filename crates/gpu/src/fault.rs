//! Faults to inject into a host device, so that tests see how programs react.

/// A fault of a host device. Counts begin at 1.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The `nth` allocation of device memory finds no memory. Later ones go well.
    OutOfMemory {
        /// Which allocation.
        nth: u64,
    },
    /// The `nth` launch of a kernel is refused. The device stays usable.
    LaunchFails {
        /// Name of the kernel.
        kernel: String,
        /// Which of its launches.
        nth: u64,
    },
    /// The `nth` launch of a kernel goes wrong while it runs: the device is lost, which the next synchronisation tells.
    KernelFails {
        /// Name of the kernel.
        kernel: String,
        /// Which of its launches.
        nth: u64,
    },
    /// The `nth` launch of a kernel never ends, and nothing behind it on its stream is ever done.
    KernelHangs {
        /// Name of the kernel.
        kernel: String,
        /// Which of its launches.
        nth: u64,
    },
    /// The device is lost with the first launch after so many.
    DeviceLost {
        /// Launches that still go well.
        after_launches: u64,
    },
    /// There is no compiler: nothing can be loaded.
    NoCompiler,
    /// Buffers cannot grow where they are, as with a driver that does not put memory behind addresses.
    NoGrowth,
}
