//! Whose turn it is on the GPU, where tests of one binary run side by side.
//!
//! A test that holds work up on the device must be alone there: the driver lets `cuMemFree` and `cuModuleLoadData` of another test wait for
//! all work, with the context locked, so that the one who could end the waiting is never heard again.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static GPU: RwLock<()> = RwLock::new(());

/// Keeps all others away from the GPU until it is dropped.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    GPU.write().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps those away who must be alone.
pub fn beside_others() -> RwLockReadGuard<'static, ()> {
    GPU.read().unwrap_or_else(PoisonError::into_inner)
}
