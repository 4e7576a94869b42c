//! Kernel sources, and what becomes of them on a device.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::TIDEMILL_CUH;
use crate::device::Device;
use crate::driver::{KernelFacts, KernelId, ModuleId};
use crate::error::GpuError;

/// A text for the compiler, complete in itself: no file is included when it is compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The name shown in messages of the compiler.
    pub name: String,
    /// CUDA C++ (C++17, no headers).
    pub text: String,
}

impl Source {
    /// A text as it is.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// The common header, then the pieces, each a name and its text. Messages of the compiler count lines per piece.
    pub fn splice(name: impl Into<String>, pieces: &[(&str, &str)]) -> Self {
        let mut text = String::new();
        for (piece, body) in [("tidemill.cuh", TIDEMILL_CUH)].iter().chain(pieces) {
            text.push_str(&format!("#line 1 \"{piece}\"\n{body}\n"));
        }
        Self { name: name.into(), text }
    }
}

/// A source loaded on a device. A clone is the same module.
#[derive(Clone)]
pub struct Module {
    device: Device,
    inner: Arc<ModuleInner>,
}

pub(crate) struct ModuleInner {
    name: String,
    id: ModuleId,
    kernels: Mutex<HashMap<String, Arc<KernelInner>>>,
}

impl ModuleInner {
    pub(crate) fn new(name: String, id: ModuleId) -> Self {
        Self { name, id, kernels: Mutex::default() }
    }
}

impl Module {
    pub(crate) fn new(device: Device, inner: Arc<ModuleInner>) -> Self {
        Self { device, inner }
    }

    /// The name of its source.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// A kernel by its name in the source.
    pub fn kernel(&self, name: &str) -> Result<Kernel, GpuError> {
        let mut kernels = self.inner.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = kernels.get(name) {
            return Ok(Kernel { device: self.device.clone(), inner: kernel.clone() });
        }
        let facts = self
            .device
            .call(None, |driver| driver.kernel(self.inner.id, name))?
            .ok_or_else(|| GpuError::NoKernel { module: self.inner.name.clone(), kernel: name.into() })?;
        let inner = Arc::new(KernelInner { name: name.into(), facts });
        kernels.insert(name.into(), inner.clone());
        Ok(Kernel { device: self.device.clone(), inner })
    }
}

/// A kernel, ready to be launched. A clone is the same kernel.
#[derive(Clone)]
pub struct Kernel {
    device: Device,
    inner: Arc<KernelInner>,
}

struct KernelInner {
    name: Arc<str>,
    facts: KernelFacts,
}

impl Kernel {
    /// Its name in the source.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Registers per thread; 0 on the host.
    pub fn registers(&self) -> u32 {
        self.inner.facts.registers
    }

    /// Shared memory per block that its text declares; 0 on the host.
    pub fn shared_bytes(&self) -> u32 {
        self.inner.facts.shared_bytes
    }

    /// Local memory per thread (spilled registers, arrays); 0 on the host.
    pub fn local_bytes(&self) -> u32 {
        self.inner.facts.local_bytes
    }

    /// The most threads a block of it may have.
    pub fn max_threads(&self) -> u32 {
        self.inner.facts.max_threads
    }

    /// Size of its argument structure, if the driver can tell (CUDA 12.4 and later).
    pub fn args_size(&self) -> Option<usize> {
        self.inner.facts.args_size
    }

    pub(crate) fn id(&self) -> KernelId {
        self.inner.facts.id
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.inner.name
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.inner.name)
            .field("registers", &self.registers())
            .field("shared_bytes", &self.shared_bytes())
            .field("local_bytes", &self.local_bytes())
            .finish()
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module").field("name", &self.inner.name).finish()
    }
}
