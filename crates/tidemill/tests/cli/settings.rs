//! `tidemill.toml`: flags win over it, it wins over the strategy, and slips in it are errors.

use crate::support::{Place, timeless};

#[test]
fn flags_win_over_the_file_and_the_file_over_the_strategy() {
    let place = Place::with_bars();
    let plain = place.json("backtest zscore-dip --data lcg.csv");
    assert_eq!(
        (&plain["execution"]["fee_bps"], &plain["execution"]["fill"]),
        (&2.0.into(), &"next_open".into())
    );

    place.write(
        "tidemill.toml",
        "[data]\nfiles = ['lcg.csv']\n[run]\nthreads = 1\n[sweep]\ntrials = 37\ntop = 2\nseed = 9\nsampler = 'random'\n[execution]\nfee_bps = 7\nsizing = { fraction = 0.5 }\n",
    );
    let from_file = place.json("backtest zscore-dip");
    assert_eq!(from_file["execution"]["fee_bps"], 7.0);
    assert_eq!(from_file["execution"]["sizing"]["fraction"], 0.5);
    assert_eq!(
        from_file["execution"]["slippage_bps"], 1.0,
        "what the file does not say comes from the strategy"
    );
    assert_eq!(from_file["execution"]["cooldown"], 0, "and then from the defaults");
    assert_eq!(from_file["data"], plain["data"]);
    let from_flag = place.json("backtest zscore-dip --set fee_bps=1");
    assert_eq!(from_flag["execution"]["fee_bps"], 1.0);

    let said = place.ok("sweep zscore-dip --objective trades --device cpu --json");
    assert!(said.stderr.contains("sampler random in batches of 37, on the CPU, 1 thread"), "{}", said.stderr);
    let from_file = timeless(said.json());
    assert_eq!(from_file["trials"], 37);
    assert_eq!(from_file["best"].as_array().unwrap().len(), 2);
    let flags = "--trials 12 --top 1 --seed 10 --sampler sobol --threads 2 --device cpu";
    let said = place.ok(&format!("sweep zscore-dip --objective trades --json {flags}"));
    assert!(said.stderr.contains("sampler sobol in batches of 12, on the CPU, 2 threads"), "{}", said.stderr);
    let from_flags = said.json();
    assert_eq!(from_flags["trials"], 12);
    assert_eq!(from_flags["best"].as_array().unwrap().len(), 1);
    let seeded = timeless(place.json("sweep zscore-dip --objective trades --seed 10"));
    assert_ne!(seeded["best"], from_file["best"], "the seed of the file counts");

    place.write("other.toml", "[execution]\nfee_bps = 3\n");
    let other = place.json("backtest zscore-dip --data lcg.csv --config other.toml");
    assert_eq!(other["execution"]["fee_bps"], 3.0, "--config replaces the file of the folder");
}

#[test]
fn slips_in_the_file_are_refused_with_their_place() {
    let place = Place::with_bars();
    for (content, reason) in [
        ("foo = 3", "tidemill.toml"),
        ("[sweep]\ntrails = 3", "unknown field `trails`"),
        ("[sweep]\ntrials = 'x'", "line 2"),
        ("[sweep]\ntrials = -3", "line 2"),
        ("[sweep]\ntrials = 0", "trials"),
        ("[sweep]\nsampler = 'foo'", "random, sobol, grid, tpe"),
        ("[run]\nthreads = 0", "threads"),
        ("[run]\nthreads = 10000000", "threads"),
        ("[data]\nfiles = 'x.csv'", "line 2"),
        ("[execution]\nfee_bpss = 7", "fee_bpss"),
        ("[execution]\nfee_bps = 'x'", "fee_bps"),
        ("no toml", "line 1"),
    ] {
        place.write("tidemill.toml", content);
        place.refused("sweep zscore-dip --data lcg.csv", reason);
    }
    place.write("tidemill.toml", "[data]\nfiles = ['nosuch.csv']\n");
    place.refused("backtest zscore-dip", "nosuch.csv");
    place.ok("backtest zscore-dip --data lcg.csv");
}
