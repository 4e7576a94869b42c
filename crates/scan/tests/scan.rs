//! Scans of generated symbols: what is found, in which order, and that nothing else decides it.

#[path = "scan/device.rs"]
mod device;
#[path = "scan/outcome.rs"]
mod outcome;
#[path = "scan/rig.rs"]
mod rig;
#[path = "scan/write.rs"]
mod write;
