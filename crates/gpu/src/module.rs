//! Kernel sources, loaded modules and their kernels.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::TIDEMILL_CUH;
use crate::device::Device;
use crate::driver::{KernelFacts, KernelId, ModuleId};
use crate::error::GpuError;
use crate::fill::Load;
use crate::stream::Launch;

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

    /// The kernels that the text defines with `KERNEL` and `KERNEL_BOUNDED` at the beginning of a line, in its order, without those that `#ifdef` and
    /// `#ifndef` leave out.
    pub fn kernels(&self) -> Vec<&str> {
        let mut defined: HashSet<&str> = HashSet::new();
        // Of each condition that is open, whether its lines count.
        let mut open: Vec<bool> = Vec::new();
        let mut kernels = Vec::new();
        for line in self.text.lines() {
            let mut words = line.split_whitespace();
            let directive = words.next().unwrap_or("");
            let name = words.next().unwrap_or("");
            match directive {
                "#ifdef" => open.push(defined.contains(name)),
                "#ifndef" => open.push(!defined.contains(name)),
                "#if" => open.push(true),
                "#else" => {
                    if let Some(counts) = open.last_mut() {
                        *counts = !*counts;
                    }
                }
                "#endif" => {
                    open.pop();
                }
                _ if !open.iter().all(|counts| *counts) => {}
                "#define" => {
                    defined.insert(name.split('(').next().unwrap_or(name));
                }
                _ => {
                    let head = line.strip_prefix("KERNEL(").or_else(|| line.strip_prefix("KERNEL_BOUNDED("));
                    kernels.extend(head.and_then(|head| head.split(',').next()).map(str::trim));
                }
            }
        }
        kernels
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

    /// The kernels that were launched.
    pub(crate) fn launched(&self) -> Vec<String> {
        let kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let launched = kernels.values().filter(|kernel| kernel.n_launches.load(Ordering::Relaxed) > 0);
        launched.map(|kernel| kernel.name.to_string()).collect()
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
        let inner = Arc::new(KernelInner {
            name: name.into(),
            facts,
            n_launches: AtomicU64::new(0),
            resident: Mutex::default(),
        });
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
    n_launches: AtomicU64,
    /// Blocks that a multiprocessor has room for, by threads and dynamic shared memory of a block.
    resident: Mutex<HashMap<(u32, u32), u32>>,
}

impl Kernel {
    /// Its name in the source.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Registers per thread; 0 on the host.
    pub(crate) fn registers(&self) -> u32 {
        self.inner.facts.registers
    }

    /// Shared memory per block that its text declares; 0 on the host.
    pub fn shared_bytes(&self) -> u32 {
        self.inner.facts.shared_bytes
    }

    /// Local memory per thread (spilled registers, arrays); 0 on the host.
    pub(crate) fn local_bytes(&self) -> u32 {
        self.inner.facts.local_bytes
    }

    /// The most threads a block of it may have.
    pub(crate) fn max_threads(&self) -> u32 {
        self.inner.facts.max_threads
    }

    /// Size of its argument structure, if the driver can tell (CUDA 12.4 and later).
    pub(crate) fn args_size(&self) -> Option<usize> {
        self.inner.facts.args_size
    }

    /// Blocks of so many threads and so much dynamic shared memory that the whole device has room for at a time. The driver is asked
    /// once for each; one that cannot answer counts as one block for each multiprocessor.
    pub fn resident_blocks(&self, threads: u32, shared_bytes: u32) -> u64 {
        let mut known = self.inner.resident.lock().unwrap_or_else(PoisonError::into_inner);
        let blocks = known.entry((threads, shared_bytes)).or_insert_with(|| {
            let asked =
                self.device.call(None, |driver| driver.resident_blocks(self.id(), threads, shared_bytes));
            asked.unwrap_or(1).max(1)
        });
        u64::from(*blocks) * u64::from(self.device.info().multiprocessors.max(1))
    }

    /// How much of the device a launch of this shape fills.
    pub(crate) fn load(&self, launch: Launch) -> Load {
        let threads = launch.block.iter().product();
        let n_blocks = launch.grid.iter().map(|&n| u64::from(n)).product();
        Load::of_launch(n_blocks, self.resident_blocks(threads, launch.shared_bytes))
    }

    pub(crate) fn count_launch(&self) {
        self.inner.n_launches.fetch_add(1, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_those_that_the_preprocessor_leaves() {
        let text = "\
#define POINTS_ONLY
#ifndef POINTS_ONLY
KERNEL(left_out, Args) {}
#else
KERNEL(kept, Args) {}
#endif
#ifdef ELSEWHERE
#define HIDDEN
KERNEL(also_left_out, Args) {}
#endif
#ifndef HIDDEN
KERNEL_BOUNDED( bounded , Args, 32, 1) {
}
#endif
  // KERNEL(in_a_comment, Args)
";
        assert_eq!(Source::new("x.cu", text).kernels(), ["kept", "bounded"]);
        let spliced = Source::splice("x.cu", &[("a.cu", "KERNEL(one, Args) {}"), ("b.cu", text)]);
        assert_eq!(spliced.kernels(), ["one", "kept", "bounded"]);
    }
}
