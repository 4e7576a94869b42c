//! The devices of a run, and the graph of a pass on each of them.

use tidemill_gpu::{Device, GpuError};

use super::option::Options;
use crate::device::{DeviceGraph, DeviceStreams, MOST_VERTICES};
use crate::error::ColoringError;
use crate::graph::Graph;
use crate::phase::{DeviceInput, PhaseKind};

/// The devices of a run with their streams.
pub(super) struct DevicePlaces {
    devices: Vec<(Device, DeviceStreams)>,
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
        options: &Options,
        may_fall_back: bool,
    ) -> Result<Self, ColoringError> {
        let may_work = |kind: &PhaseKind| kind.has_kernel() && !options.on_cpu.contains(kind);
        let kinds: Vec<PhaseKind> = options.phases.iter().copied().filter(may_work).collect();
        let streams = |(number, device): (usize, &Device)| -> Result<_, GpuError> {
            Ok((device.clone(), DeviceStreams::new(device, number, &kinds)?))
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

    /// Puts a graph on all devices. One that has no room for it is left out where the CPU may take over, and so are all where the
    /// graph is too large for any.
    pub(super) fn put(&self, graph: &Graph) -> Result<PlacedGraphs<'_>, ColoringError> {
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
                    value: first.info().name.clone(),
                    expected: format!("cpu: {reason}"),
                });
            }
            placed.reason = Some(reason);
            return Ok(placed);
        }
        for (device, streams) in &self.devices {
            match DeviceGraph::new(device, graph) {
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

impl PlacedGraphs<'_> {
    /// What searches need of each device.
    pub(super) fn inputs(&self) -> Vec<DeviceInput<'_>> {
        let may_fall_back = self.may_fall_back;
        self.graphs.iter().map(|(graph, streams)| DeviceInput { graph, streams, may_fall_back }).collect()
    }
}
