//! Signals, found in every way they can be found.

use tidemill_market::indicator::{Function, Moments, Prefix, Series};

use super::super::lazy::Lazy;
use super::*;
use crate::graph::Func;
use crate::plan::Op;

/// `column of slot a ∘ column of slot b`, or a scalar where `b` is none.
fn compare(op: Op2, a: usize, b: Option<usize>) -> Tape {
    let column = |slot: usize| Op::Column { slot, shift: None };
    Tape::new(vec![column(a), b.map_or(Op::Scalar(0), column), Op::Compare(op, 0, 1)])
}

#[test]
fn bar_by_bar_and_block_by_block_are_the_same() {
    const ZSCORE: Func = Function::named("zscore");
    const SMA: Func = Function::named("sma");
    let x: Vec<f64> = (0..5_000_usize)
        .map(|i| if i % 701 == 9 { f64::NAN } else { (i * i % 1_009) as f64 + (i % 13) as f64 })
        .collect();
    let y: Vec<f64> = (0..5_000_usize).map(|i| (i * 7 % 1_013) as f64).collect();
    let (sums, squares) = (Prefix::new(&x, Moments::Sum), Prefix::new(&x, Moments::SumSquares));
    let lazy = |func: Func, series: Vec<Series<'_>>, w: f64| {
        // The same as a column.
        let mut column = vec![0.0; x.len()];
        let Some(part) = func.part else { unreachable!("windows of sums have parts") };
        let call = tidemill_market::indicator::Call { series: &series, arguments: &[w] };
        (part.bars)(&call, 0, &mut column);
        column
    };
    let score_inputs = || vec![Series::Column(&x[..]), Series::Sums(&squares)];
    let (score, mean) = (lazy(ZSCORE, score_inputs(), 40.0), lazy(SMA, vec![Series::Sums(&sums)], 25.0));
    let part = |func: Func| func.part.unwrap_or_else(|| unreachable!("windows of sums have parts"));
    let lazies = [
        None,
        None,
        Some(Lazy::new(part(ZSCORE), score_inputs(), vec![40.0])),
        Some(Lazy::new(part(SMA), vec![Series::Sums(&sums)], vec![25.0])),
    ];
    for threshold in [0.5, 1.2, 2.5, -0.5] {
        let whole = Frame {
            columns: &[&x, &y, &score, &mean],
            lazies: &[],
            tiles: &[],
            compared: &[],
            scalars: &[threshold],
            n_bars: x.len(),
            block_words: BLOCK,
        };
        let frame = Frame { columns: &[&x, &y, &[], &[]], lazies: &lazies, ..whole };
        for op in [Op2::Gt, Op2::Ge, Op2::Lt, Op2::Le] {
            let tapes =
                vec![compare(op, 2, None), compare(Op2::Gt, 3, Some(1)), compare(Op2::Lt, 0, Some(1))];
            let mut scratch = Scratch::default();
            let truths: Vec<Vec<u64>> = tapes.iter().map(|tape| whole.truth(tape, &mut scratch)).collect();
            let expected: Vec<usize> = (0..x.len())
                .filter(|bar| truths.iter().all(|words| words[bar / WORD] >> (bar % WORD) & 1 == 1))
                .collect();
            let left = Decided::Open(tapes);
            // Block by block, by one who is away for a while after each bar that he finds.
            let (mut signal, mut from) = (Signal::new(None, Vec::new(), &left, &frame), 0);
            let (mut found, mut taken) = (Vec::new(), Vec::new());
            for bar in (0..x.len()).step_by(BLOCK * WORD) {
                signal.look(bar, from, &frame, &mut scratch);
                let upto = x.len().min(bar + BLOCK * WORD);
                loop {
                    let next = signal.next(from, upto, &frame, &mut scratch);
                    if next >= upto {
                        break;
                    }
                    found.push(next);
                    from = next + 1 + next * 7 % 150;
                }
            }
            for bar in &expected {
                if taken.last().is_none_or(|last| last + 1 + last * 7 % 150 <= *bar) {
                    taken.push(*bar);
                }
            }
            assert_eq!(found, taken, "{op:?} {threshold}");
            for point in [0, POINT, usize::MAX] {
                for in_advance in [false, true] {
                    let mut signal = Signal::new(None, Vec::new(), &left, &frame);
                    signal.factors.iter_mut().for_each(|factor| factor.point = point);
                    for bar in (0..x.len()).step_by(BLOCK * WORD).filter(|_| in_advance) {
                        signal.write(bar, &frame, &mut scratch);
                    }
                    let found: Vec<usize> =
                        (0..x.len()).filter(|bar| signal.at(*bar, &frame, &mut scratch)).collect();
                    // Back and forth: what was found before must not be taken for the answer elsewhere.
                    for at in 0..200 {
                        let from = at * 1_237 % x.len();
                        let next = expected.iter().find(|bar| **bar >= from).copied().unwrap_or(x.len());
                        assert_eq!(
                            signal.next(from, usize::MAX, &frame, &mut scratch),
                            next,
                            "from bar {from}"
                        );
                    }
                    assert!(
                        found == expected,
                        "{op:?} {threshold}, {point}: {} bars, not {}",
                        found.len(),
                        expected.len()
                    );
                }
            }
        }
    }
}

#[test]
fn bits_move_to_later_bars_across_words() {
    let bits = [1 | 1 << 63, 0b10, 1 << 40];
    let at = |words: &[u64], bar: usize| words[bar / WORD] >> (bar % WORD) & 1 == 1;
    for by in [0, 1, 2, 63, 64, 65, 127, 128, 191, 192, 500] {
        let moved = later(&bits, by as f64);
        for bar in 0..3 * WORD {
            assert_eq!(at(&moved, bar), bar >= by && at(&bits, bar - by), "bar {bar} by {by}");
        }
    }
    assert_eq!(later(&bits, -1.0), [0; 3]);
    assert_eq!(later(&bits, f64::NAN), [0; 3]);
}

#[test]
fn a_mask_jumps_to_its_next_bar() {
    let mask = Mask::new(vec![1 << 3 | 1 << 63, 0, 1 << 5]);
    assert_eq!(mask.bars(), [3, 63, 133]);
    let next = [0, 3, 4, 63, 64, 133, 134].map(|from| mask.next(from));
    assert_eq!(next, [3, 3, 63, 63, 133, 133, u32::MAX as usize]);
}
