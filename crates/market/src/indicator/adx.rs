//! Wilder's directional movement: the two directional indicators and their average index.

use super::column::{common_len, is_complete};
use super::true_range::range_of;

/// The directional values of one bar; NaN where not yet available.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Directional {
    /// Strength of the trend, whatever its direction, 0 to 100.
    pub adx: f64,
    /// Share of the range that went upwards, 0 to 100.
    pub plus_di: f64,
    /// Share of the range that went downwards, 0 to 100.
    pub minus_di: f64,
}

impl Directional {
    const NOT_AVAILABLE: Self = Self { adx: f64::NAN, plus_di: f64::NAN, minus_di: f64::NAN };
}

/// Average directional index.
///
/// Reference: TA-Lib `ADX`. First value at the available bar `2w-1`; a bar with a non-finite price is NaN and
/// leaves the state as it was. While there is no range or no movement the index keeps its value, as in
/// TA-Lib, which however calls everything below 1e-14 none. `w = 0` is NaN.
pub fn adx(high: &[f64], low: &[f64], close: &[f64], w: usize, out: &mut [f64]) {
    fill(high, low, close, w, out, |d| d.adx);
}

/// Positive directional indicator: `100 · upward movement / true range`, both smoothed.
///
/// Reference: TA-Lib `PLUS_DI`. First value at the available bar `w`; otherwise as [`adx`]. No range at all
/// gives 0.
pub fn plus_di(high: &[f64], low: &[f64], close: &[f64], w: usize, out: &mut [f64]) {
    fill(high, low, close, w, out, |d| d.plus_di);
}

/// Negative directional indicator, the mirror image of [`plus_di`].
///
/// Reference: TA-Lib `MINUS_DI`.
pub fn minus_di(high: &[f64], low: &[f64], close: &[f64], w: usize, out: &mut [f64]) {
    fill(high, low, close, w, out, |d| d.minus_di);
}

/// Calls `each(bar, values)` for every bar, in order; one walk for callers that want more than one of the
/// three.
pub fn directional(
    high: &[f64],
    low: &[f64],
    close: &[f64],
    w: usize,
    mut each: impl FnMut(usize, Directional),
) {
    let n = high.len().min(low.len()).min(close.len());
    let mut movement = (w > 0).then(|| Movement::new(w));
    for i in 0..n {
        let values = match &mut movement {
            Some(movement) if is_complete(high[i], low[i], close[i]) => {
                movement.push(high[i], low[i], close[i])
            }
            _ => Directional::NOT_AVAILABLE,
        };
        each(i, values);
    }
}

fn fill(
    high: &[f64],
    low: &[f64],
    close: &[f64],
    w: usize,
    out: &mut [f64],
    value: impl Fn(Directional) -> f64,
) {
    let n = common_len(out, [high.len(), low.len(), close.len()]);
    directional(&high[..n], low, close, w, |i, d| out[i] = value(d));
}

/// What the walk carries from bar to bar.
struct Movement {
    w: usize,
    previous: Option<[f64; 3]>,
    /// Changes taken in; the first `w-1` are summed, later ones smoothed.
    n_seen: usize,
    up: f64,
    down: f64,
    range: f64,
    adx: f64,
}

impl Movement {
    fn new(w: usize) -> Self {
        Self { w, previous: None, n_seen: 0, up: 0.0, down: 0.0, range: 0.0, adx: 0.0 }
    }

    fn push(&mut self, high: f64, low: f64, close: f64) -> Directional {
        let Some([previous_high, previous_low, previous_close]) = self.previous.replace([high, low, close])
        else {
            return Directional::NOT_AVAILABLE;
        };
        let rise = high - previous_high;
        let fall = previous_low - low;
        let (mut up, mut down) = (0.0, 0.0);
        if fall > 0.0 && rise < fall {
            down = fall;
        } else if rise > 0.0 && rise > fall {
            up = rise;
        }
        let range = range_of(high, low, previous_close);
        self.n_seen += 1;
        if self.n_seen < self.w {
            self.up += up;
            self.down += down;
            self.range += range;
            return Directional::NOT_AVAILABLE;
        }
        let w = self.w as f64;
        self.up = self.up - self.up / w + up;
        self.down = self.down - self.down / w + down;
        self.range = self.range - self.range / w + range;
        if self.range == 0.0 {
            return Directional { adx: self.average(None), plus_di: 0.0, minus_di: 0.0 };
        }
        let plus_di = 100.0 * (self.up / self.range);
        let minus_di = 100.0 * (self.down / self.range);
        let both = minus_di + plus_di;
        let index = (both != 0.0).then(|| 100.0 * ((minus_di - plus_di).abs() / both));
        Directional { adx: self.average(index), plus_di, minus_di }
    }

    /// The first `w` indexes are averaged simply, later ones as Wilder did; a bar without an index counts as
    /// 0 among the first and changes nothing later.
    fn average(&mut self, index: Option<f64>) -> f64 {
        let w = self.w as f64;
        let n_indexes = self.n_seen + 1 - self.w;
        if n_indexes > self.w {
            if let Some(index) = index {
                self.adx = (self.adx * (w - 1.0) + index) / w;
            }
            return self.adx;
        }
        self.adx += index.unwrap_or(0.0);
        if n_indexes < self.w {
            return f64::NAN;
        }
        self.adx /= w;
        self.adx
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rising(n: i32) -> [Vec<f64>; 3] {
        let close: Vec<f64> = (0..n).map(f64::from).collect();
        [close.iter().map(|c| c + 1.0).collect(), close.iter().map(|c| c - 1.0).collect(), close]
    }

    #[test]
    fn pure_rise_has_full_strength() {
        let [high, low, close] = rising(12);
        let mut out = vec![0.0; 12];
        adx(&high, &low, &close, 3, &mut out);
        assert!(out[4].is_nan());
        assert!(out[5..].iter().all(|&v| v == 100.0));
        minus_di(&high, &low, &close, 3, &mut out);
        assert!(out[2].is_nan());
        assert!(out[3..].iter().all(|&v| v == 0.0));
        plus_di(&high, &low, &close, 3, &mut out);
        assert!((out[3] - 50.0 * (2.0 - 2.0 / 3.0 + 1.0) / (2.0 - 2.0 / 3.0 + 1.0)).abs() < 1e-12);
    }

    #[test]
    fn one_walk_gives_what_the_columns_give() {
        let [mut high, low, close] = rising(20);
        high[7] = f64::NAN;
        let (mut a, mut b, mut c) = (vec![0.0; 20], vec![0.0; 20], vec![0.0; 20]);
        adx(&high, &low, &close, 4, &mut a);
        plus_di(&high, &low, &close, 4, &mut b);
        minus_di(&high, &low, &close, 4, &mut c);
        directional(&high, &low, &close, 4, |i, d| {
            for (x, y) in [(d.adx, a[i]), (d.plus_di, b[i]), (d.minus_di, c[i])] {
                assert!(x == y || (x.is_nan() && y.is_nan()));
            }
        });
    }

    #[test]
    fn flat_bars_give_0() {
        let x = [5.0; 10];
        let mut out = [1.0; 10];
        plus_di(&x, &x, &x, 2, &mut out);
        assert_eq!(out[2..], [0.0; 8]);
        adx(&x, &x, &x, 2, &mut out);
        assert_eq!(out[3..], [0.0; 7]);
    }
}
