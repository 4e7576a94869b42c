//! The devices of a run, and the graph of a pass on each of them.

use tidemill_gpu::{Context, ContextOptions, Device, GpuError};

use super::option::Options;
use crate::device::{DeviceGraph, DeviceStreams, MOST_VERTICES};
use crate::error::ColoringError;
use crate::graph::Graph;
use crate::phase::{DeviceInput, PhaseKind};
use crate::tabu::device::search_bytes;

/// The devices of a run with their streams.
pub(super) struct DevicePlaces {
    devices: Vec<(Context, DeviceStreams)>,
    may_fall_back: bool,
    /// Why there is none although some were given.
    reason: Option<String>,
}

/// The graph of a pass on each device.
pub(super) struct PlacedGraphs<'a> {
    graphs: Vec<(DeviceGraph, &'a DeviceStreams)>,
    may_fall_back: bool,
    /// Why the CPU works instead, if a device was wanted.
    pub(super) reason: Option<String>,
}

impl DevicePlaces {
    /// The devices, each with a stream for every phase of the run that may work there.
    pub(super) fn new(
        devices: &[Device],
        context: ContextOptions,
        options: &Options,
        may_fall_back: bool,
    ) -> Result<Self, ColoringError> {
        let may_work = |kind: &PhaseKind| kind.has_kernel() && !options.on_cpu.contains(kind);
        let kinds: Vec<PhaseKind> = options.phases.iter().copied().filter(may_work).collect();
        let streams = |(number, device): (usize, &Device)| -> Result<_, GpuError> {
            let context = Context::new(device, context)?;
            let streams = DeviceStreams::new(&context, number, &kinds)?;
            Ok((context, streams))
        };
        let placed: Result<Vec<_>, GpuError> = devices.iter().enumerate().map(streams).collect();
        match placed {
            Ok(devices) => Ok(Self { devices, may_fall_back, reason: None }),
            Err(error) if may_fall_back => {
                Ok(Self { devices: Vec::new(), may_fall_back, reason: Some(error.to_string()) })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether there is a device.
    pub(super) fn has_some(&self) -> bool {
        !self.devices.is_empty()
    }

    /// Puts a graph that is to be coloured with `k` colours on all devices. One that has no room for it is left out where the CPU may take over,
    /// and so are all where the graph is too large for any.
    pub(super) fn put(&self, graph: &Graph, k: usize) -> Result<PlacedGraphs<'_>, ColoringError> {
        let mut placed = PlacedGraphs {
            graphs: Vec::new(),
            may_fall_back: self.may_fall_back,
            reason: self.reason.clone(),
        };
        let Some((first, _)) = self.devices.first() else { return Ok(placed) };
        if graph.n() > MOST_VERTICES {
            let reason = format!("{} vertices are more than the {MOST_VERTICES} of a device", graph.n());
            if !self.may_fall_back {
                return Err(ColoringError::Option {
                    name: "device",
                    value: first.device().info().name.clone(),
                    expected: format!("cpu: {reason}"),
                });
            }
            placed.reason = Some(reason);
            return Ok(placed);
        }
        for (context, streams) in &self.devices {
            let made = with_room(context, graph, k).and_then(|()| DeviceGraph::new(context.device(), graph));
            match made {
                Ok(graph) => placed.graphs.push((graph, streams)),
                Err(error) if self.may_fall_back => placed.reason = Some(error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        if !placed.graphs.is_empty() {
            // The others do the work.
            placed.reason = None;
        }
        Ok(placed)
    }
}

/// An error if a graph and its searches need more memory than may be used.
fn with_room(context: &Context, graph: &Graph, k: usize) -> Result<(), GpuError> {
    let (needed, free) = (search_bytes(context.device(), graph.n(), k), context.free_bytes()?);
    if needed <= free {
        return Ok(());
    }
    let mib = |bytes: usize| bytes.div_ceil(1 << 20);
    Err(GpuError::Unavailable {
        what: format!(
            "the searches need {} MiB of the device, of which {} MiB may be used",
            mib(needed),
            mib(free)
        ),
        cure: "raise gpu.memory_fraction, or search on the CPU".into(),
    })
}

impl PlacedGraphs<'_> {
    /// What searches need of each device.
    pub(super) fn inputs(&self) -> Vec<DeviceInput<'_>> {
        let may_fall_back = self.may_fall_back;
        self.graphs.iter().map(|(graph, streams)| DeviceInput { graph, streams, may_fall_back }).collect()
    }
}
