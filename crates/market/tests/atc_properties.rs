//! What holds for every classification, whatever the prices and options.

use proptest::collection::vec;
use proptest::prelude::*;
use tidemill_market::atc::{
    AtcOptions, Family, Growth, HmaMode, KamaMode, Preset, Robustness, SignalMode, Undefined, ZeroPrice, atc,
    average, moving_averages,
};

/// Steps of a price walk, a missing, infinite or zero price now and then.
fn prices() -> impl Strategy<Value = Vec<f64>> {
    let step = prop_oneof![
        40 => (-0.03..0.03_f64).prop_map(|change| (change, None)),
        8 => Just((0.0, None)),
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(0.0)].prop_map(|price| (0.0, Some(price))),
    ];
    vec(step, 60..180).prop_map(|steps| {
        let mut level = 100.0;
        steps
            .into_iter()
            .map(|(change, instead)| {
                level *= 1.0 + change;
                instead.unwrap_or(level)
            })
            .collect()
    })
}

fn options() -> impl Strategy<Value = AtcOptions> {
    let presets = prop_oneof![Just(Preset::V2), Just(Preset::Head), Just(Preset::Pine)];
    let robustness = prop_oneof![Just(Robustness::Narrow), Just(Robustness::Medium), Just(Robustness::Wide)];
    (presets, robustness, vec(1..40_u32, 6), 0..50_u32, any::<[bool; 8]>()).prop_map(
        |(preset, robustness, lengths, cutout, flags)| {
            let base = AtcOptions::preset(preset);
            AtcOptions {
                robustness,
                ema_len: lengths[0],
                hma_len: lengths[1],
                wma_len: lengths[2],
                dema_len: lengths[3],
                lsma_len: lengths[4],
                kama_len: lengths[5],
                cutout,
                hma_mode: if flags[0] { HmaMode::Hull } else { HmaMode::Sma },
                signal_mode: if flags[1] { SignalMode::Impulse } else { base.signal_mode },
                l1_round2: flags[2],
                l1_cutout: flags[3],
                forward_fill: flags[4],
                strategy_mode: flags[5],
                zero_price: if flags[6] { ZeroPrice::Ieee } else { ZeroPrice::Flat },
                undefined: if flags[7] { Undefined::Skip } else { Undefined::Zero },
                ..base
            }
        },
    )
}

fn averages(prices: &[f64], options: &AtcOptions) -> Vec<f64> {
    let mut out = vec![0.0; prices.len()];
    average(prices, options, &Growth::new(options, prices.len()), &mut out).unwrap();
    out
}

/// The first bar at which two series differ in a bit, and how; all NaNs are one.
fn first_difference(one: &[f64], other: &[f64]) -> Option<(usize, f64, f64)> {
    assert_eq!(one.len(), other.len());
    let bits = |value: f64| if value.is_nan() { 1 } else { value.to_bits() };
    let at = one.iter().zip(other).position(|(one, other)| bits(*one) != bits(*other))?;
    Some((at, one[at], other[at]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn future_bars_change_no_past_average(prices in prices(), options in options(), at in 0.0..1.0_f64, other in 1.0..300.0_f64) {
        let past = averages(&prices, &options);
        let at = (at * prices.len() as f64) as usize;
        let mut changed = prices.clone();
        for (bar, price) in changed.iter_mut().enumerate().skip(at) {
            *price = other + (bar % 5) as f64;
        }
        let present = averages(&changed, &options);
        prop_assert_eq!(first_difference(&past[..at], &present[..at]), None);
    }

    #[test]
    fn average_lies_between_minus_one_and_one(prices in prices(), options in options()) {
        for (bar, average) in averages(&prices, &options).iter().enumerate() {
            let is_out = options.undefined == Undefined::Skip && bar < options.cutout as usize + 1;
            prop_assert!(average.abs() <= 1.0 || (average.is_nan() && is_out), "bar {}: {}", bar, average);
        }
    }

    #[test]
    fn fast_way_equals_the_full_one(prices in prices(), options in options()) {
        let whole = atc(&prices, &options).unwrap().average;
        prop_assert_eq!(first_difference(&averages(&prices, &options), &whole), None);
    }

    #[test]
    fn prices_in_another_unit_give_the_same_average(prices in prices(), options in options()) {
        // The first port's KAMA compares the way with a fixed number.
        let options = AtcOptions { kama_mode: KamaMode::Pine, ..options };
        let quarter: Vec<f64> = prices.iter().map(|price| price / 4.0).collect();
        prop_assert_eq!(first_difference(&averages(&prices, &options), &averages(&quarter, &options)), None);
    }

    #[test]
    fn average_of_flat_prices_is_that_price(price in 1e-6..1e6_f64, before in prices(), options in options()) {
        let mut prices: Vec<f64> = before.into_iter().map(|v| if v.is_finite() { v } else { 1.0 }).collect();
        prices.extend([price; 60]);
        for family in [Family::Hma, Family::Wma, Family::Lsma] {
            for (average, length) in moving_averages(family, &prices, &options).unwrap().iter().zip(options.lengths(family)) {
                if length > 1 {
                    prop_assert_eq!(average[prices.len() - 1], price, "{} {}", family.name(), length);
                }
            }
        }
    }
}
