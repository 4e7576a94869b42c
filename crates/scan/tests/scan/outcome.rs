use tidemill_market::atc::{AtcOptions, Class};
use tidemill_scan::{RecordContext, ScanEvent, ScanOptions, Scanner, SkipReason, Stage, Symbol};

use crate::rig::{all_signals, on_cpu, ragged, symbols, walk};

/// Series S1 of the reference.
fn s1() -> Vec<f64> {
    (0..400).map(|i| 100.0 + 10.0 * (f64::from(i) / 7.0).sin() + 0.05 * f64::from(i)).collect()
}

#[test]
fn the_reference_series_has_the_reference_signals() {
    let options = ScanOptions { history: true, ..ScanOptions::default() };
    let all = [("S1".to_string(), s1())];
    let scanned = on_cpu(&options, &all);
    let row = &scanned.rows[0];
    assert_eq!((row.signal, row.trend, row.class, row.bars), (1.0, 1, Class::Long, 400));
    assert_eq!(row.price, all[0].1[399]);
    let average = row.average.as_ref().unwrap();
    for (bar, expected) in [(27, -0.1712303891257045), (100, 0.606461056358246), (300, -0.3394366993665249)] {
        assert!((average[bar] - expected).abs() < 1e-12, "bar {bar}: {}", average[bar]);
    }
    let sum: f64 = average.iter().sum();
    assert!((sum - 17.95854424449425).abs() < 1e-11, "{sum}");
    let whole = Scanner::cpu(ScanOptions::default()).unwrap().average(&all[0].1).unwrap();
    assert_eq!(&whole, average);
}

#[test]
fn every_symbol_is_in_one_list_in_the_order_of_the_input() {
    let all = ragged();
    let scanned = on_cpu(&ScanOptions { min_signal: 0.3, ..ScanOptions::default() }, &all);
    let mut seen: Vec<(usize, &str)> = Vec::new();
    seen.extend(scanned.rows.iter().map(|row| (row.index, row.symbol.as_str())));
    seen.extend(scanned.skipped.iter().map(|skipped| (skipped.index, skipped.symbol.as_str())));
    seen.extend(scanned.filtered.iter().map(|filtered| (filtered.index, filtered.symbol.as_str())));
    for list in [
        scanned.rows.iter().map(|row| row.index).collect::<Vec<_>>(),
        scanned.skipped.iter().map(|skipped| skipped.index).collect(),
        scanned.filtered.iter().map(|filtered| filtered.index).collect(),
    ] {
        assert!(!list.is_empty() && list.is_sorted(), "{list:?}");
    }
    seen.sort_unstable();
    let expected: Vec<(usize, &str)> = all.iter().map(|(name, _)| name.as_str()).enumerate().collect();
    assert_eq!(seen, expected);
}

#[test]
fn what_cannot_be_scanned_is_skipped_with_its_reason() {
    let (good, short) = (walk(1, 100), walk(2, 33));
    let mut nan = walk(3, 100);
    nan[99] = f64::NAN;
    let mut zero = walk(4, 100);
    zero[99] = 0.0;
    let all = [
        Symbol { name: "good", closes: &good },
        Symbol { name: "none", closes: &[] },
        Symbol { name: "short", closes: &short },
        Symbol { name: "nan", closes: &nan },
        Symbol { name: "zero", closes: &zero },
    ];
    let scanned = Scanner::cpu(all_signals()).unwrap().scan(&all, |_| ()).unwrap();
    let reasons: Vec<String> =
        scanned.skipped.iter().map(|skipped| format!("{}: {}", skipped.symbol, skipped.reason)).collect();
    assert_eq!(
        reasons,
        [
            "none: it has no bars",
            "short: it has 33 bars, the longest moving average needs 34",
            "nan: its last price is NaN",
            "zero: its last price is 0",
        ]
    );
    let errors = scanned.skipped.iter().filter(|skipped| skipped.reason.is_error()).count();
    assert_eq!(errors, 2, "a short history is no error");
    // The last bars only: a symbol with fewer would have another window.
    let options = ScanOptions { bars: Some(60), ..all_signals() };
    let scanned = Scanner::cpu(options).unwrap().scan(&all, |_| ()).unwrap();
    assert_eq!(scanned.skipped[1].reason, SkipReason::FewBars { bars: 33, wanted: 60 });
    let tail = [("good".to_string(), good[40..].to_vec())];
    assert_eq!(scanned.rows[0].signal.to_bits(), on_cpu(&all_signals(), &tail).rows[0].signal.to_bits());
    assert_eq!(scanned.rows[0].bars, 60);
    let options = ScanOptions { atc: AtcOptions { cutout: 100, ..AtcOptions::default() }, ..all_signals() };
    let scanned = Scanner::cpu(options).unwrap().scan(&all[..1], |_| ()).unwrap();
    assert_eq!(scanned.skipped[0].reason.to_string(), "it has 100 bars, `cutout` leaves out 100");
}

#[test]
fn a_signal_that_equals_the_least_one_is_kept() {
    let all: Vec<(String, Vec<f64>)> = (0..40).map(|seed| (format!("{seed}"), walk(seed, 90))).collect();
    let scanned = on_cpu(&all_signals(), &all);
    let signal =
        scanned.rows.iter().map(|row| row.signal.abs()).find(|size| *size > 0.0 && *size < 1.0).unwrap();
    let kept = on_cpu(&ScanOptions { min_signal: signal, ..ScanOptions::default() }, &all);
    assert!(kept.rows.iter().any(|row| row.signal.abs() == signal));
    assert!(kept.rows.iter().all(|row| row.signal.abs() >= signal));
    let n_weaker = scanned.rows.iter().filter(|row| row.signal.abs() < signal).count();
    assert_eq!(kept.filtered.len(), n_weaker);
    let above = on_cpu(&ScanOptions { min_signal: signal.next_up(), ..ScanOptions::default() }, &all);
    assert!(above.rows.len() < kept.rows.len());
}

#[test]
fn lists_are_ranked_by_strength_and_equal_signals_by_name() {
    let mut all: Vec<(String, Vec<f64>)> =
        (0..60).map(|seed| (format!("N{:02}", 59 - seed), walk(seed, 80))).collect();
    // Twins, the later name first.
    all.push(("Z".into(), all[7].1.clone()));
    all.push(("A".into(), all[7].1.clone()));
    let scanned = on_cpu(&all_signals(), &all);
    let ranking = scanned.ranking();
    assert_eq!(ranking.long.len() + ranking.short.len() + ranking.flat.len(), 62);
    assert!(ranking.long.len() > 5 && ranking.short.len() > 5);
    for pair in ranking.long.windows(2) {
        assert!((-pair[0].signal, &pair[0].symbol) < (-pair[1].signal, &pair[1].symbol));
    }
    for pair in ranking.short.windows(2) {
        assert!((pair[0].signal, &pair[0].symbol) < (pair[1].signal, &pair[1].symbol));
    }
    assert!(
        ranking.long.iter().all(|row| row.signal > 0.0) && ranking.short.iter().all(|row| row.signal < 0.0)
    );
    let names: Vec<&str> = ranking.long.iter().chain(&ranking.short).map(|row| row.symbol.as_str()).collect();
    let place = |name: &str| names.iter().position(|other| *other == name).unwrap();
    assert!(place("A") < place("N52") && place("N52") < place("Z"));
}

#[test]
fn options_that_mean_nothing_are_refused() {
    for (options, what) in [
        (ScanOptions { min_signal: -0.1, ..ScanOptions::default() }, "min_signal = -0.1"),
        (ScanOptions { min_signal: f64::NAN, ..ScanOptions::default() }, "min_signal = NaN"),
        (ScanOptions { bars: Some(0), ..ScanOptions::default() }, "bars = 0"),
        (
            ScanOptions { atc: AtcOptions { ema_len: 0, ..AtcOptions::default() }, ..ScanOptions::default() },
            "ema_len",
        ),
    ] {
        let error = Scanner::cpu(options).err().unwrap().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn progress_ends_with_the_last_symbol_and_is_recorded() {
    let all: Vec<(String, Vec<f64>)> = (0..1_100).map(|seed| (seed.to_string(), walk(seed, 34))).collect();
    let mut batches = Vec::new();
    let mut scanner = Scanner::cpu(ScanOptions::default()).unwrap();
    scanner
        .scan(&symbols(&all), |event| match event {
            ScanEvent::Batch(batch) => batches.push(batch),
            other => panic!("{other:?}"),
        })
        .unwrap();
    assert_eq!(batches.iter().map(|batch| batch.symbols).sum::<usize>(), 1_100);
    assert_eq!(batches.last().map(|batch| (batch.done, batch.total)), Some((1_100, 1_100)));
    let context = RecordContext { run: "scan-1".into(), fallback: None };
    let records = ScanEvent::Batch(batches[1].clone()).to_events(&context);
    assert_eq!((records.len(), batches[1].stages[0].stage), (1, Stage::Kernel));
    let json = serde_json::to_value(&records[0]).unwrap();
    assert_eq!((&json["phase"], &json["step"]), (&"kernel".into(), &"batch_1".into()));
    assert_eq!((&json["device"]["mode"], &json["values"]["symbols"]), (&"cpu".into(), &1_100.into()));
    assert_eq!(json["values"]["symbols_of_batch"], 76);
}
