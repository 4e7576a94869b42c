//! Phases as users list them.

use super::{Family, PhaseKind};

/// Why a list of phases cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PhaseListError {
    /// There is no such phase.
    #[error("--phases: {0}")]
    Unknown(String),
    /// A name beside changes.
    #[error("--phases: `{0}` beside changes: write +{0} to add it, or all names without signs")]
    Mixed(String),
}

/// Whether a list names a way to a first colouring, with or without a sign.
fn names_a_first_colouring(names: &[String]) -> bool {
    let is_initial = |kind: PhaseKind| matches!(kind.family(), Family::Initial(_));
    names.iter().any(|name| name.trim().trim_start_matches(['+', '-']).parse().is_ok_and(is_initial))
}

impl PhaseKind {
    /// The phases of a list, or the default ones without a list, and the first colourings of a strategy where the list names none
    /// itself.
    pub fn chosen(list: Option<&[String]>, strategy: Option<&[Self]>) -> Result<Vec<Self>, PhaseListError> {
        let mut kinds = match list {
            Some(names) => Self::listed(names)?,
            None => Self::defaults(),
        };
        if let Some(strategy) = strategy
            && !list.is_some_and(names_a_first_colouring)
        {
            kinds.retain(|kind| !matches!(kind.family(), Family::Initial(_)));
            kinds.extend(strategy);
            kinds.sort_unstable();
            kinds.dedup();
        }
        Ok(kinds)
    }

    /// The phases of a list: those named, or the default ones with changes, such as `+tempering`. The verifier is always among them, and so
    /// is a first colouring.
    pub fn listed(names: &[String]) -> Result<Vec<Self>, PhaseListError> {
        let parse = |name: &str| match Self::aliased(name) {
            Some(kinds) => Ok(kinds.to_vec()),
            None => name.parse::<Self>().map(|kind| vec![kind]).map_err(PhaseListError::Unknown),
        };
        let is_change = |name: &&String| name.starts_with(['+', '-']);
        let mut kinds = Vec::new();
        if names.iter().any(|name| is_change(&name)) {
            if let Some(plain) = names.iter().find(|name| !is_change(name)) {
                return Err(PhaseListError::Mixed(plain.clone()));
            }
            kinds = Self::defaults();
            for name in names {
                let named = parse(&name[1..])?;
                kinds.retain(|known| !named.contains(known));
                if name.starts_with('+') {
                    kinds.extend(named);
                }
            }
        } else {
            for name in names {
                kinds.extend(parse(name.trim())?);
            }
        }
        if !kinds.contains(&Self::Validation) {
            kinds.push(Self::Validation);
        }
        if !kinds.iter().any(|kind| matches!(kind.family(), Family::Initial(_))) {
            kinds.push(Self::Dsatur);
        }
        kinds.sort_unstable();
        kinds.dedup();
        Ok(kinds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Result<Vec<&'static str>, PhaseListError> {
        let names: Vec<String> = text.split(',').map(str::to_owned).collect();
        Ok(PhaseKind::listed(&names)?.into_iter().map(PhaseKind::name).collect())
    }

    #[test]
    fn a_list_gets_a_first_colouring_and_the_verifier() {
        assert_eq!(named("tabu,memetic").unwrap(), ["dsatur", "tabu", "memetic", "validation"]);
        assert_eq!(named("tabu,rlf,tabu").unwrap(), ["rlf", "tabu", "validation"]);
        let changed = named("+tempering,-tabu").unwrap();
        assert_eq!(
            named("quantum,active_inference,rlf").unwrap(),
            ["rlf", "inference", "annealing", "validation"]
        );
        assert_eq!(named("ensemble,-rlf").unwrap_err(), PhaseListError::Mixed("ensemble".into()));
        let alone = named("-ensemble,+thermodynamic").unwrap();
        assert!(
            alone.contains(&"tempering") && !alone.contains(&"tabu") && alone.contains(&"rlf"),
            "{alone:?}"
        );
        assert!(changed.contains(&"tempering") && !changed.contains(&"tabu") && changed.contains(&"memetic"));
    }

    #[test]
    fn a_strategy_gives_the_first_colourings_that_a_list_does_not_name() {
        let chosen = |list: Option<&str>| {
            let names = list.map(|text| text.split(',').map(str::to_owned).collect::<Vec<String>>());
            let kinds = PhaseKind::chosen(names.as_deref(), Some(&[PhaseKind::Rlf, PhaseKind::Spectral]));
            kinds.unwrap().into_iter().map(PhaseKind::name).collect::<Vec<_>>()
        };
        assert_eq!(chosen(Some("tabu")), ["rlf", "spectral", "tabu", "validation"]);
        assert_eq!(chosen(Some("tabu,greedy")), ["greedy", "tabu", "validation"]);
        let defaults = chosen(None);
        assert!(defaults.contains(&"spectral") && !defaults.contains(&"dsatur"), "{defaults:?}");
        assert_eq!(PhaseKind::chosen(None, None).unwrap(), PhaseKind::defaults());
    }

    #[test]
    fn an_unknown_phase_is_named() {
        let message = named("tabu,simplex").unwrap_err().to_string();
        assert!(message.starts_with("--phases: there is no phase `simplex`; the phases are "), "{message}");
        assert!(named("tabu,+rlf").unwrap_err().to_string().contains("write +tabu"));
    }
}
