//! `Neighbourhood`: when two parameter sets hardly differ, so that a list shows only the better one.

use tidemill_backtest::strategy::ParamSpec;
use tidemill_search::{Domain, Param, SamplerKind, Space};

use crate::config::StudyConfig;
use crate::error::LabError;

/// Sets whose numbers all lie within this share of their range, and whose other parameters are equal, are neighbours.
const NEARNESS: f64 = 0.02;

/// Which sets of a space are neighbours.
#[derive(Clone, Debug)]
pub struct Neighbourhood {
    domains: Vec<Domain>,
    nearness: f64,
}

impl Neighbourhood {
    /// A search that has found its hill tries hundreds of sets that hardly differ. A sampler that does not learn spreads its sets, so that
    /// only equal ones are neighbours.
    pub fn new(space: &Space, learns: bool) -> Self {
        let domains = space.params.iter().map(|param| param.domain.clone()).collect();
        Self { domains, nearness: if learns { NEARNESS } else { 0.0 } }
    }

    /// The same for a stored study.
    pub fn of_study(config: &StudyConfig, space: &Space) -> Self {
        let kind = config.sweep.sampler.as_ref().and_then(|name| name.parse::<SamplerKind>().ok());
        Self::new(space, kind.is_none_or(SamplerKind::learns))
    }

    /// Positions of encoded values on the unit interval, which is logarithmic where the range is; NaN where one is inactive.
    pub fn units(&self, row: impl Iterator<Item = f64>) -> Vec<f64> {
        let unit =
            |(domain, value): (&Domain, f64)| if value.is_nan() { f64::NAN } else { domain.to_unit(value) };
        self.domains.iter().zip(row).map(unit).collect()
    }

    /// Whether two sets are neighbours, by their positions.
    pub fn are_near(&self, a: &[f64], b: &[f64]) -> bool {
        self.domains.iter().zip(a.iter().zip(b)).all(|(domain, (a, b))| match domain {
            Domain::Float { .. } | Domain::Int { .. } => {
                (a - b).abs() <= self.nearness || (a.is_nan() && b.is_nan())
            }
            Domain::Choice { .. } | Domain::Bool => a.to_bits() == b.to_bits(),
        })
    }

    /// Groups of sets that come in an order, by their positions: each set joins the first one before it that leads a group and is its
    /// neighbour, or leads a group of its own. The leader is the first of each group.
    pub fn fold(&self, sets: &[Vec<f64>]) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (at, set) in sets.iter().enumerate() {
            match groups.iter_mut().find(|group| self.are_near(&sets[group[0]], set)) {
                Some(group) => group.push(at),
                None => groups.push(vec![at]),
            }
        }
        groups
    }
}

/// The parameters of a stored study and their ranges; `None` if it does not have the text of its strategy. Conditions are left out, as
/// stored trials show what was active.
pub fn searched_space(config: &StudyConfig) -> Result<Option<Space>, LabError> {
    let param = |spec: &ParamSpec| Param {
        fixed: spec.fixed,
        ..Param::new(spec.name.clone(), spec.domain.clone(), spec.default)
    };
    let strategy = config.searched_strategy()?;
    Ok(strategy.map(|strategy| Space { params: strategy.params.iter().map(param).collect() }))
}

#[cfg(test)]
mod tests {
    use tidemill_search::Choice;

    use super::*;

    fn space() -> Space {
        let number = Domain::Float { low: 1.0, high: 100.0, step: None, log: true };
        let name = Domain::Choice { options: ["a", "b"].map(|name| Choice::Text(name.into())).to_vec() };
        Space { params: vec![Param::new("x", number, 1.0), Param::new("mode", name, 0.0)] }
    }

    #[test]
    fn sets_join_the_first_leader_that_is_near_enough() {
        let near = Neighbourhood::new(&space(), true);
        // A hundredth of a logarithmic range from 1 to 100 is a factor of 1.047.
        let rows = [
            [10.0, 0.0],
            [10.4, 0.0],
            [10.8, 0.0],
            [11.2, 0.0],
            [10.0, 1.0],
            [f64::NAN, 0.0],
            [f64::NAN, 0.0],
        ];
        let sets: Vec<Vec<f64>> = rows.iter().map(|row| near.units(row.iter().copied())).collect();
        // The fourth is near the third, but the third leads nothing.
        assert_eq!(near.fold(&sets), [vec![0, 1, 2], vec![3], vec![4], vec![5, 6]]);
    }

    #[test]
    fn where_the_sampler_does_not_learn_only_equals_are_neighbours() {
        let mut config = StudyConfig::default();
        config.sweep.sampler = Some("random".into());
        let near = Neighbourhood::of_study(&config, &space());
        let sets: Vec<Vec<f64>> =
            [10.0, 10.001, 10.0].iter().map(|x| near.units([*x, 0.0].into_iter())).collect();
        assert_eq!(near.fold(&sets), [vec![0, 2], vec![1]]);
        config.sweep.sampler = Some("auto".into());
        assert!(Neighbourhood::of_study(&config, &space()).are_near(&sets[0], &sets[1]));
    }

    #[test]
    fn a_searched_space_has_what_was_fixed_and_leaves_the_rest_free() {
        let mut config = StudyConfig::default();
        assert!(
            searched_space(&config).unwrap().is_none(),
            "without its text a study does not know its ranges"
        );
        config.strategy.source = Some(crate::shipped::shipped("zscore-dip").unwrap().to_owned());
        config.fixed = toml::toml! { window = 30 };
        let space = searched_space(&config).unwrap().unwrap();
        let fixed: Vec<(&str, f64)> =
            space.params.iter().filter_map(|param| Some((param.name.as_str(), param.fixed?))).collect();
        assert_eq!(fixed, [("window", 30.0)]);
        assert_eq!(space.len(), 5);
    }
}
