//! A column of other bars as these bars see it. Twin of `gather.cu`.

use tidemill_market::align::NO_BAR;

use crate::point;

/// Reads for each bar the one that the route names.
pub fn gather(column: &[f64], route: &[u32], out: &mut [f64]) {
    for (out, bar) in out.iter_mut().zip(route) {
        *out = if *bar == NO_BAR { point::NA } else { column[*bar as usize] };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_without_another_one_have_no_value() {
        let mut out = [0.0; 4];
        gather(&[5.0, 7.0], &[NO_BAR, 0, 0, 1], &mut out);
        assert!(out[0].is_nan());
        assert_eq!(out[1..], [5.0, 5.0, 7.0]);
    }
}
