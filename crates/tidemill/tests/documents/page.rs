//! What a page tells its reader to do, in order.
//!
//! | in the page | means |
//! |---|---|
//! | a block `sh` | commands to run |
//! | a block `output` | what the commands of the last block `sh` print; a line `…` stands for any lines |
//! | a block `toml` with a `name` | a strategy, saved as `NAME.toml` |
//! | `<!-- file: NAME -->` before a block | the block is saved under this name |
//! | `<!-- file: NAME`, lines, `-->` | a file that the page does not show |
//! | `<!-- fails -->` before a block `sh` | its last command ends with an error |
//! | `<!-- not run: REASON -->` before a block `sh` | it cannot be run here, and its output not be compared |
//! | `<!-- set up: COMMANDS -->` | what a reader has before: run, and not shown |

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A page as a list of things to do.
#[derive(Debug, Default)]
pub struct Page {
    pub steps: Vec<Step>,
    /// `LINE: what is wrong with the marks`.
    pub problems: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub enum Step {
    /// Commands that prepare what a reader has.
    SetUp { line: usize, commands: String },
    /// A file to save.
    File { name: String, text: String },
    /// Commands, and what is to become of them.
    Commands { line: usize, commands: String, fate: Expectation },
    /// What the last commands print; where it stands in the page.
    Output { line: usize, text: String, at: Range<usize> },
}

/// What is to become of commands.
#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    Succeed,
    Fail,
    /// With the reason.
    NotRun(String),
}

/// A comment that says something about the next block.
enum Mark {
    Expectation(Expectation),
    File(String),
}

impl Page {
    pub fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut mark: Option<(usize, Mark)> = None;
        let mut block: Option<(String, Range<usize>)> = None;
        let mut comment: Option<(usize, String)> = None;
        for (event, at) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            let line = 1 + text[..at.start].matches('\n').count();
            match event {
                Event::Start(Tag::HtmlBlock) => comment = Some((line, String::new())),
                Event::Html(html) => {
                    if let Some((_, comment)) = &mut comment {
                        comment.push_str(&html);
                    }
                }
                Event::End(TagEnd::HtmlBlock) => {
                    let (line, html) = comment.take().unwrap_or_default();
                    let inner = html.trim().strip_prefix("<!--").and_then(|html| html.strip_suffix("-->"));
                    let inner = inner.unwrap_or_default().trim();
                    if let Some(commands) = inner.strip_prefix("set up:") {
                        page.steps.push(Step::SetUp { line, commands: commands.trim().to_owned() });
                    } else if let Some(reason) = inner.strip_prefix("not run:") {
                        mark = Some((line, Mark::Expectation(Expectation::NotRun(reason.trim().to_owned()))));
                    } else if inner == "fails" {
                        mark = Some((line, Mark::Expectation(Expectation::Fail)));
                    } else if let Some(file) = inner.strip_prefix("file:") {
                        match file.trim().split_once('\n') {
                            Some((name, text)) => {
                                page.steps.push(Step::File {
                                    name: name.trim().to_owned(),
                                    text: format!("{text}\n"),
                                });
                            }
                            None => mark = Some((line, Mark::File(file.trim().to_owned()))),
                        }
                    }
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(kind))) => {
                    block = Some((kind.into_string(), content(text, &at)));
                }
                Event::End(TagEnd::CodeBlock) => {
                    let Some((kind, at)) = block.take() else { continue };
                    page.add(line, &kind, &text[at.clone()], at, mark.take().map(|(_, mark)| mark));
                }
                Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::List(_) | Tag::Table(_)) => {
                    if let Some((line, _)) = mark.take() {
                        page.problems.push(format!("{line}: this comment stands before no block"));
                    }
                }
                _ => {}
            }
        }
        if let Some((line, _)) = mark {
            page.problems.push(format!("{line}: this comment stands before no block"));
        }
        page
    }

    fn add(&mut self, line: usize, kind: &str, text: &str, at: Range<usize>, mark: Option<Mark>) {
        let text = text.to_owned();
        match (kind, mark) {
            (_, Some(Mark::File(name))) => self.steps.push(Step::File { name, text }),
            ("sh", None) => {
                self.steps.push(Step::Commands { line, commands: text, fate: Expectation::Succeed })
            }
            ("sh", Some(Mark::Expectation(fate))) => {
                self.steps.push(Step::Commands { line, commands: text, fate })
            }
            (_, Some(Mark::Expectation(_))) => {
                self.problems.push(format!("{line}: the comment before this block is for commands"));
            }
            ("output", None) => {
                if !self.steps.iter().any(|step| matches!(step, Step::Commands { .. })) {
                    self.problems.push(format!("{line}: an output before any command"));
                }
                self.steps.push(Step::Output { line, text, at });
            }
            ("toml", None) => {
                let name = text
                    .lines()
                    .take_while(|line| !line.starts_with('['))
                    .find_map(|line| line.strip_prefix("name = \"").and_then(|rest| rest.split('"').next()));
                if let Some(name) = name {
                    self.steps.push(Step::File { name: format!("{name}.toml"), text });
                }
            }
            _ => {}
        }
    }
}

/// The lines between the fences of a block.
fn content(text: &str, block: &Range<usize>) -> Range<usize> {
    let whole = &text[block.clone()];
    let begin = whole.find('\n').map_or(whole.len(), |at| at + 1);
    let end = whole.trim_end_matches('\n').rfind('\n').map_or(begin, |at| at + 1);
    block.start + begin..block.start + end.max(begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Page

<!-- set up:
tidemill data generate --out btc.parquet
-->
```sh
tidemill sweep
```

Prose.

```output
one
…
```

```toml
# A comment.
name = \"mine\"

[params]
name = \"no\"
```

```toml
[gpu]
device = \"auto\"
```

<!-- file: other.txt -->
```text
x
```

<!-- not run: needs a GPU -->
```sh
tidemill doctor
```

<!-- file: hidden.toml
[a]

b = 1
-->

<!-- fails -->
```sh
tidemill nonsense
```

```output
```
";

    #[test]
    fn a_page_is_a_list_of_steps() {
        let page = Page::read(TEXT);
        assert_eq!(page.problems, Vec::<String>::new());
        let commands = |line, commands: &str, fate: Expectation| Step::Commands {
            line,
            commands: commands.into(),
            fate,
        };
        let file = |name: &str, text: &str| Step::File { name: name.into(), text: text.into() };
        let at = TEXT.find("one").unwrap();
        let end = TEXT.len() - "```\n".len();
        assert_eq!(
            page.steps,
            [
                Step::SetUp { line: 3, commands: "tidemill data generate --out btc.parquet".into() },
                commands(6, "tidemill sweep\n", Expectation::Succeed),
                Step::Output { line: 12, text: "one\n…\n".into(), at: at..at + "one\n…\n".len() },
                file("mine.toml", "# A comment.\nname = \"mine\"\n\n[params]\nname = \"no\"\n"),
                file("other.txt", "x\n"),
                commands(36, "tidemill doctor\n", Expectation::NotRun("needs a GPU".into())),
                file("hidden.toml", "[a]\n\nb = 1\n"),
                commands(47, "tidemill nonsense\n", Expectation::Fail),
                Step::Output { line: 51, text: String::new(), at: end..end },
            ]
        );
    }

    #[test]
    fn marks_that_mark_nothing_are_problems() {
        let problems = |text: &str| Page::read(text).problems;
        assert_eq!(
            problems("<!-- not run: x -->\n\nProse.\n\n```sh\ny\n```\n"),
            ["1: this comment stands before no block"]
        );
        assert_eq!(problems("\n<!-- file: x -->\n"), ["2: this comment stands before no block"]);
        assert_eq!(
            problems("<!-- not run: x -->\n```text\ny\n```\n"),
            ["2: the comment before this block is for commands"]
        );
        assert_eq!(problems("```output\ny\n```\n"), ["1: an output before any command"]);
    }
}
