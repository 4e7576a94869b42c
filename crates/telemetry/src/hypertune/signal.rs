//! Which values of a run the rules read.
//!
//! The rules know no workload: each workload declares by name which of the values in its records is the time of a batch, which counts
//! items without failures, and which has to fall. A rule whose values are not declared never fires.

/// The values that the rules of a run read. Names are those of values in the records of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Share of the time for which the device was busy.
    pub busy: Option<&'static str>,
    /// How full the device was: the same share, weighted by how much of the device its kernels fill.
    pub fill: Option<&'static str>,
    /// Where the time of a batch goes.
    pub batch: Option<BatchSignals>,
    /// How many items of the progress failed.
    pub failures: Option<FailureSignal>,
    /// What has to fall while the run works.
    pub falling: Option<FallingSignal>,
    /// Phases that come now and then: that they have not reported for long means nothing.
    pub occasional: &'static [&'static str],
}

/// Values with the milliseconds of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSignals {
    /// Work of the device, such as `evaluate_ms`.
    pub work: &'static str,
    /// This work in a sentence, such as `the evaluation`.
    pub work_words: &'static str,
    /// Time for which the device had nothing to do.
    pub idle: &'static str,
    /// Work of the host that can run beside that of the device, if there is any.
    pub host: Option<HostSignals>,
}

/// Values with the milliseconds for which the host worked on a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSignals {
    /// Before and after the work of the device.
    pub times: [&'static str; 2],
    /// This work in a sentence, such as `asking and telling`.
    pub words: &'static str,
    /// The part of it that ran while the device worked.
    pub hidden: &'static str,
}

/// A value that counts the items of the progress that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureSignal {
    /// Name of the rule in records, such as `many_invalid`.
    pub rule: &'static str,
    /// Items that did not fail; all others of the progress failed.
    pub succeeded: &'static str,
    /// What the share of failed items is called where an effect is recorded, such as `invalid`.
    pub measure: &'static str,
    /// The end of a sentence that begins with a number of failed items, such as `trials have no score`.
    pub words: &'static str,
}

/// A value that has to fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FallingSignal {
    /// Name of the rule in records, such as `high_conflicts`.
    pub rule: &'static str,
    /// The value, such as `conflicts`; sentences call it the same.
    pub value: &'static str,
}
