//! Bars since a condition was last true.

/// 0 on a bar where `cond` holds, then 1, 2, …; NaN before the first.
pub fn bars_since(cond: &[bool], out: &mut [f64]) {
    let n = cond.len().min(out.len());
    out[n..].fill(f64::NAN);
    let mut since = f64::NAN;
    for (out, &holds) in out.iter_mut().zip(cond) {
        since = if holds { 0.0 } else { since + 1.0 };
        *out = since;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_restarts_on_the_bar_itself() {
        let mut out = [9.0; 6];
        bars_since(&[false, true, false, false, true], &mut out);
        assert!(out[0].is_nan() && out[5].is_nan());
        assert_eq!(out[1..5], [0.0, 1.0, 2.0, 0.0]);
    }
}
