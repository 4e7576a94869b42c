//! What a search varies: a list of named parameters with ranges and conditions.

use std::fmt;
use std::sync::Arc;

/// The values that one parameter may take.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// A real number in `low..=high`; on a grid from `low` if `step` is set; uniform in the logarithm if `log`.
    Float {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
        /// Distance of the grid from `low`, if any.
        step: Option<f64>,
        /// Uniform in the logarithm.
        log: bool,
    },
    /// An integer in `low..=high`, in steps of `step` from `low`.
    Int {
        /// Smallest value.
        low: i64,
        /// Largest value.
        high: i64,
        /// Distance of the grid from `low`, at least 1.
        step: i64,
        /// Uniform in the logarithm.
        log: bool,
    },
    /// One of several options, encoded by index.
    Choice {
        /// The options, in the order written.
        options: Vec<Choice>,
    },
    /// A switch, encoded 0 or 1.
    Bool,
}

/// One option of a choice.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// A name.
    Text(String),
    /// A number.
    Number(f64),
}

/// Decides from the encoded values of one point whether a parameter is active.
pub type Condition = Arc<dyn Fn(&[f64]) -> bool + Send + Sync>;

/// One parameter of a space.
#[derive(Clone)]
pub struct Param {
    /// Its name, unique in the space.
    pub name: String,
    /// The values it may take.
    pub domain: Domain,
    /// Encoded default; what an inactive parameter is taken to be.
    pub default: f64,
    /// Encoded value if the user fixed it; a fixed parameter is not searched.
    pub fixed: Option<f64>,
    /// Active only where this holds. It may look only at parameters listed before this one.
    pub when: Option<Condition>,
}

impl fmt::Debug for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Param")
            .field("name", &self.name)
            .field("domain", &self.domain)
            .field("default", &self.default)
            .field("fixed", &self.fixed)
            .field("conditional", &self.when.is_some())
            .finish()
    }
}

/// All parameters of a search, in an order where conditions look backwards only.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// The parameters.
    pub params: Vec<Param>,
}
