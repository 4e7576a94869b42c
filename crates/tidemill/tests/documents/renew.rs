//! Writes new outputs into a page, cut where the old ones were.

use crate::follow::Difference;
use crate::output::{ANYTHING, filtered, lines, locate, parts, shape};

/// The page with these outputs renewed.
pub fn page(text: &str, differences: &[Difference]) -> String {
    let mut renewed = text.to_owned();
    // From the end, so that places before stay where they are.
    for difference in differences.iter().rev() {
        renewed.replace_range(difference.at.clone(), &output(&difference.shown, &difference.printed));
    }
    renewed
}

/// What was printed, without the lines for which `…` stood in what was shown.
///
/// Where a part begins and ends is found by the shape of its first and last line, so that a line more or less inside of it is taken
/// over. A line that differs only in what the machine decides stays as it was, so that renewing on a busy machine spoils no times. An
/// author looks at the result.
pub fn output(shown: &str, printed: &str) -> String {
    let shown = lines(shown);
    let printed = lines(printed);
    let parts = parts(&shown);
    let mut renewed: Vec<&str> = Vec::new();
    let mut from = 0;
    for (part_idx, part) in parts.iter().enumerate() {
        let is_last = part_idx + 1 == parts.len();
        if !part.is_empty() {
            let start = if part_idx == 0 { 0 } else { locate(part, &printed, from).unwrap_or(from) };
            let end = if is_last { printed.len() } else { end_of(part, &printed, start) };
            renewed.extend(&printed[start..end]);
            from = end;
        }
        if !is_last {
            renewed.push(ANYTHING);
        }
    }
    let kept = |line: &str| shown.iter().find(|old| filtered(old) == filtered(line)).copied();
    renewed.iter().map(|line| format!("{}\n", kept(line).unwrap_or(line))).collect()
}

/// Behind the last line of a part that begins at a line: that of the same shape nearest to where it was, else where it was.
fn end_of(part: &[&str], printed: &[&str], start: usize) -> usize {
    let n_blank = part.iter().rev().take_while(|line| line.is_empty()).count();
    let Some(last) = part.len().checked_sub(n_blank + 1) else {
        return (start + part.len()).min(printed.len());
    };
    let wanted = shape(part[last]);
    let expected = start + last;
    let found = (start..printed.len()).filter(|at| shape(printed[*at]) == wanted);
    let mut end = found.min_by_key(|at| at.abs_diff(expected)).unwrap_or(expected) + 1;
    // What ended with a blank line, such as a table, still does.
    while n_blank > 0 && printed.get(end).is_some_and(|line| !line.is_empty()) {
        end += 1;
    }
    for _ in 0..n_blank {
        end += usize::from(printed.get(end).is_some_and(|line| line.is_empty()));
    }
    end.min(printed.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::departure;

    #[test]
    fn a_whole_output_is_replaced() {
        assert_eq!(output("old\n", "new 1\nnew 2\n\n"), "new 1\nnew 2\n");
    }

    #[test]
    fn an_output_is_cut_where_it_was() {
        let shown = "note\n#  score\n9  12.2\n8  12.1\n\n…\nTrial 9 survives 6 of 6 checks\n  + luck: 100.0 %\n10 trials in 2.85 s\n";
        let printed = "note\nwarning\n #  score\n17  11.2\n16  11.1\n\ndetails\nmore\nTrial 17 survives 6 of 7 checks\n  + luck: 90.0 %\n  - market: 3\n10 trials in 1.00 s\n";
        let renewed = output(shown, printed);
        let table = "note\nwarning\n #  score\n17  11.2\n16  11.1\n\n…\n";
        let rest = "Trial 17 survives 6 of 7 checks\n  + luck: 90.0 %\n  - market: 3\n10 trials in 2.85 s\n";
        assert_eq!(renewed, format!("{table}{rest}"));
        assert_eq!(departure(&renewed, printed), None, "what was renewed is right");
    }

    #[test]
    fn times_stay_where_nothing_else_has_changed() {
        let shown = "score 1\n10 trials in 2.85 s\n10 trials in 2.85 s, 9 valid\n";
        let printed = "score 2\n10 trials in 33.0 s\n10 trials in 33.0 s, 8 valid\n";
        assert_eq!(output(shown, printed), "score 2\n10 trials in 2.85 s\n10 trials in 33.0 s, 8 valid\n");
    }

    #[test]
    fn lines_in_the_middle_are_found_again() {
        let printed = "head\nfirst 5\nSharpe Ratio 2.00\nlast\n";
        let renewed = output("…\nSharpe Ratio 1.99\n…\n", printed);
        assert_eq!(renewed, "…\nSharpe Ratio 2.00\n…\n");
        assert_eq!(departure(&renewed, printed), None);
    }

    #[test]
    fn a_page_is_renewed_from_its_end() {
        let text = "a\n```output\nx\n```\nb\n```output\ny\n```\n";
        let difference = |old: &str, new: &str| {
            let at = text.find(&format!("{old}\n")).unwrap();
            Difference {
                line: 1,
                shown: format!("{old}\n"),
                printed: new.into(),
                at: at..at + 2,
                departure: departure(old, new).unwrap(),
            }
        };
        let renewed = page(text, &[difference("x", "longer\nthan\n"), difference("y", "z\n")]);
        assert_eq!(renewed, "a\n```output\nlonger\nthan\n```\nb\n```output\nz\n```\n");
    }
}
