//! Properties of the maps between domains and the unit interval, over random domains.

use proptest::prelude::*;
use tidemill_search::{Choice, Domain, Param, Space};

fn any_float() -> impl Strategy<Value = Domain> {
    let step = prop_oneof![
        Just(None),
        (1e-3..10.0_f64).prop_map(Some),
        (1_u32..50).prop_map(|n| Some(f64::from(n) / 100.0))
    ];
    (-1e3..1e3_f64, 0.0..1e3_f64, step, any::<bool>()).prop_map(|(low, width, step, log)| {
        let low = if log { low.abs() + 1e-6 } else { low };
        Domain::Float { low, high: low + width, step, log }
    })
}

fn any_int() -> impl Strategy<Value = Domain> {
    (-100_000..100_000_i64, 0..1_000_000_i64, 1..1000_i64, any::<bool>()).prop_map(
        |(low, width, step, log)| {
            let low = if log { low.abs() + 1 } else { low };
            Domain::Int { low, high: low + width, step, log }
        },
    )
}

fn any_domain() -> impl Strategy<Value = Domain> {
    let choice = (1..20_usize).prop_map(|n| Domain::Choice {
        options: (0..n).map(|idx| Choice::Number(idx as f64 * 0.5)).collect(),
    });
    prop_oneof![any_float(), any_int(), choice, Just(Domain::Bool)]
}

proptest! {
    #[test]
    fn units_map_into_the_domain_in_order(domain in any_domain(), a in 0.0..1.0_f64, b in 0.0..1.0_f64) {
        let (low, high) = (a.min(b), a.max(b));
        let (from_low, from_high) = (domain.from_unit(low), domain.from_unit(high));
        prop_assert!(domain.contains(from_low), "{} of {:?}", from_low, domain);
        prop_assert!(domain.contains(from_high), "{} of {:?}", from_high, domain);
        prop_assert!(from_low <= from_high);
    }

    #[test]
    fn values_return_from_the_unit_interval(domain in any_domain(), unit in 0.0..1.0_f64) {
        let value = domain.from_unit(unit);
        let back = domain.to_unit(value);
        prop_assert!((0.0..=1.0).contains(&back));
        let again = domain.from_unit(back);
        if domain.n_values().is_some() {
            prop_assert_eq!(value, again, "unit {}", back);
        } else {
            prop_assert!((value - again).abs() <= 1e-9 * value.abs().max(1.0));
            prop_assert!((unit - back).abs() <= 1e-6);
        }
    }

    #[test]
    fn decoded_values_encode_back(domain in any_domain(), unit in 0.0..1.0_f64) {
        let value = domain.from_unit(unit);
        let decoded = domain.decode(value).expect("a value of the domain");
        prop_assert_eq!(domain.encode(&decoded), Some(value));
    }

    #[test]
    fn grids_are_ascending_values_of_the_domain(domain in any_domain(), max_points in 1..200_usize) {
        let values = domain.grid_values(max_points);
        prop_assert!(!values.is_empty());
        prop_assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", values);
        prop_assert!(values.iter().all(|value| domain.contains(*value)), "{:?}", values);
        if matches!(domain, Domain::Float { .. } | Domain::Int { .. }) {
            prop_assert!(values.len() <= max_points);
            if max_points > 1 {
                prop_assert_eq!(values[0], domain.from_unit(0.0));
                prop_assert_eq!(values[values.len() - 1], domain.from_unit(1.0));
            }
        }
    }

    #[test]
    fn any_numbers_are_judged_without_panic(
        low in any::<f64>(), high in any::<f64>(), step in proptest::option::of(any::<f64>()), log in any::<bool>(),
        default in any::<f64>(), int_low in any::<i64>(), int_high in any::<i64>(), int_step in any::<i64>(),
    ) {
        let domains = [
            Domain::Float { low, high, step, log },
            Domain::Int { low: int_low, high: int_high, step: int_step, log },
        ];
        for domain in domains {
            let is_valid = Space { params: vec![Param::new("p", domain.clone(), default)] }.validate().is_ok();
            if is_valid {
                prop_assert!(domain.contains(domain.from_unit(0.5)));
            }
        }
    }
}
