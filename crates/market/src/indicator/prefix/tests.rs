use super::*;

#[test]
fn window_is_not_available_before_it_is_full_or_outside_the_series() {
    let p = Prefix::new(&[1.0, 2.0, 3.0], Moments::All);
    assert!(p.mean_at(0, 2).is_nan());
    assert_eq!(p.mean_at(1, 2), 1.5);
    assert!(p.mean_at(3, 2).is_nan());
    assert!(p.mean_at(2, 0).is_nan());
    assert!(p.mean_at(2, 4).is_nan());
    assert!(p.mean_at(usize::MAX - 1, usize::MAX).is_nan());
}

#[test]
fn value_not_available_spoils_only_windows_that_hold_it() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
        let p = Prefix::new(&[1.0, 2.0, bad, 4.0, 6.0], Moments::All);
        assert!(p.mean_at(2, 2).is_nan());
        assert!(p.std_pop_at(3, 2).is_nan());
        assert!(p.wma_at(3, 2).is_nan());
        assert_eq!(p.mean_at(4, 2), 5.0);
        assert_eq!(p.std_pop_at(4, 2), 1.0);
    }
}

#[test]
fn moment_that_was_not_built_is_not_available() {
    let p = Prefix::new(&[1.0, 2.0, 4.0], Moments::Sum);
    assert!(p.std_pop_at(2, 2).is_nan());
    assert!(p.lsma_at(2, 2).is_nan());
    assert!(Prefix::new(&[1.0, 2.0, 4.0], Moments::SumSquares).wma_at(2, 2).is_nan());
}

#[test]
fn flat_window_has_no_spread_even_after_a_wild_past() {
    let p = Prefix::new(&[1e15, -3.3e14, 0.1, 0.1, 0.1], Moments::All);
    assert_eq!(p.std_pop_at(4, 3), 0.0);
    assert_eq!(p.std_sample_at(4, 3), 0.0);
    assert!(p.std_pop_at(3, 3) > 0.0);
}

#[test]
fn sums_do_not_depend_on_how_many_blocks_run_side_by_side() {
    for n in [0, 1, 255, 256, 257, 1_023, 1_024, 1_025, 2_600] {
        let x: Vec<f64> = (0..n).map(|i| (i as f64 * 0.7).sin() * 1e3 + 1.0 / (i as f64 + 3.0)).collect();
        let p = Prefix::new(&x, Moments::All);
        let sums = &p.exact().sum;
        let mut offset = DoubleDouble::default();
        for (block, x) in x.chunks(BLOCK).enumerate() {
            let mut inner = DoubleDouble::default();
            let mut entry = offset;
            for (at, &v) in x.iter().enumerate() {
                inner = inner.add_f64(v);
                entry = offset.add(inner);
                let i = block * BLOCK + at + 1;
                assert_eq!(
                    (sums.hi[i].to_bits(), sums.lo[i].to_bits()),
                    (entry.hi.to_bits(), entry.lo.to_bits())
                );
            }
            offset = entry;
        }
    }
}

#[test]
fn window_across_blocks_is_the_sum_of_its_values() {
    // Integers: every sum is exact, whatever the order.
    let x: Vec<f64> = (0..1_500).map(|i| f64::from(i * i % 977)).collect();
    let p = Prefix::new(&x, Moments::All);
    for (i, w) in [(255, 256), (256, 256), (256, 1), (1_499, 1_500), (1_100, 700)] {
        let window = &x[i + 1 - w..=i];
        assert_eq!(p.mean_at(i, w), window.iter().sum::<f64>() / w as f64, "{w} bars to {i}");
        let weighted: f64 = window.iter().zip(1..).map(|(x, j)| x * f64::from(j)).sum();
        assert_eq!(p.wma_at(i, w), weighted / (0.5 * (w * (w + 1)) as f64), "{w} bars to {i}");
    }
}

#[test]
fn bytes_count_what_is_held() {
    let x = vec![1.0; 1_000];
    assert_eq!(Prefix::new(&x, Moments::Sum).bytes(), 1_001 * 16 + 1_001 * 4 + 1_000 * 4);
    let all = Prefix::new(&x, Moments::All);
    let rough = 1_000 * 8 + 1_001 * 16;
    assert_eq!(all.bytes(), rough);
    assert_eq!(all.mean_at(999, 10), 1.0);
    assert_eq!(all.bytes(), rough + 1_001 * 48 + 1_001 * 4 + 1_000 * 4);
    assert_eq!(Prefix::new(&x, Moments::All).len(), 1_000);
    assert!(Prefix::new(&[], Moments::All).is_empty());
}
