//! What is known of a function over whole series: how it is written, what it reads, how it is computed here and on a device.
//!
//! The rows are [`super::FUNCTIONS`]. The language's signatures, the engine's columns, the device's kernels, the random strategies
//! and the tests that hold for every function all follow from them.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::device::{Output, Shape};
use super::prefix::{Moments, Prefix};
use super::zscore::ZscoreTest;

/// What a function reads at each bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// A series of numbers that the caller names.
    Series,
    /// A condition that the caller names.
    Condition,
    /// Prefix sums of the first series that the caller names.
    Sums(Moments),
    /// A column of the bars themselves.
    High,
    /// Likewise.
    Low,
    /// Likewise.
    Close,
    /// Likewise.
    Volume,
}

/// A number that a function takes for all bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// A length in bars.
    Window,
    /// Any number.
    Scalar,
}

/// What a function does at a bar where an input is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// NaN as long as its window holds such a bar.
    Windowed,
    /// NaN at that bar, and then on as if it had not been there.
    Recursive,
    /// Something else, which its own file describes.
    Own,
}

/// Where the documentation lists a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Means of a series.
    Averages,
    /// Which way a series goes.
    Trend,
    /// How far values lie apart.
    Spread,
    /// How fast and how steadily prices move.
    Momentum,
    /// Largest and smallest values.
    Extremes,
    /// When something happened.
    Events,
    /// Series of other bars, and of one's own past.
    Elsewhere,
    /// Durations in bars.
    Time,
    /// Functions of the values at one bar.
    Pointwise,
}

impl Group {
    /// In the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Averages,
        Self::Trend,
        Self::Spread,
        Self::Momentum,
        Self::Extremes,
        Self::Events,
        Self::Elsewhere,
        Self::Time,
        Self::Pointwise,
    ];
}

/// A series as it is passed.
#[derive(Clone, Copy, Debug)]
pub enum Series<'a> {
    /// For [`Read::Series`] and the columns of the bars.
    Column(&'a [f64]),
    /// For [`Read::Condition`].
    Condition(&'a [bool]),
    /// For [`Read::Sums`].
    Sums(&'a Prefix),
}

/// The inputs of one call, in the order of [`Function::reads`] and [`Function::takes`].
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// One for each of what the function reads.
    pub series: &'a [Series<'a>],
    /// One for each of what it takes.
    pub arguments: &'a [f64],
}

impl<'a> Call<'a> {
    pub(super) fn column(&self, at: usize) -> &'a [f64] {
        match self.series[at] {
            Series::Column(column) => column,
            _ => unreachable!("the function reads a series here"),
        }
    }

    pub(super) fn condition(&self, at: usize) -> &'a [bool] {
        match self.series[at] {
            Series::Condition(condition) => condition,
            _ => unreachable!("the function reads a condition here"),
        }
    }

    pub(super) fn sums(&self, at: usize) -> &'a Prefix {
        match self.series[at] {
            Series::Sums(sums) => sums,
            _ => unreachable!("the function reads prefix sums here"),
        }
    }

    pub(super) fn window(&self, at: usize) -> usize {
        window(self.arguments[at])
    }
}

/// A scalar as a window length: 0 where it makes no sense, which gives a column of NaN.
pub fn window(scalar: f64) -> usize {
    if scalar >= 1.0 && scalar < u32::MAX as f64 { scalar as usize } else { 0 }
}

/// How a function is computed on the CPU.
#[derive(Clone, Copy)]
pub enum HostFunction {
    /// Prefix sums of the series it reads.
    Sums(Moments),
    /// One number per bar.
    Column(fn(&Call<'_>, &mut [f64])),
}

/// How a function is computed for some bars that need no other bar of its result.
#[derive(Clone, Copy)]
pub struct Part {
    /// The bars from a first one on.
    pub bars: fn(&Call<'_>, usize, &mut [f64]),
    /// One bar.
    pub bar: fn(&Call<'_>, usize) -> f64,
    /// A quick test of a threshold, where that costs much less than the value.
    pub test: Option<Test>,
}

/// A quick test of `value > threshold` and `value >= threshold`, or of `value < −threshold` and `value <= −threshold`; none where it has no
/// use.
pub type Test = for<'a> fn(&Call<'a>, Limit) -> Option<ZscoreTest<'a>>;

/// What a quick test compares with.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The threshold, above 0.
    pub threshold: f64,
    /// 1, or −1 where the negated value is compared.
    pub sign: f64,
}

/// A function over whole series. Two are equal if they have one name.
#[derive(Clone, Copy)]
pub struct Function {
    /// The name of the Rust function and of the kernel that writes its result.
    pub name: &'static str,
    /// How a strategy calls it; empty if none calls it by itself.
    pub usage: &'static str,
    /// Where the documentation lists it, and what that says of it.
    pub listed: (Group, &'static str),
    /// What it reads.
    pub reads: &'static [Read],
    /// What it takes.
    pub takes: &'static [Take],
    /// How it treats what is not available.
    pub gaps: Gaps,
    /// Whether it needs as many bars as its window says before it has a value.
    pub waits: bool,
    /// Whether it has the unit of its inputs, and so doubles when they do.
    pub has_unit: bool,
    /// How it is computed on the CPU.
    pub run: HostFunction,
    /// The same at one bar, for those where that costs less than the column.
    pub at: Option<fn(&Call<'_>, usize) -> f64>,
    /// The same for some bars, for those that need no other bar of their result.
    pub part: Option<Part>,
    /// File name and text of its twin on a device.
    pub twin: (&'static str, &'static str),
    /// Scratch columns per item, of `n_bars + n_symbols` numbers each. Their start has to be a multiple of 16 bytes.
    pub scratch_columns: usize,
    /// Numbers that it carries from bar to bar on a device, where it forgets its past; 0 if it does not.
    pub state: usize,
    /// The kernels that are launched, in this order, all with the same arguments.
    pub passes: &'static [(&'static str, Shape)],
}

impl Function {
    const fn new(name: &'static str, reads: &'static [Read], run: HostFunction, gaps: Gaps) -> Self {
        Self {
            name,
            usage: "",
            listed: (Group::Pointwise, ""),
            reads,
            takes: &[],
            gaps,
            waits: true,
            has_unit: true,
            run,
            at: None,
            part: None,
            twin: ("", ""),
            scratch_columns: 0,
            state: 0,
            passes: &[],
        }
    }

    pub(super) const fn sums(name: &'static str, moments: Moments) -> Self {
        Self::new(name, &[Read::Series], HostFunction::Sums(moments), Gaps::Own)
    }

    pub(super) const fn column(
        name: &'static str,
        gaps: Gaps,
        reads: &'static [Read],
        takes: &'static [Take],
        run: fn(&Call<'_>, &mut [f64]),
    ) -> Self {
        Self { takes, ..Self::new(name, reads, HostFunction::Column(run), gaps) }
    }

    pub(super) const fn listed(self, group: Group, usage: &'static str, summary: &'static str) -> Self {
        Self { usage, listed: (group, summary), ..self }
    }

    pub(super) const fn at_once(self) -> Self {
        Self { waits: false, ..self }
    }

    pub(super) const fn without_unit(self) -> Self {
        Self { has_unit: false, ..self }
    }

    pub(super) const fn at(self, at: fn(&Call<'_>, usize) -> f64) -> Self {
        Self { at: Some(at), ..self }
    }

    pub(super) const fn part(
        self,
        bars: fn(&Call<'_>, usize, &mut [f64]),
        bar: fn(&Call<'_>, usize) -> f64,
    ) -> Self {
        Self { part: Some(Part { bars, bar, test: None }), ..self }
    }

    pub(super) const fn test(self, test: Test) -> Self {
        match self.part {
            Some(part) => Self { part: Some(Part { test: Some(test), ..part }), ..self },
            None => panic!("only what is computed in parts is tested"),
        }
    }

    pub(super) const fn twin(
        self,
        twin: (&'static str, &'static str),
        scratch_columns: usize,
        passes: &'static [(&'static str, Shape)],
    ) -> Self {
        Self { twin, scratch_columns, passes, ..self }
    }

    /// Its bars can be computed in stretches, because it forgets what it was long ago.
    pub(super) const fn forgets(self, state: usize) -> Self {
        Self { state, ..self }
    }

    /// Scratch numbers of an item on a device, a multiple of two: its columns, and the states at the begin and end of every stretch.
    pub fn scratch_len(&self, n_bars: usize, n_symbols: usize, stretches: u32) -> usize {
        let states = if stretches > 1 { 2 * self.state * stretches as usize * n_symbols } else { 0 };
        (self.scratch_columns * (n_bars + n_symbols) + states).next_multiple_of(2)
    }

    /// The sums that it reads.
    pub fn sums_read(&self) -> Option<Moments> {
        self.reads.iter().find_map(|read| if let Read::Sums(moments) = read { Some(*moments) } else { None })
    }

    /// Whether the result is prefix sums rather than a series of numbers.
    pub fn is_sums(&self) -> bool {
        matches!(self.run, HostFunction::Sums(_))
    }

    /// What an item of its pool holds on a device.
    pub fn output(&self) -> Output {
        match self.run {
            HostFunction::Sums(Moments::Sum) => Output::Sum,
            HostFunction::Sums(_) => Output::Pair,
            HostFunction::Column(_) => Output::Column,
        }
    }

    /// The function of this name. In a constant an unknown name is an error of the compiler.
    pub const fn named(name: &str) -> &'static Self {
        let mut at = 0;
        while at < super::FUNCTIONS.len() {
            if is_same(super::FUNCTIONS[at].name.as_bytes(), name.as_bytes()) {
                return &super::FUNCTIONS[at];
            }
            at += 1;
        }
        panic!("no function has this name")
    }
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
