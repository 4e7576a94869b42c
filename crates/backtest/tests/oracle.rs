//! The engine against an oracle: a second executor, written from `docs/semantics.md`, that visits every bar and shares nothing.
//!
//! Random strategies, data, parameter sets, execution options and segment layouts; every sum, trade and reason is compared bit for
//! bit. `PROPTEST_CASES` sets the number of cases; `ORACLE_INPUT` names a file with the numbers of a failure, to repeat it.

#[path = "oracle/book.rs"]
mod book;
#[path = "oracle/case.rs"]
mod case;
#[path = "oracle/coverage.rs"]
mod coverage;
#[path = "oracle/eval.rs"]
mod eval;
#[path = "oracle/walk.rs"]
mod walk;

use std::cell::RefCell;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tidemill_backtest::random::{data, tape, text};

use case::Case;
use coverage::Coverage;

fn config(cases: u32) -> Config {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { cases };
    Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() }
}

/// The numbers of the case to repeat, if there is one.
fn repeated() -> Option<Vec<u32>> {
    let path = std::env::var_os("ORACLE_INPUT")?;
    let text = std::fs::read_to_string(path).expect("a file with the numbers of a `minimal failing input`");
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty());
    Some(numbers.map(|number| number.parse().expect("a number below 2^32")).collect())
}

#[test]
fn the_engine_equals_the_oracle_bit_for_bit() {
    let coverage = RefCell::new(Coverage::default());
    if let Some(numbers) = repeated() {
        return Case::new(&numbers).check(&mut coverage.borrow_mut()).unwrap_or_else(|what| panic!("{what}"));
    }
    let config = config(if cfg!(debug_assertions) { 300 } else { 2_000 });
    let cases = config.cases;
    let result = TestRunner::new(config).run(&vec(any::<u32>(), 300..700), |numbers| {
        let case = Case::new(&numbers);
        case.check(&mut coverage.borrow_mut()).map_err(TestCaseError::fail)
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let coverage = coverage.into_inner();
    println!("{coverage:#?}");
    if cases >= 300 {
        coverage.assert_complete();
    }
}
