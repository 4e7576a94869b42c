//! Messages to people on standard error; the word that says what a line is has a colour.

use std::fmt::Arguments;
use std::io::Write;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

/// Prints a message. If standard error is closed (`tidemill … 2>&1 | head`) it is dropped and the run continues.
pub fn print(message: Arguments<'_>, end: &str) {
    let stderr = std::io::stderr();
    let has_color = AutoStream::choice(&stderr) != ColorChoice::Never;
    let text = if has_color { coloured(&message.to_string()) } else { message.to_string() };
    let _ = write!(stderr.lock(), "{text}{end}");
}

/// The first word of a line in its colour, where it says what the line is.
fn coloured(message: &str) -> String {
    let line = |line: &str| {
        let text = line.trim_start();
        let styles = [
            ("error:", AnsiColor::Red.on_default().bold()),
            ("warning:", AnsiColor::Yellow.on_default().bold()),
            ("note:", AnsiColor::Cyan.on_default()),
            ("hint:", AnsiColor::Green.on_default()),
        ];
        let of = styles.iter().find(|(word, _)| text.starts_with(word));
        let Some((word, style)) = of.map(|(word, style): &(&str, Style)| (*word, *style)) else {
            return line.to_owned();
        };
        let indent = &line[..line.len() - text.len()];
        format!("{indent}{style}{word}{style:#}{}", &text[word.len()..])
    };
    message.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_says_what_a_line_is_has_a_colour() {
        let text = coloured("error: no file\n  hint: name one\nan error: not at the beginning");
        assert_eq!(
            text,
            "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m no file\n  \u{1b}[32mhint:\u{1b}[0m name one\nan error: not at the beginning"
        );
    }
}
