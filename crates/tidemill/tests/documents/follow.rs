//! Follows a page from top to bottom.

use std::ops::Range;

use crate::output::{Mismatch, departure};
use crate::page::{Expectation, Page, Step};
use crate::shell::{Commands, Shell};

/// How a page went: counts, differences, failures.
#[derive(Default)]
pub struct PageOutcome {
    pub n_ran: usize,
    pub n_compared: usize,
    /// Line and reason of what was not run.
    pub not_run: Vec<(usize, String)>,
    pub differences: Vec<Difference>,
    /// `LINE: what went wrong`.
    pub failures: Vec<String>,
}

/// An output that is not what the page shows.
pub struct Difference {
    pub line: usize,
    pub shown: String,
    pub printed: String,
    /// Where the lines stand in the page.
    pub at: Range<usize>,
    pub departure: Mismatch,
}

impl Difference {
    pub fn shown(&self) -> String {
        let or = |line: &Option<String>| line.clone().unwrap_or_else(|| "(nothing)".into());
        format!(
            "{}: the output differs\n  shown:   {}\n  printed: {}",
            self.line + 1 + self.departure.line_idx,
            or(&self.departure.shown),
            or(&self.departure.printed)
        )
    }
}

/// Does what a page says.
pub fn follow(page: &Page) -> PageOutcome {
    let shell = Shell::new();
    let mut followed = PageOutcome::default();
    // What the last block of commands printed, unless it was not run.
    let mut printed: Option<String> = None;
    for step in &page.steps {
        match step {
            Step::File { name, text } => shell.save(name, text),
            Step::SetUp { line, commands } => {
                followed.run(&shell, *line, &Commands::read(commands), true);
            }
            Step::Commands { line, fate: Expectation::NotRun(reason), .. } => {
                followed.not_run.push((*line, reason.clone()));
                printed = None;
            }
            Step::Commands { line, commands, fate } => {
                printed =
                    followed.run(&shell, *line, &Commands::read(commands), *fate == Expectation::Succeed);
            }
            Step::Output { line, text, at } => {
                let Some(printed) = &printed else { continue };
                followed.n_compared += 1;
                if let Some(departure) = departure(text, printed) {
                    followed.differences.push(Difference {
                        line: *line,
                        shown: text.clone(),
                        printed: printed.clone(),
                        at: at.clone(),
                        departure,
                    });
                }
            }
        }
    }
    followed
}

impl PageOutcome {
    fn run(&mut self, shell: &Shell, line: usize, commands: &Commands, succeeds: bool) -> Option<String> {
        self.not_run
            .extend(commands.not_run.iter().map(|(command, reason)| (line, format!("{command}: {reason}"))));
        if let Some(command) = commands.unknown.first() {
            self.failures.push(format!(
                "{line}: `{command}` is no command of the program; put `<!-- not run: REASON -->` before the block"
            ));
            return None;
        }
        self.n_ran += commands.run.len();
        let ran = shell.run(&commands.run);
        if !succeeds && ran.is_ok {
            self.failures.push(format!("{line}: this block was to fail, and did not"));
        } else if succeeds && !ran.is_ok {
            let end: Vec<&str> = ran.output.lines().rev().take(6).collect();
            let end: Vec<&str> = end.into_iter().rev().collect();
            self.failures.push(format!("{line}: a command of this block failed:\n  {}", end.join("\n  ")));
            return None;
        }
        Some(ran.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_tells_the_truth_is_followed() {
        let text = "<!-- set up:\ntidemill strategies ema-cross > mine.toml\n-->\n\n```sh\ntidemill strategies | head -n 0\n```\n\n```output\n```\n\n```sh\ntidemill backtest mine.toml --data gone.csv || true\ncargo xtask test\n```\n\n```output\n…\n```\n";
        let page = Page::read(text);
        let followed = follow(&page);
        assert_eq!(followed.failures, Vec::<String>::new());
        assert!(followed.differences.is_empty());
        assert_eq!((followed.n_ran, followed.n_compared, followed.not_run.len()), (3, 2, 1));
    }

    #[test]
    fn lies_failures_and_strangers_are_found() {
        let text = "```sh\ntidemill strategies\n```\n\n```output\nnothing of the kind\n```\n\n```sh\ntidemill nonsense\n```\n\n```output\nx\n```\n\n```sh\ncurl example.org\n```\n\n<!-- not run: needs a GPU -->\n```sh\ntidemill doctor\n```\n\n```output\nx\n```\n\n<!-- fails -->\n```sh\ntidemill strategies\n```\n";
        let followed = follow(&Page::read(text));
        let shown: Vec<String> = followed.differences.iter().map(Difference::shown).collect();
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert!(shown[0].starts_with("6: the output differs\n  shown:   nothing of the kind\n"), "{shown:?}");
        assert_eq!(followed.failures.len(), 3, "{:?}", followed.failures);
        assert!(followed.failures[0].starts_with("9: a command of this block failed:"));
        assert!(followed.failures[1].starts_with("17: `curl example.org` is no command of the program"));
        assert_eq!(followed.failures[2], "31: this block was to fail, and did not");
        assert_eq!(followed.not_run, [(22, "needs a GPU".to_owned())]);
        assert_eq!(followed.n_compared, 1);
    }
}
