use super::*;

#[test]
fn every_strategy_meets_every_data_set_and_the_trials_add_up() {
    let strategies = with_profiles(&[]).unwrap();
    assert!(strategies.len() > SHIPPED.len(), "profiles are strategies too");
    let sets = data::generated(1);
    let randoms: Vec<RandomCase> = (0..5).map(|at| random_case(3, at).unwrap()).collect();
    for trials in [1, 1_000, 100_000] {
        let cases = cases(&strategies, &sets, &randoms, trials).unwrap();
        // Two compare symbols, of which two data sets have one alone.
        let n_out = 2 * sets.iter().filter(|set| set.universe.symbols.len() == 1).count();
        assert_eq!(cases.len(), strategies.len() * sets.len() - n_out + randoms.len());
        let n: u64 = cases.iter().map(|case| case.trials).sum();
        assert!(n >= trials && n <= trials + trials / 10 + cases.len() as u64, "{n} of {trials}");
        assert!(cases.iter().all(|case| case.trials > 0 && !case.segments.is_empty()));
    }
}

#[test]
fn large_data_takes_less_and_the_rest_goes_elsewhere() {
    let strategies = with_profiles(&["ema-cross".into()]).unwrap();
    let small = DataSet { name: "small".into(), universe: data::generated(1).remove(0).universe, weight: 1 };
    let mut bars = small.universe.symbols[0].clone();
    bars.ts_ms = (0..4_000_000).collect();
    let large = DataSet { name: "large".into(), universe: Universe { symbols: vec![bars] }, weight: 1 };
    let sets = [small, large];
    let cases = cases(&strategies, &sets, &[], 10_000).unwrap();
    assert_eq!(cases[1].trials, 500);
    assert_eq!(cases[0].trials, 9_500);
}

#[test]
fn random_strategies_follow_from_the_seed() {
    let text = |seed: u64, at: usize| random_case(seed, at).unwrap().strategy.source;
    assert_eq!(text(1, 0), text(1, 0));
    assert_ne!(text(1, 0), text(1, 1));
    assert_ne!(text(1, 0), text(2, 0));
}

#[test]
fn a_difference_is_reported_with_its_case_and_parameters() {
    let strategies = with_profiles(&["zscore-dip".into()]).unwrap();
    let sets = data::generated(1);
    let cases = cases(&strategies, &sets[..2], &[], 10).unwrap();
    let row = [vec![33.0], vec![f64::NAN; strategies[0].params.len() - 1]].concat();
    let difference = Difference { trial: 4, row, part: "LCG".into(), fields: vec![("equity", 1.0, 1.5)] };
    let result = |first: Option<Difference>| CaseResult {
        compared: Compared {
            trials: 7,
            trades: 2_000,
            detailed: 3,
            different: u64::from(first.is_some()),
            first,
        },
        population: 7,
    };
    let same = ParityReport::new(&cases, &[result(None), result(None)]);
    assert_eq!((same.total.trials, same.total.different, same.rows.len()), (14, 0, 2));
    assert!(same.first.is_none());
    let report = ParityReport::new(&cases, &[result(None), result(Some(difference))]);
    assert_eq!(report.total.different, 1);
    let first = report.first.unwrap();
    assert_eq!(first.names, ["zscore-dip", "regimes", "split 0.7"]);
    assert_eq!((first.population, first.difference.trial, first.is_random), (7, 4, false));
    assert_eq!(Value::Object(first.parameters), json!({ &strategies[0].params[0].name: 33 }));
}

#[test]
fn a_strategy_is_left_out_where_the_symbols_it_reads_are_missing() {
    let check = ParityCheck::new(&["btc-gate".into(), "ema-cross".into()], &[], 0, 100, 1).unwrap();
    assert_eq!(check.left_out().unwrap(), [("btc-gate", "lcg"), ("btc-gate", "one bar")]);
    let alone = data::generated(1).remove(0);
    let strategies = with_profiles(&["btc-gate".into()]).unwrap();
    let error = cases(&strategies, &[alone], &[], 10).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("there is no symbol 'BTCUSDT' in the data"), "{error}");
}
