use super::*;

fn float(low: f64, high: f64) -> Domain {
    Domain::Float { low, high, step: None, log: false }
}

fn messages(params: Vec<Param>) -> Vec<String> {
    match (Space { params }).validate() {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn each_mistake_has_its_message() {
    let text = |text: &str| Choice::Text(text.into());
    let cases = [
        (float(2.0, 1.0), 1.5, "parameter `p`: the lower bound 2 is above the upper bound 1"),
        (float(0.0, f64::INFINITY), 1.0, "parameter `p`: the range 0 to inf is not finite"),
        (float(f64::NAN, 1.0), 1.0, "parameter `p`: the range NaN to 1 is not finite"),
        (
            Domain::Float { low: 0.0, high: 1.0, step: Some(0.0), log: false },
            0.0,
            "parameter `p`: the step 0 is not positive",
        ),
        (
            Domain::Float { low: 0.0, high: 1.0, step: Some(1e-12), log: false },
            0.0,
            "parameter `p`: the step 0.000000000001 is too fine for its range; leave it out for a continuous parameter",
        ),
        (
            Domain::Float { low: 0.0, high: 1.0, step: None, log: true },
            0.5,
            "parameter `p`: `log` needs a lower bound above 0, and it is 0",
        ),
        (
            Domain::Int { low: 1, high: 9, step: 0, log: false },
            1.0,
            "parameter `p`: the step 0 is not positive",
        ),
        (
            Domain::Int { low: 0, high: i64::MAX, step: 1, log: false },
            1.0,
            "parameter `p`: 9223372036854775807 is beyond the largest integer parameter, ±2^52",
        ),
        (Domain::Choice { options: vec![] }, 0.0, "parameter `p`: the list of choices is empty"),
        (
            Domain::Choice { options: vec![text("a"), text("a")] },
            0.0,
            "parameter `p`: the choice \"a\" is listed twice",
        ),
        (
            Domain::Choice { options: vec![Choice::Number(f64::NAN)] },
            0.0,
            "parameter `p`: the choice NaN is not a finite number",
        ),
        (
            Domain::Int { low: 1, high: 9, step: 2, log: false },
            4.0,
            "parameter `p`: the default 4 is not an integer from 1 to 9 in steps of 2",
        ),
        (float(1.0, 2.0), 3.0, "parameter `p`: the default 3 is not a number from 1 to 2"),
        (
            Domain::Choice { options: vec![text("a"), Choice::Number(2.0)] },
            2.0,
            "parameter `p`: the default 2 is not one of \"a\", 2",
        ),
        (Domain::Bool, f64::NAN, "parameter `p`: the default NaN is not true or false"),
    ];
    for (domain, default, message) in cases {
        assert_eq!(messages(vec![Param::new("p", domain, default)]), [message]);
    }
}

#[test]
fn all_mistakes_are_reported_together() {
    let mut outside = Param::new("k", float(0.0, 1.0), 0.5);
    outside.fixed = Some(f64::INFINITY);
    let twice = Param::new("k", float(0.0, 1.0), 0.5);
    assert_eq!(
        messages(vec![outside, twice]),
        ["parameter `k`: the fixed value inf is not a number from 0 to 1", "parameter `k` is defined twice"]
    );
}

#[test]
fn a_fixed_value_may_lie_outside_the_range() {
    let mut param = Param::new("n", Domain::Int { low: 5, high: 60, step: 5, log: false }, 5.0);
    param.fixed = Some(3.0);
    assert!(messages(vec![param.clone()]).is_empty());
    param.fixed = Some(3.5);
    assert_eq!(messages(vec![param]).len(), 1);
}

#[test]
fn cardinality_counts_free_parameters_only() {
    let int = Param::new("n", Domain::Int { low: 5, high: 60, step: 5, log: false }, 5.0);
    let switch = Param::new("s", Domain::Bool, 0.0);
    let mut real = Param::new("r", float(0.0, 1.0), 0.5);
    let space = Space { params: vec![int.clone(), switch.clone(), real.clone()] };
    assert_eq!((space.cardinality(), space.n_free()), (None, 3));
    real.fixed = Some(0.25);
    let space = Space { params: vec![int, switch, real] };
    assert_eq!((space.cardinality(), space.n_free()), (Some(24), 2));
    assert_eq!(Space::default().cardinality(), Some(1));
}

#[test]
fn a_condition_on_an_inactive_parent_sees_its_default() {
    let switch = Param::new("on", Domain::Bool, 0.0);
    let mut child = Param::new("child", Domain::Bool, 1.0);
    child.when = Some(Condition::new(|row| row[0] == 1.0));
    let mut grandchild = Param::new("grandchild", Domain::Bool, 0.0);
    grandchild.when = Some(Condition::new(|row| row[1] == 1.0));
    let space = Space { params: vec![switch, child, grandchild] };
    let mut points = Points::new(3);
    points.push(&[0.0, 0.0, 1.0]);
    points.push(&[1.0, 0.0, 1.0]);
    points.push(&[1.0, 1.0, 1.0]);
    space.deactivate(&mut points);
    // In the first point `child` is off and reads as its default 1, so that `grandchild` is active.
    let active: Vec<[bool; 3]> =
        (0..3).map(|i| std::array::from_fn(|param_idx| !points.value(i, param_idx).is_nan())).collect();
    assert_eq!(active, [[true, false, true], [true, true, false], [true, true, true]]);
    let mut row = [0.0, f64::NAN, 1.0];
    space.fill_inactive(&mut row);
    assert_eq!(row, [0.0, 1.0, 1.0]);
    assert!(space.default_point()[1].is_nan());
}
