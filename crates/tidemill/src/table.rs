//! What the program prints to: how wide it is, whether it shows colours, and which columns its user wants.

use std::io::IsTerminal;

use anstream::AutoStream;
use anyhow::{Result, anyhow};
use clap::Args;
use tidemill_backtest::diagnostic::nearest;
use tidemill_dash::terminal::UnknownColumn;

pub use tidemill_dash::terminal::{Screen, TextColumn, TextTable as Table};

/// What the flags that every command has ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Display {
    /// Standard output.
    pub screen: Screen,
    /// Whether the details of a run are printed.
    pub is_verbose: bool,
}

/// Which columns of a table are shown.
#[derive(Args, Clone, Debug, Default)]
pub struct ColumnArgs {
    /// Show these columns of the table, in this order; by default those that fit the terminal, the most telling ones first.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Vec<String>,
}

impl ColumnArgs {
    /// Shows only what was asked for; an unknown name is an error with the nearest one.
    pub fn choose(&self, table: &mut Table) -> Result<()> {
        table.choose(&self.columns).map_err(|UnknownColumn { name, known }| {
            let hint = match nearest(&name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", known.join(", ")),
            };
            anyhow!("--columns {name}: there is no such column\n  hint: {hint}")
        })
    }
}

/// Standard output as it is now.
pub fn stdout_screen() -> Screen {
    let stdout = std::io::stdout();
    let terminal = terminal_size::terminal_size_of(&stdout).filter(|_| stdout.is_terminal());
    let columns = std::env::var("COLUMNS").ok();
    Screen {
        width: screen_width(terminal.map(|(width, _)| width.0.into()), columns.as_deref()),
        has_color: AutoStream::choice(&stdout) != anstream::ColorChoice::Never,
    }
}

/// Standard error for tables, which have no colours there.
pub fn stderr_screen() -> Screen {
    let width = terminal_size::terminal_size_of(std::io::stderr()).map(|(width, _)| width.0.into());
    Screen { width: screen_width(width, std::env::var("COLUMNS").ok().as_deref()), has_color: false }
}

/// Columns of standard error, where the progress line is drawn.
pub fn stderr_width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| width.0.into())
}

/// `COLUMNS` is for those who look at a pipe; else the terminal decides, and a file may have any width.
fn screen_width(terminal: Option<usize>, columns: Option<&str>) -> Option<usize> {
    let columns = columns.and_then(|text| text.trim().parse::<usize>().ok());
    columns.or(terminal).filter(|width| *width > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_that_of_the_terminal_unless_columns_says_otherwise() {
        assert_eq!(screen_width(Some(120), None), Some(120));
        assert_eq!(screen_width(Some(120), Some("60")), Some(60));
        assert_eq!(screen_width(None, Some("60")), Some(60));
        assert_eq!(screen_width(None, None), None);
        assert_eq!(screen_width(Some(120), Some("wide")), Some(120));
        assert_eq!(screen_width(Some(0), None), None, "some terminals do not know their width");
    }
}
