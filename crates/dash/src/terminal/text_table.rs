//! Tables of text that fit a width: what a command prints to a terminal.
//!
//! Where all columns fit, they are printed as they are. Where they do not, headings are broken into lines, texts are broken or cut, and
//! the columns that matter least are left out and named beneath the table. Numbers are never cut: half a number is a wrong number.

use anstyle::{AnsiColor, Style};

use super::table::{cut, width};

/// Texts of this width are not broken.
const WHOLE_TEXT: usize = 16;

/// Words of this width are not cut: names of strategies, times.
const WHOLE_WORD: usize = 24;

/// Blanks between two columns.
const GAP: usize = 2;

/// What a table is drawn for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Columns of the terminal; `None` where the lines may be as long as they are.
    pub width: Option<usize>,
    /// Whether colours are shown.
    pub has_color: bool,
}

impl Screen {
    /// For a file or a pipe: any width, no colours.
    pub const PLAIN: Self = Self { width: None, has_color: false };

    /// A text in a style, where colours are shown.
    pub fn styled(&self, text: &str, style: Style) -> String {
        if self.has_color && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// A column of a [`TextTable`].
#[derive(Clone, Debug)]
pub struct TextColumn {
    title: String,
    name: String,
    keep: u8,
}

impl TextColumn {
    /// A column with this title; it is chosen by the words of the title, `max_drawdown` for `Max Drawdown [%]`.
    pub fn new(title: impl Into<String>) -> Self {
        let title = title.into();
        let name = column_name(&title);
        Self { title, name, keep: 5 }
    }

    /// The same, chosen by this name.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// How much it matters: columns with less are left out first, and those with 0 are shown only where they are chosen.
    pub fn keep(self, keep: u8) -> Self {
        Self { keep, ..self }
    }
}

impl From<&str> for TextColumn {
    fn from(title: &str) -> Self {
        Self::new(title)
    }
}

impl From<String> for TextColumn {
    fn from(title: String) -> Self {
        Self::new(title)
    }
}

/// The words of a title in lower case with `_` between them, units aside.
fn column_name(title: &str) -> String {
    let title = title.split('[').next().unwrap_or_default().to_lowercase();
    let words = title.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

/// A column was chosen that the table does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no column `{name}`; there are {}", known.join(", "))]
pub struct UnknownColumn {
    /// The name that was chosen.
    pub name: String,
    /// The names of all columns.
    pub known: Vec<String>,
}

/// Rows of cells under a header.
#[derive(Clone, Debug)]
pub struct TextTable {
    columns: Vec<TextColumn>,
    rows: Vec<Vec<String>>,
    /// Places of the columns that were chosen, in their order.
    chosen: Option<Vec<usize>>,
    /// Whether the command lets its user choose.
    is_choosable: bool,
}

impl TextTable {
    /// An empty table.
    pub fn new(header: impl IntoIterator<Item = impl Into<TextColumn>>) -> Self {
        let columns = header.into_iter().map(Into::into).collect();
        Self { columns, rows: Vec::new(), chosen: None, is_choosable: false }
    }

    /// Shows these columns in this order; all of them where none are named.
    pub fn choose(&mut self, names: &[String]) -> Result<(), UnknownColumn> {
        self.is_choosable = true;
        let place = |name: &String| {
            let is_it = |column: &TextColumn| column.name == column_name(name) || column.title == *name;
            self.columns.iter().position(is_it).ok_or_else(|| UnknownColumn {
                name: name.clone(),
                known: self.columns.iter().map(|column| column.name.clone()).collect(),
            })
        };
        if !names.is_empty() {
            self.chosen = Some(names.iter().map(place).collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Text with the first `left` columns aligned to the left, the others to the right. No line is wider than the screen.
    pub fn render(&self, left: usize, screen: &Screen) -> String {
        let room = screen.width.map_or(usize::MAX, |width| width.max(1));
        let listed = self.chosen.clone().unwrap_or_else(|| self.listed());
        let fitted = self.fit(&listed, left, room);
        let mut out = String::new();
        let titles: Vec<&str> = self.columns.iter().map(|column| column.title.as_str()).collect();
        let heading = |text: &str| screen.styled(text, Style::new().bold());
        write_row(&mut out, &titles, &fitted, left, &heading);
        let total = total_width(&fitted).min(room);
        out += &screen.styled(&"─".repeat(total), Style::new().dimmed());
        out.push('\n');
        let cell = |text: &str| match text.trim_end().ends_with('✗') {
            true => screen.styled(text, AnsiColor::Red.on_default()),
            false => text.to_owned(),
        };
        for row in &self.rows {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            write_row(&mut out, &cells, &fitted, left, &cell);
        }
        out + &self.left_out(&listed, &fitted, room)
    }

    /// Places of the columns that are shown where none were chosen.
    fn listed(&self) -> Vec<usize> {
        let n_columns = self.rows.iter().map(Vec::len).max().unwrap_or(0).max(self.columns.len());
        (0..n_columns).filter(|at| self.columns.get(*at).is_none_or(|column| column.keep > 0)).collect()
    }

    /// The columns that fit, each with its width.
    fn fit(&self, listed: &[usize], left: usize, room: usize) -> Vec<(usize, usize)> {
        let natural = |at: usize| self.title_width(at).max(self.cell_width(at));
        let whole: Vec<(usize, usize)> = listed.iter().map(|at| (*at, natural(*at))).collect();
        if total_width(&whole) <= room {
            return whole;
        }
        let least = |at: usize| {
            let (heading, cells) = (self.longest_heading_word(at), self.cell_width(at));
            let text = cells.min(WHOLE_TEXT).max(self.longest_cell_word(at).min(WHOLE_WORD));
            if at < left { heading.max(text) } else { heading.max(cells) }
        };
        let mut fitted: Vec<(usize, usize)> = listed.iter().map(|at| (*at, least(*at))).collect();
        let keep = |at: usize| match self.chosen {
            Some(_) => 1,
            None => self.columns.get(at).map_or(1, |column| column.keep),
        };
        while fitted.len() > 1 && total_width(&fitted) > room {
            let order = |(place, (at, _)): &(usize, &(usize, usize))| (keep(*at), usize::MAX - place);
            let Some((place, _)) = fitted.iter().enumerate().min_by_key(order) else { break };
            fitted.remove(place);
        }
        // A screen that cannot hold even one column.
        fitted.iter_mut().for_each(|(_, width)| *width = room.min(*width));
        let mut spare = room.saturating_sub(total_width(&fitted));
        // Texts first, the one that lacks most: a broken heading reads better than a cut name.
        while spare > 0 {
            let lacking = fitted.iter_mut().filter(|(at, _)| *at < left);
            let Some(most) = lacking.max_by_key(|(at, width)| natural(*at) - *width) else { break };
            if most.1 == natural(most.0) {
                break;
            }
            most.1 += 1;
            spare -= 1;
        }
        let mut places: Vec<usize> = (0..fitted.len()).filter(|place| fitted[*place].0 >= left).collect();
        places.sort_by_key(|place| natural(fitted[*place].0) - fitted[*place].1);
        for place in places {
            let (at, width) = fitted[place];
            let lacking = natural(at) - width;
            if lacking <= spare {
                spare -= lacking;
                fitted[place].1 += lacking;
            }
        }
        fitted
    }

    fn title_width(&self, at: usize) -> usize {
        self.columns.get(at).map_or(0, |column| width(&column.title))
    }

    fn longest_heading_word(&self, at: usize) -> usize {
        let title = self.columns.get(at).map_or("", |column| column.title.as_str());
        title.split(' ').map(width).max().unwrap_or(0)
    }

    fn longest_cell_word(&self, at: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(at));
        cells.flat_map(|cell| cell.split(' ')).map(width).max().unwrap_or(0)
    }

    fn cell_width(&self, at: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell)).max().unwrap_or(0)
    }

    /// Names the columns that did not fit.
    fn left_out(&self, listed: &[usize], fitted: &[(usize, usize)], room: usize) -> String {
        let is_shown = |at: &usize| fitted.iter().any(|(shown, _)| shown == at);
        let missing: Vec<&str> = listed
            .iter()
            .filter(|at| !is_shown(at))
            .filter_map(|at| self.columns.get(*at))
            .map(|column| column.name.as_str())
            .collect();
        if missing.is_empty() {
            return String::new();
        }
        let cure = if self.is_choosable { "--columns chooses" } else { "a wider terminal shows them" };
        let text = format!("(not shown: {}; {cure})", missing.join(", "));
        wrapped(&text, room).into_iter().map(|line| line + "\n").collect()
    }
}

/// Writes a row of cells, in as many lines as its longest text has.
fn write_row(
    out: &mut String,
    cells: &[&str],
    fitted: &[(usize, usize)],
    left: usize,
    shown: &dyn Fn(&str) -> String,
) {
    let broken: Vec<Vec<String>> = fitted
        .iter()
        .map(|(at, width)| wrapped(cells.get(*at).copied().unwrap_or_default(), *width))
        .collect();
    for line_idx in 0..broken.iter().map(Vec::len).max().unwrap_or(0).max(1) {
        let (mut text, mut blanks) = (String::new(), 0);
        for ((at, widest), lines) in fitted.iter().zip(&broken) {
            let cell = lines.get(line_idx).map_or("", String::as_str);
            let pad = widest.saturating_sub(width(cell));
            let (before, after) = if *at < left { (0, pad) } else { (pad, 0) };
            if !cell.is_empty() {
                text += &" ".repeat(blanks + before);
                text += &shown(cell);
                blanks = after + GAP;
            } else {
                blanks += pad + GAP;
            }
        }
        out.push_str(&text);
        out.push('\n');
    }
}

fn total_width(fitted: &[(usize, usize)]) -> usize {
    fitted.iter().map(|(_, width)| width).sum::<usize>() + GAP * fitted.len().saturating_sub(1)
}

/// A text broken at blanks into lines of at most this width; a longer word loses its middle, because paths differ at their ends.
pub fn wrapped(text: &str, room: usize) -> Vec<String> {
    if width(text) <= room {
        return vec![text.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let word = without_middle(word, room);
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(&word) <= room => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

fn without_middle(word: &str, room: usize) -> String {
    if width(word) <= room {
        return word.to_owned();
    }
    let after = room.saturating_sub(1) / 2;
    let mut end = String::new();
    for c in word.chars().rev() {
        if width(&end) + width(c.encode_utf8(&mut [0; 4])) > after {
            break;
        }
        end.insert(0, c);
    }
    // `cut` ends with the ellipsis that stands for the middle.
    cut(word, room.saturating_sub(width(&end))) + &end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(width: usize) -> Screen {
        Screen { width: Some(width), has_color: false }
    }

    fn trials() -> TextTable {
        let mut table = TextTable::new([
            TextColumn::new("#").named("trial").keep(9),
            TextColumn::new("sharpe").keep(9),
            TextColumn::new("Max Drawdown [%]").keep(8),
            TextColumn::new("Win Rate [%]").keep(2),
            TextColumn::new("fast").keep(6),
            TextColumn::new("SQN").keep(0),
        ]);
        table.row(["17", "1.930", "-12.31", "55.10", "24", "2.1"].map(String::from));
        table.row(["4", "1.870", "-9.07", "54.00", "31", "2.0"].map(String::from));
        table
    }

    #[test]
    fn a_wide_screen_shows_all_as_it_is() {
        let whole = &"
 #  sharpe  Max Drawdown [%]  Win Rate [%]  fast
────────────────────────────────────────────────
17   1.930            -12.31         55.10    24
 4   1.870             -9.07         54.00    31
"[1..];
        assert_eq!(trials().render(0, &Screen::PLAIN), whole);
        assert_eq!(trials().render(0, &at(48)), whole);
    }

    #[test]
    fn headings_break_before_a_column_is_left_out() {
        let broken = &"
 #  sharpe       Max  Win Rate [%]  fast
            Drawdown
                 [%]
────────────────────────────────────────
17   1.930    -12.31         55.10    24
 4   1.870     -9.07         54.00    31
"[1..];
        assert_eq!(trials().render(0, &at(44)), broken);
        let less = &"
 #  sharpe       Max  fast
            Drawdown
                 [%]
──────────────────────────
17   1.930    -12.31    24
 4   1.870     -9.07    31
(not shown: win_rate; a wider
terminal shows them)
"[1..];
        assert_eq!(trials().render(0, &at(30)), less);
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        let mut table = TextTable::new(["study", "strategy", "what it does", "trials", "best so far"]);
        for name in ["runs/a-very-long-name-of-a-study/one", "日本語日本語日本語日本語/two", "x"]
        {
            let words = "buys the dip below a falling average, and sells above it";
            table.row([name, "ema-cross", words, "1,000,000", "1.930"].map(String::from));
        }
        for width in 1..140 {
            for left in 0..4 {
                for line in table.render(left, &at(width)).lines() {
                    assert!(super::width(line) <= width, "{width} {left}: {line}");
                }
            }
        }
    }

    #[test]
    fn texts_are_broken_and_names_lose_their_middle() {
        let mut table = TextTable::new(["study", "what it does", "trials"]);
        table.row(["runs/long-name-of-a-study/one", "buys the dip and sells", "1,000"].map(String::from));
        let text = table.render(2, &at(50));
        assert_eq!(
            text.lines().skip(2).collect::<Vec<_>>(),
            ["runs/long-na…a-study/one  buys the dip and   1,000", "                          sells"],
            "{text}"
        );
    }

    #[test]
    fn chosen_columns_stand_in_the_order_they_were_named() {
        let mut table = trials();
        table.choose(&["fast".into(), "sqn".into(), "Max Drawdown [%]".into()]).unwrap();
        let text = table.render(0, &Screen::PLAIN);
        assert_eq!(text.lines().next(), Some("fast  SQN  Max Drawdown [%]"));
        assert!(table.render(0, &at(12)).contains("(not shown:"), "{text}");
        let error = table.choose(&["slow".into()]).unwrap_err();
        assert_eq!(error.known, ["trial", "sharpe", "max_drawdown", "win_rate", "fast", "sqn"]);
        assert_eq!(error.name, "slow");
    }

    #[test]
    fn colours_change_no_width() {
        let mut table = trials();
        table.row(["9 ✗".into()]);
        let coloured = table.render(0, &Screen { width: Some(44), has_color: true });
        assert!(
            coloured.contains("\u{1b}[1m") && coloured.contains("\u{1b}[31m9 ✗\u{1b}[0m"),
            "{coloured:?}"
        );
        let mut plain = coloured;
        while let Some(start) = plain.find('\u{1b}') {
            let end = start + plain[start..].find('m').unwrap();
            plain.replace_range(start..=end, "");
        }
        assert_eq!(plain, table.render(0, &at(44)));
    }
}
