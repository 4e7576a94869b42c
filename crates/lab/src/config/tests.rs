use super::*;

fn read(config: toml::Table) -> StudyConfig {
    StudyConfig::read(&StudyHeader {
        version: "0.1.0".into(),
        semantics: 2,
        seed: 7,
        data_hash: "abc".into(),
        config,
    })
}

#[test]
fn a_header_without_a_configuration_still_says_seed_and_version() {
    let lines = read(toml::Table::new()).lines();
    assert_eq!(lines, [("sampler", "seed 7".to_string()), ("version", "0.1.0, semantics 2".to_string())]);
}

fn first_version() -> toml::Table {
    toml::toml! {
        fixed = { window = 30 }
        [about]
        data = "btc.csv, 12,345 bars of 1h"
        file = "ema.toml"
        [strategy]
        name = "ema"
        [objective]
        maximize = "sharpe"
        further = ["calmar"]
        require = "trades >= 30"
        reduce = "mean"
        [segments]
        split = 0.7
        [sweep]
        trials = 5000
        sampler = "nsga2"
        batch = 64
        lag = 1
        enqueue = ["window=3", "window=4"]
        [data]
        symbols = 2
        bars = 12345
    }
}

#[test]
fn the_first_version_is_read() {
    let config = read(first_version());
    let lines: Vec<String> = config.lines().iter().map(|(name, text)| format!("{name}: {text}")).collect();
    assert_eq!(
        lines,
        [
            "strategy: ema (ema.toml)",
            "data: btc.csv, 12,345 bars of 1h",
            &format!("pool: {POOL_NOTE}"),
            "parts: in-sample the first 0.7",
            "objective: sharpe; calmar, mean of segments, where trades >= 30",
            "sampler: nsga2, seed 7, batch 64, lag 1, after 2 known points",
            "fixed: window=30",
            "version: 0.1.0, semantics 2",
        ]
    );
    assert_eq!(config.sweep.trials, Some(5000));
    assert_eq!(config.objective_names(2), ["sharpe", "calmar"]);
    assert_eq!(config.objective_names(3), ["objective", "objective_2", "objective_3"]);
}

#[test]
fn what_is_written_is_read_back_and_a_study_of_the_first_version_goes_on() {
    let config = read(first_version());
    let again = StudyConfig::read(&config.header().unwrap());
    assert_eq!(config, again);
    let dir = tempfile::tempdir().unwrap();
    let header = StudyHeader { config: first_version(), ..config.header().unwrap() };
    drop(StudyFolder::create(dir.path(), &header).unwrap());
    let opened = config.open_folder(dir.path()).unwrap();
    assert!(opened.is_resumed);
    drop(opened);
    let other = StudyConfig { sweep: SweepConfig { lag: Some(2), ..config.sweep.clone() }, ..config };
    let error = other.open_folder(dir.path()).unwrap_err().to_string();
    assert!(error.contains("sweep.lag: 1 in the study, 2 requested"), "{error}");
}

#[test]
fn more_trials_are_stored_and_fewer_are_refused_with_the_cure() {
    let dir = tempfile::tempdir().unwrap();
    let of = |trials, lag| {
        let config = read(first_version());
        let sweep = SweepConfig { trials: Some(trials), lag: Some(lag), ..config.sweep.clone() };
        StudyConfig { sweep, ..config }
    };
    drop(of(5000, 1).open_or_raise(dir.path()).unwrap());
    let opened = of(8000, 1).open_or_raise(dir.path()).unwrap();
    assert!(opened.is_resumed);
    drop(opened);
    let stored = || StudyConfig::read(StudyFolder::open(dir.path()).unwrap().header()).sweep;
    assert_eq!((stored().trials, stored().plan_trials), (Some(8000), Some(5000)));
    let error = of(5000, 1).open_or_raise(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains("has 8,000 trials, and 5,000 are requested") && error.contains("hint: --trials 8000"),
        "{error}"
    );
    // Where more differs, all of it is listed, and nothing is stored.
    let error = of(5000, 2).open_or_raise(dir.path()).unwrap_err().to_string();
    assert!(error.contains("sweep.lag: 1 in") && error.contains("sweep.trials: 8000 in"), "{error}");
    of(9000, 2).open_or_raise(dir.path()).unwrap_err();
    assert_eq!(stored().trials, Some(8000));
    // A walk-forward opens its windows without raising them.
    let error = of(9000, 1).open_folder(dir.path()).unwrap_err().to_string();
    assert!(error.contains("sweep.trials: 8000 in the study, 9000 requested"), "{error}");
}

#[test]
fn a_grid_keeps_its_number_of_trials() {
    let dir = tempfile::tempdir().unwrap();
    let of = |trials| {
        let config = read(first_version());
        let sweep = SweepConfig {
            trials: Some(trials),
            plan_trials: Some(5000),
            sampler: Some("grid".into()),
            ..config.sweep.clone()
        };
        StudyConfig { sweep, ..config }
    };
    drop(of(5000).open_or_raise(dir.path()).unwrap());
    for trials in [8000, 100] {
        let error = of(trials).open_or_raise(dir.path()).unwrap_err().to_string();
        assert!(error.contains("a grid of 5,000 trials") && error.contains("hint:"), "{error}");
    }
    drop(of(5000).open_or_raise(dir.path()).unwrap());
}

#[test]
fn what_is_not_understood_is_left_out() {
    let config = read(toml::toml! {
        segments = "all of it"
        [sweep]
        trials = "many"
        [strategy]
        name = "ema"
    });
    assert_eq!(config.strategy.name.as_deref(), Some("ema"));
    assert_eq!((config.sweep, config.segments), (SweepConfig::default(), Layout::default()));
}

#[test]
fn an_objective_is_reduced_only_where_there_are_several_segments() {
    let mut config = read(first_version());
    config.data.symbols = Some(1);
    assert_eq!(config.reduction(), None);
    config.segments.folds = Some(4);
    assert_eq!(config.reduction(), Some("mean"));
    config.segments.folds = None;
    config.data.symbols = Some(3);
    assert_eq!(config.reduction(), Some("mean"));
    config.objective.reduce = Some("pooled".into());
    assert_eq!(config.reduction(), None);
}

/// Another database may have other hours, so that a study with sessions does not go on with it; without sessions it does not matter.
#[test]
fn the_time_zone_database_is_part_of_a_study_with_sessions() {
    let config = |enter: &str| {
        let text = format!(
            "[params]\nn = {{ int = [2, 9] }}\n[long]\nenter = \"close > sma(close, n) and {enter}\"\n"
        );
        let strategy = Strategy::parse("a.toml", &text, &Overrides::default()).unwrap();
        let data = Dataset::of(tidemill_market::Universe { symbols: vec![tidemill_market::synth::lcg(50)] });
        let chosen = ChosenPlan { trials: 10, batch: 5, lag: 0 };
        StudyConfig::new(&strategy, &data, &Layout::default(), &SearchOptions::default(), chosen, &[])
            .unwrap()
    };
    assert_eq!(config("hour > 3").strategy.zone_database, None);
    let with_session = config("session('Europe/Berlin', '09:00-17:30')");
    let version = tidemill_market::session::zone_database();
    assert_eq!(with_session.strategy.zone_database.as_deref(), Some(version));
    let dir = tempfile::tempdir().unwrap();
    drop(with_session.open_folder(dir.path()).unwrap());
    drop(with_session.open_folder(dir.path()).unwrap());
    let mut other = with_session;
    other.strategy.zone_database = Some("1999a".into());
    let error = other.open_folder(dir.path()).unwrap_err().to_string();
    assert!(error.contains("zone_database"), "{error}");
}

#[test]
fn costs_by_kind_are_stored_and_read_back() {
    let text = "[params]\nn = { int = [2, 9] }\n[long]\nenter = \"close > sma(close, n)\"\n[execution]\nfee_bps = { market = 5.5, limit = 2 }\nslippage_bps = 3\n";
    let strategy = Strategy::parse("a.toml", text, &Overrides::default()).unwrap();
    let data = Dataset::of(tidemill_market::Universe { symbols: vec![tidemill_market::synth::lcg(50)] });
    let chosen = ChosenPlan { trials: 10, batch: 5, lag: 0 };
    let config =
        StudyConfig::new(&strategy, &data, &Layout::default(), &SearchOptions::default(), chosen, &[])
            .unwrap();
    assert_eq!(config.execution["slippage_bps"].as_float(), Some(3.0), "one number stays one");
    let again = StudyConfig::read(&config.header().unwrap()).strategy(std::iter::empty()).unwrap().unwrap();
    assert_eq!(again.execution, strategy.execution);
    assert_eq!(again.execution.fee_bps.limit, 2.0);
}

/// Before slippage differed by kind of order, a file without costs meant 5 basis points for all.
#[test]
fn a_study_keeps_the_costs_that_were_usual_when_it_was_made() {
    let text = "[params]\nn = { int = [2, 9] }\n[long]\nenter = \"close > sma(close, n)\"\nstop = \"low\"\n";
    let data = Dataset::of(tidemill_market::Universe { symbols: vec![tidemill_market::synth::lcg(50)] });
    let config = |set: &[(String, String)]| {
        let overrides = Overrides { set: set.to_vec(), ..Overrides::default() };
        let strategy = Strategy::parse("a.toml", text, &overrides).unwrap();
        let chosen = ChosenPlan { trials: 10, batch: 5, lag: 0 };
        StudyConfig::new(&strategy, &data, &Layout::default(), &SearchOptions::default(), chosen, &[])
            .unwrap()
    };
    let asked = config(&[]);
    let mut former = asked.header().unwrap();
    let execution = former.config["execution"].as_table_mut().unwrap();
    execution.insert("slippage_bps".into(), toml::Value::Float(5.0));
    let strategy = StudyConfig::read(&former).strategy(std::iter::empty()).unwrap().unwrap();
    assert_eq!(strategy.execution.slippage_bps, tidemill_backtest::strategy::CostBps::all(5.0));
    // Going on with it under the new costs is refused, with them in the old ones it is the same study.
    let dir = tempfile::tempdir().unwrap();
    drop(StudyConfig::read(&former).open_folder(dir.path()).unwrap());
    let error = asked.open_folder(dir.path()).unwrap_err().to_string();
    assert!(error.contains("execution.slippage_bps"), "{error}");
    drop(config(&[("slippage_bps".into(), "5".into())]).open_folder(dir.path()).unwrap());
}
