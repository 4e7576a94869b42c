//! What a page of Markdown refers to, and what others may refer to in it.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// What is known of a page.
#[derive(Debug, Default, PartialEq)]
pub struct Page {
    /// Names that a link may have behind its `#`, as GitHub makes them of headings.
    pub anchors: BTreeSet<String>,
    /// In the order of the text.
    pub references: Vec<Reference>,
}

/// Something that has to exist.
#[derive(Debug, PartialEq)]
pub struct Reference {
    /// From 1.
    pub line: usize,
    /// What exactly.
    pub target: Target,
}

/// What a reference names.
#[derive(Debug, PartialEq)]
pub enum Target {
    /// The destination of a link.
    Link(String),
    /// The source of an image.
    Image(String),
    /// A word of code, inline or in a block of commands, that may be a path.
    Word(String),
}

impl Page {
    /// Reads a page.
    pub fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        let mut is_in_commands = false;
        let mut times_met: BTreeMap<String, usize> = BTreeMap::new();
        for (event, at) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            let line = line_of(text, at.start);
            let mut refer = |target| page.references.push(Reference { line, target });
            match event {
                Event::Start(Tag::Link { dest_url, .. }) => refer(Target::Link(dest_url.into_string())),
                Event::Start(Tag::Image { dest_url, .. }) => refer(Target::Image(dest_url.into_string())),
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let name = anchor(&heading.take().unwrap_or_default());
                    let times = times_met.entry(name.clone()).or_default();
                    page.anchors.insert(if *times == 0 { name } else { format!("{name}-{times}") });
                    *times += 1;
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(kind))) => is_in_commands = &*kind == "sh",
                Event::End(TagEnd::CodeBlock) => is_in_commands = false,
                Event::Code(code) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&code);
                    }
                    code.split_whitespace().for_each(|word| refer(Target::Word(word.to_owned())));
                }
                Event::Text(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                    if is_in_commands {
                        for (line_idx, command) in words.lines().enumerate() {
                            let words = command.split_whitespace().map(|word| Target::Word(word.to_owned()));
                            let line = line + line_idx;
                            page.references.extend(words.map(|target| Reference { line, target }));
                        }
                    }
                }
                _ => {}
            }
        }
        page
    }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// What GitHub makes of a heading: letters, digits, `-` and `_` stay, blanks become `-`, everything else goes.
fn anchor(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_github() {
        let page = Page::read(
            "# Why?\n\n## `study list [DIR]`\n\n## 4. What *it* means\n\n## Why\n\n## tidemill.toml\n",
        );
        let anchors: Vec<&str> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["4-what-it-means", "study-list-dir", "tidemilltoml", "why", "why-1"]);
    }

    #[test]
    fn links_images_and_words_of_code_are_found_with_their_lines() {
        let text = "[a](b.md#c) and\n![d](e.png)\n\n| `f/g.rs` |\n|---|\n| [h](i) |\n\n```sh\nrun j/k\nrun l\n```\n\n```text\nm/n\n```\n";
        let found: Vec<(usize, String)> = Page::read(text)
            .references
            .iter()
            .map(|found| (found.line, format!("{:?}", found.target)))
            .collect();
        let expected = [
            (1, r#"Link("b.md#c")"#),
            (2, r#"Image("e.png")"#),
            (4, r#"Word("f/g.rs")"#),
            (6, r#"Link("i")"#),
            (9, r#"Word("run")"#),
            (9, r#"Word("j/k")"#),
            (10, r#"Word("run")"#),
            (10, r#"Word("l")"#),
        ];
        assert_eq!(found, expected.map(|(line, target)| (line, target.to_owned())));
    }
}
