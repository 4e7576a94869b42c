//! The devices that a study runs on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tidemill_gpu::{Device, GpuError, HostOptions, probe};

use crate::error::LabError;
use crate::number;

/// Which devices a study asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU if there is one, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// All GPUs, or this one.
    Cuda(Option<usize>),
    /// This many devices whose kernels run on the CPU, slowly: for tests.
    Emulated(usize),
}

impl fmt::Display for DeviceChoice {
    /// As users write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(ordinal)) => write!(f, "cuda:{ordinal}"),
            Self::Emulated(n) => write!(f, "emulated:{n}"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(ordinal) = text.parse() {
            return Ok(Self::Cuda(Some(ordinal)));
        }
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => match number.parse::<usize>() {
                Ok(number) => (name, Some(number)),
                Err(_) => {
                    return Err(format!("`{number}` is not the number of a device; for example cuda:0"));
                }
            },
            None => (text, None),
        };
        match (name, number) {
            ("auto", None) => Ok(Self::Auto),
            ("cpu", None) => Ok(Self::Cpu),
            ("cuda", number) => Ok(Self::Cuda(number)),
            ("emulated", number) => Ok(Self::Emulated(number.unwrap_or(1).max(1))),
            _ => Err("expected auto, cpu, cuda or cuda:N".into()),
        }
    }
}

/// The devices that were chosen; none is the CPU.
#[derive(Debug)]
pub struct Devices {
    /// The devices.
    pub devices: Vec<Device>,
    /// A note for the user about the choice.
    pub note: Option<String>,
    /// Why the CPU is used although this machine has a GPU.
    pub unusable: Option<String>,
    /// Whether a GPU was looked for and this machine has none.
    has_no_gpu: bool,
    /// Whether the CPU may take over.
    pub may_fall_back: bool,
}

impl Devices {
    /// Finds the devices of a choice.
    pub fn choose(choice: DeviceChoice) -> Result<Self, LabError> {
        let all = || {
            let found = probe().devices?;
            usable((0..found.len()).map(|ordinal| (ordinal, Device::cuda(ordinal))))
        };
        match choice {
            DeviceChoice::Cpu => Ok(Self::of(Vec::new(), false)),
            DeviceChoice::Cuda(Some(ordinal)) => match Device::cuda(ordinal) {
                Ok(device) => Ok(Self::of(vec![device], false)),
                Err(error) => Err(LabError::NoDevice { choice: format!("cuda:{ordinal}"), error }),
            },
            DeviceChoice::Cuda(None) => match all() {
                Ok((devices, note)) => Ok(Self { note, ..Self::of(devices, false) }),
                Err(error) => Err(LabError::NoDevice { choice: "cuda".into(), error }),
            },
            DeviceChoice::Emulated(n) => {
                Ok(Self::of((0..n).map(|_| Device::host(HostOptions::default())).collect(), false))
            }
            DeviceChoice::Auto => Ok(Self::auto(all(), probe().driver.is_ok())),
        }
    }

    /// These devices; where the CPU may take over, it does when one fails.
    pub fn of(devices: Vec<Device>, may_fall_back: bool) -> Self {
        Self { devices, note: None, unusable: None, has_no_gpu: false, may_fall_back }
    }

    /// Limits how long a run waits for a device.
    pub fn with_wait_limit(self, limit: Option<Duration>) -> Self {
        if let Some(limit) = limit {
            self.devices.iter().for_each(|device| device.set_wait_limit(limit));
        }
        self
    }

    /// All GPUs if they can be used, else the CPU.
    fn auto(found: Result<(Vec<Device>, Option<String>), GpuError>, has_driver: bool) -> Self {
        let error = match found {
            Ok((devices, note)) => return Self { note, ..Self::of(devices, true) },
            Err(error) => error.to_string(),
        };
        // A machine without a driver has no GPU; any other reason is worth a note.
        let reason = error.lines().next().unwrap_or_default().to_owned();
        let note = has_driver.then(|| {
            format!("running on the CPU, with the same results: {reason} (`tidemill doctor` says more)")
        });
        let unusable = has_driver.then_some(reason);
        Self { note, unusable, has_no_gpu: !has_driver, ..Self::of(Vec::new(), false) }
    }

    /// Description of the devices for users.
    pub fn shown(&self) -> String {
        match &self.devices[..] {
            [] => {
                let threads = number::counted(rayon::current_num_threads() as u64, "thread");
                let why = if self.has_no_gpu { " (there is no GPU driver)" } else { "" };
                format!("the CPU, {threads}{why}")
            }
            [one] => one.info().name.clone(),
            [first, rest @ ..] => format!("{} and {} more", first.info().name, rest.len()),
        }
    }
}

/// The GPUs that can be used, and a note about those that cannot; an error if there are none. A machine may have an old card beside the
/// one it computes with.
fn usable(
    opened: impl Iterator<Item = (usize, Result<Device, GpuError>)>,
) -> Result<(Vec<Device>, Option<String>), GpuError> {
    let (mut devices, mut left_out, mut first_error) = (Vec::new(), Vec::new(), None);
    for (ordinal, device) in opened {
        match device {
            Ok(device) => devices.push(device),
            Err(error) => {
                let reason = error.to_string();
                left_out.push(format!("device {ordinal}: {}", reason.lines().next().unwrap_or_default()));
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if devices.is_empty() => Err(error),
        None => Ok((devices, None)),
        Some(_) => Ok((devices, Some(format!("not all GPUs can be used: {}", left_out.join("; "))))),
    }
}

#[cfg(test)]
mod tests;
