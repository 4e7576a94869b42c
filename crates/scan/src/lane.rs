//! What one batch in flight needs: staging memory on the host, buffers on the device.

use std::sync::Arc;

use rayon::prelude::*;
use tidemill_gpu::{Device, DeviceBuffer, GpuError, Pinned};
use tidemill_market::atc::Class;

use crate::scanner::Averages;

/// Memory of the device for one batch. It grows when a batch needs more, and stays.
pub(crate) struct Lane {
    device: Device,
    pub prices: DeviceBuffer<f64>,
    /// Where each symbol begins.
    pub offsets: DeviceBuffer<u64>,
    pub lengths: DeviceBuffer<u32>,
    /// Working memory of the kernel.
    pub scratch: DeviceBuffer<f64>,
    pub last: DeviceBuffer<f64>,
    pub classes: DeviceBuffer<i32>,
    pub averages: DeviceBuffer<f64>,
}

impl Lane {
    /// A lane without memory.
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        Ok(Self {
            device: device.clone(),
            prices: device.alloc(0)?,
            offsets: device.alloc(0)?,
            lengths: device.alloc(0)?,
            scratch: device.alloc(0)?,
            last: device.alloc(0)?,
            classes: device.alloc(0)?,
            averages: device.alloc(0)?,
        })
    }

    /// Makes room for a batch, whose kernel needs so much working memory.
    pub fn reserve(&mut self, staged: &Staged, scratch_len: usize) -> Result<(), GpuError> {
        grow(&self.device, &mut self.prices, staged.n_bars)?;
        grow(&self.device, &mut self.offsets, staged.n_symbols)?;
        grow(&self.device, &mut self.lengths, staged.n_symbols)?;
        grow(&self.device, &mut self.scratch, scratch_len)?;
        grow(&self.device, &mut self.last, staged.n_symbols)?;
        grow(&self.device, &mut self.classes, staged.n_symbols)?;
        if staged.history {
            grow(&self.device, &mut self.averages, staged.n_bars)?;
        }
        Ok(())
    }
}

/// Frees what is too small before it asks for more: the two need not fit side by side.
fn grow<T: bytemuck::Pod>(device: &Device, buffer: &mut DeviceBuffer<T>, len: usize) -> Result<(), GpuError> {
    if buffer.len() < len {
        *buffer = device.alloc(0)?;
        *buffer = device.alloc(len)?;
    }
    Ok(())
}

/// A batch in page-locked memory: what goes to the device and what comes back.
pub(crate) struct Staged {
    /// First symbol of the batch in the order of work.
    pub first: usize,
    /// Number of symbols.
    pub n_symbols: usize,
    /// Bars of all of them.
    pub n_bars: usize,
    /// Whether the whole averages come back.
    pub history: bool,
    pub prices: Pinned<f64>,
    pub offsets: Pinned<u64>,
    pub lengths: Pinned<u32>,
    pub last: Pinned<f64>,
    pub classes: Pinned<i32>,
    pub averages: Pinned<f64>,
    /// Growth factors on the device, for the longest symbol of the scan.
    pub growth: Arc<DeviceBuffer<f64>>,
}

impl Staged {
    /// Staging memory without room.
    pub fn new(device: &Device, growth: Arc<DeviceBuffer<f64>>) -> Result<Self, GpuError> {
        Ok(Self {
            first: 0,
            n_symbols: 0,
            n_bars: 0,
            history: false,
            prices: device.pinned(0)?,
            offsets: device.pinned(0)?,
            lengths: device.pinned(0)?,
            last: device.pinned(0)?,
            classes: device.pinned(0)?,
            averages: device.pinned(0)?,
            growth,
        })
    }

    /// Copies a batch into it, symbols side by side. Windows are shorter than 2³² bars.
    pub fn fill(
        &mut self,
        device: &Device,
        first: usize,
        windows: &[&[f64]],
        history: bool,
    ) -> Result<(), GpuError> {
        self.first = first;
        self.n_symbols = windows.len();
        self.n_bars = windows.iter().map(|window| window.len()).sum();
        self.history = history;
        pin(device, &mut self.prices, self.n_bars)?;
        pin(device, &mut self.offsets, self.n_symbols)?;
        pin(device, &mut self.lengths, self.n_symbols)?;
        pin(device, &mut self.last, self.n_symbols)?;
        pin(device, &mut self.classes, self.n_symbols)?;
        if history {
            pin(device, &mut self.averages, self.n_bars)?;
        }
        let (offsets, lengths) = (self.offsets.as_mut_slice()?, self.lengths.as_mut_slice()?);
        let mut rest = &mut self.prices.as_mut_slice()?[..self.n_bars];
        let mut copies = Vec::with_capacity(windows.len());
        let mut offset = 0;
        for (at, window) in windows.iter().enumerate() {
            offsets[at] = offset;
            lengths[at] = window.len() as u32;
            offset += window.len() as u64;
            let (place, after) = rest.split_at_mut(window.len());
            copies.push((place, *window));
            rest = after;
        }
        copies.into_par_iter().with_min_len(16).for_each(|(place, window)| place.copy_from_slice(window));
        Ok(())
    }

    /// The results that were downloaded.
    pub fn results(&self) -> Result<Vec<Averages>, GpuError> {
        let (last, classes, averages) =
            (self.last.as_slice()?, self.classes.as_slice()?, self.averages.as_slice()?);
        let (offsets, lengths) = (self.offsets.as_slice()?, self.lengths.as_slice()?);
        let of = |at: usize| {
            let whole = || averages[offsets[at] as usize..][..lengths[at] as usize].to_vec();
            Averages { last: last[at], class: class(classes[at]), all: self.history.then(whole) }
        };
        Ok((0..self.n_symbols).into_par_iter().with_min_len(256).map(of).collect())
    }
}

/// The class that a device writes as a number.
fn class(number: i32) -> Class {
    match number {
        -1 => Class::Short,
        1 => Class::Long,
        _ => Class::Neutral,
    }
}

fn pin<T: bytemuck::Pod>(device: &Device, memory: &mut Pinned<T>, len: usize) -> Result<(), GpuError> {
    if memory.len() < len {
        *memory = device.pinned(0)?;
        *memory = device.pinned(len)?;
    }
    Ok(())
}
