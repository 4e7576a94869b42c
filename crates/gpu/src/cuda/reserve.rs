//! Addresses first, memory later: how a buffer grows without moving, and without waiting for what runs.
//!
//! Seen with driver 580 beside a kernel that runs: putting 4 GiB behind reserved addresses takes half a millisecond and waits for nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::result;
use cudarc::driver::sys::{
    self, CUdevice, CUdevice_attribute, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationProp_st__bindgen_ty_1,
    CUmemAllocationType, CUmemLocation, CUmemLocationType, CUresult,
};

use super::error::check;
use crate::error::GpuError;

/// What was reserved on one device, by address.
pub(super) struct Reservations {
    location: CUmemLocation,
    /// Memory comes in multiples of this; `None` where the device cannot do it.
    granularity: Option<u64>,
    all: Mutex<HashMap<u64, Reservation>>,
}

/// Addresses, and the memory behind the first of them.
struct Reservation {
    n_addresses: u64,
    n_backed: u64,
    /// Handle and bytes of each piece, one behind the other.
    pieces: Vec<(u64, u64)>,
}

impl Reservations {
    pub(super) fn new(device: CUdevice, ordinal: usize) -> Self {
        let location =
            CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: ordinal as i32 };
        let mut out = Self { location, granularity: None, all: Mutex::default() };
        let which = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
        // SAFETY: the device was given by the driver.
        if unsafe { result::device::get_attribute(device, which) }.is_ok_and(|is| is > 0) {
            let option = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
            let mut bytes = 0;
            // SAFETY: the driver reads the description and writes one number.
            let asked = unsafe { sys::cuMemGetAllocationGranularity(&mut bytes, &out.kind(), option) };
            out.granularity = (asked.result().is_ok() && bytes > 0).then_some(bytes as u64);
        }
        out
    }

    /// Plain memory of this device.
    fn kind(&self) -> CUmemAllocationProp {
        CUmemAllocationProp {
            type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: self.location,
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: CUmemAllocationProp_st__bindgen_ty_1 {
                compressionType: 0,
                gpuDirectRDMACapable: 0,
                usage: 0,
                reserved: [0; 4],
            },
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u64, Reservation>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Addresses for so many bytes; `None` where there are none to be had.
    pub(super) fn reserve(&self, bytes: u64) -> Option<u64> {
        let n_addresses = bytes.checked_next_multiple_of(self.granularity?)?;
        let mut address = 0;
        // SAFETY: the driver writes one number.
        let reserved = unsafe { sys::cuMemAddressReserve(&mut address, n_addresses as usize, 0, 0, 0) };
        reserved.result().ok()?;
        self.all().insert(address, Reservation { n_addresses, n_backed: 0, pieces: Vec::new() });
        Some(address)
    }

    /// Puts memory behind the first bytes from an address on; `None` if there is not enough.
    pub(super) fn back(&self, address: u64, bytes: u64) -> Result<Option<()>, GpuError> {
        let mut all = self.all();
        let (Some(reservation), Some(granularity)) = (all.get_mut(&address), self.granularity) else {
            return Err(GpuError::misuse("memory was to be put behind addresses that were never reserved"));
        };
        if bytes <= reservation.n_backed {
            return Ok(Some(()));
        }
        let more = (bytes - reservation.n_backed).next_multiple_of(granularity);
        let at = address + reservation.n_backed;
        if reservation.n_backed + more > reservation.n_addresses {
            return Err(GpuError::misuse("more memory than addresses"));
        }
        let mut handle = 0;
        // SAFETY: the driver reads the description and writes one number.
        match unsafe { sys::cuMemCreate(&mut handle, more as usize, &self.kind(), 0) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => return Ok(None),
            other => check("cuMemCreate", other.result())?,
        }
        let access = CUmemAccessDesc {
            location: self.location,
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the addresses are reserved and nothing is behind them; the handle is new and as large.
        let mapped = check("cuMemMap", unsafe { sys::cuMemMap(at, more as usize, 0, handle, 0) }.result());
        let allowed = mapped.and_then(|()| {
            // SAFETY: just mapped with this size.
            let allowed = unsafe { sys::cuMemSetAccess(at, more as usize, &access, 1) };
            check("cuMemSetAccess", allowed.result())
        });
        if let Err(error) = allowed {
            // The first error is the one to tell; what was not mapped is not unmapped.
            // SAFETY: nothing uses the addresses or the handle.
            let _ = unsafe { (sys::cuMemUnmap(at, more as usize), sys::cuMemRelease(handle)) };
            return Err(error);
        }
        reservation.pieces.push((handle, more));
        reservation.n_backed += more;
        Ok(Some(()))
    }

    /// What gives addresses back, and the memory behind them; `None` if they are none of these. Nothing may use them any more.
    pub(super) fn remove(
        &self,
        address: u64,
    ) -> Option<impl FnOnce() -> Result<(), GpuError> + Send + 'static> {
        let Reservation { n_addresses, pieces, .. } = self.all().remove(&address)?;
        Some(move || {
            let mut at = address;
            for (handle, bytes) in pieces {
                // SAFETY: mapped by `back` with this size, and no longer in use.
                check("cuMemUnmap", unsafe { sys::cuMemUnmap(at, bytes as usize) }.result())?;
                // SAFETY: made by `back`, released once.
                check("cuMemRelease", unsafe { sys::cuMemRelease(handle) }.result())?;
                at += bytes;
            }
            // SAFETY: reserved by `reserve`, given back once.
            let freed = unsafe { sys::cuMemAddressFree(address, n_addresses as usize) };
            check("cuMemAddressFree", freed.result())
        })
    }
}
