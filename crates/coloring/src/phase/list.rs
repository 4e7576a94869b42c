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

impl PhaseKind {
    /// The phases of a list: those named, or the default ones with changes, such as `+tempering`. The verifier is always among them, and so
    /// is a first colouring.
    pub fn listed(names: &[String]) -> Result<Vec<Self>, PhaseListError> {
        let parse = |name: &str| name.parse::<Self>().map_err(PhaseListError::Unknown);
        let is_change = |name: &&String| name.starts_with(['+', '-']);
        let mut kinds = Vec::new();
        if names.iter().any(|name| is_change(&name)) {
            if let Some(plain) = names.iter().find(|name| !is_change(name)) {
                return Err(PhaseListError::Mixed(plain.clone()));
            }
            kinds = Self::defaults();
            for name in names {
                let kind = parse(&name[1..])?;
                kinds.retain(|known| *known != kind);
                if name.starts_with('+') {
                    kinds.push(kind);
                }
            }
        } else {
            for name in names {
                kinds.push(parse(name.trim())?);
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
        assert!(changed.contains(&"tempering") && !changed.contains(&"tabu") && changed.contains(&"memetic"));
    }

    #[test]
    fn an_unknown_phase_is_named() {
        let message = named("tabu,simplex").unwrap_err().to_string();
        assert!(message.starts_with("--phases: there is no phase `simplex`; the phases are "), "{message}");
        assert!(named("tabu,+rlf").unwrap_err().to_string().contains("write +tabu"));
    }
}
