//! What all pages share: head and foot, colours, numbers, canvases, the price chart and the parallel coordinates.
//!
//! The scripts are ES modules. The dashboard serves them as they are ([`SERVED`]); a page that is one file has them one after the other in
//! one function, without `import` lines and the word `export`, so a name must be unique among all files of a page.
//!
//! Foreign text (a strategy file, a symbol name) travels as JSON with `<`, `>` and `&` escaped and reaches the document only as text
//! nodes; a content-security policy inside the page forbids every network access besides.

pub mod axis;
pub mod parts;

/// Colours, light and dark.
const COLOUR: &str = include_str!("kit/colour.css");
/// How the dark colours begin in [`COLOUR`]; a script sets the attribute.
const DARK: &str = ":root[data-theme=\"dark\"]";
/// What charts need.
const CHART: &str = include_str!("kit/chart.css");
/// Letters, tables and controls of pages that are one file.
const PAGE: &str = include_str!("kit/page.css");

/// Sets light or dark before anything is drawn; no module.
const THEME: &str = include_str!("kit/theme.js");
/// Elements.
const DOM: &str = include_str!("kit/dom.js");
/// Numbers, dates and ticks as text.
const FORMAT: &str = include_str!("kit/format.js");
/// Canvases and what is drawn on them.
const CANVAS: &str = include_str!("kit/canvas.js");
/// Parameters as axes.
const AXIS: &str = include_str!("kit/axis.js");
/// Heat map of two parameters.
const HEAT: &str = include_str!("kit/heat.js");
/// Parallel coordinates.
const PARALLEL: &str = include_str!("kit/parallel.js");
/// Figures by part of the data.
const PARTS: &str = include_str!("kit/parts.js");
/// The strip below the price chart.
const OVERVIEW: &str = include_str!("kit/overview.js");
/// The price chart.
const PRICE: &str = include_str!("kit/price.js");
/// Sections of a page that is one file.
const SECTION: &str = include_str!("kit/section.js");
/// Its button for light and dark.
const SWITCH: &str = include_str!("kit/switch.js");

/// Names and texts of the files that the dashboard serves.
pub const SERVED: [(&str, &str); 12] = [
    ("colour.css", COLOUR),
    ("chart.css", CHART),
    ("theme.js", THEME),
    ("dom.js", DOM),
    ("format.js", FORMAT),
    ("canvas.js", CANVAS),
    ("axis.js", AXIS),
    ("parts.js", PARTS),
    ("heat.js", HEAT),
    ("parallel.js", PARALLEL),
    ("overview.js", OVERVIEW),
    ("price.js", PRICE),
];

/// The beginning of a page that draws itself, up to its first section.
const HEAD: &str = include_str!("kit/head.html");

/// What every page says at its end.
pub const DISCLAIMER: &str = "Past results of a rule on historical prices; not a forecast.";

/// The scripts that every page begins with.
const BASE: [&str; 7] = [THEME, DOM, FORMAT, CANVAS, SECTION, SWITCH, PARTS];

/// The price chart and what it needs beyond `BASE`.
pub const PRICE_CHART: [&str; 2] = [OVERVIEW, PRICE];

/// The charts of parameters and what they need beyond `BASE`.
pub const PARAMETER_CHARTS: [&str; 3] = [AXIS, HEAT, PARALLEL];

/// A page that is one file.
pub struct Page<'a> {
    /// Title of the window.
    pub title: &'a str,
    /// What the page adds to the style of all.
    pub style: &'a str,
    /// The element `body` without its end; [`drawn_body`] makes that of a page with a script.
    pub body: &'a str,
    /// What draws the page; without it no script runs at all.
    pub script: Option<Script<'a>>,
}

/// Scripts inside a page, and what they draw.
pub struct Script<'a> {
    /// JSON for the element `data`.
    pub data: &'a str,
    /// The charts of the kit that the page has.
    pub charts: &'a [&'a str],
    /// Its own scripts, in an order in which each uses only earlier ones at load time.
    pub parts: &'a [&'a str],
}

impl Page<'_> {
    /// The file.
    pub fn html(&self) -> String {
        let n_data = self.script.as_ref().map_or(0, |script| script.data.len());
        let mut page = String::with_capacity(n_data + 120_000);
        let allowed = if self.script.is_some() { "script-src 'unsafe-inline'; " } else { "" };
        page += "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
        page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
        page += "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; ";
        page += allowed;
        page += "base-uri 'none'; form-action 'none'\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>";
        page += &escape(self.title);
        page += "</title>\n<style>\n";
        page += &colours(self.script.is_some());
        page += PAGE;
        page += CHART;
        page += self.style;
        page += "</style>\n</head>\n";
        page += self.body;
        if let Some(script) = &self.script {
            page += "<script type=\"application/json\" id=\"data\">";
            page += &escape_json(script.data);
            page += "</script>\n<script>\n'use strict';\n(() => {\n";
            BASE.iter()
                .chain(script.charts)
                .chain(script.parts)
                .for_each(|part| append_module(&mut page, part));
            page += "})();\n</script>\n";
        }
        page + "</body>\n</html>\n"
    }
}

/// The head of a page that draws itself.
pub struct Head<'a> {
    /// Ids and names of the sections that the bar at the top links to.
    pub sections: &'a [(&'a str, &'a str)],
    /// Id and label of the list to choose from, at the right of the bar.
    pub choice: (&'a str, &'a str),
}

/// The element `body` of a page that draws itself, without its end: the head, the page's own sections, the foot with `remark` at its end.
pub fn drawn_body(head: &Head<'_>, sections: &str, remark: &str) -> String {
    let links: String =
        head.sections.iter().map(|(id, name)| format!("<a href=\"#{id}\">{name}</a>")).collect();
    let (id, label) = head.choice;
    let choice = format!("<label id=\"{id}-box\">{label} <select id=\"{id}\"></select></label>");
    let head = HEAD.replace("%sections%", &links).replace("%choice%", &choice);
    format!("{head}{sections}</main>\n<footer><p id=\"made\"></p><p>{DISCLAIMER}{remark}</p></footer>\n")
}

/// The colours; where no script says which, the system does.
fn colours(has_script: bool) -> String {
    match COLOUR.split_once(DARK) {
        Some((light, dark)) if !has_script => {
            format!("{light}@media (prefers-color-scheme: dark) {{\n:root{dark}}}\n")
        }
        _ => COLOUR.into(),
    }
}

/// Appends a module as a plain script.
fn append_module(page: &mut String, module: &str) {
    for line in module.lines().filter(|line| !line.starts_with("import ")) {
        page.push_str(line.strip_prefix("export ").unwrap_or(line));
        page.push('\n');
    }
}

/// JSON that may stand inside a `<script>` element: no character of it can end the element or start a comment.
fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// Text that may stand between HTML tags and in attributes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_data_can_leave_the_script_element() {
        let text = escape_json(r#"["</script><!-- & -->"]"#);
        assert!(!text.contains(['<', '>', '&']));
        assert_eq!(serde_json::from_str::<[String; 1]>(&text).unwrap(), ["</script><!-- & -->"]);
    }

    #[test]
    fn an_import_is_one_line_from_a_file_that_is_served() {
        for (name, text) in SERVED {
            for line in text.lines().filter(|line| line.starts_with("import ")) {
                let from = line.split(" from './").nth(1).and_then(|rest| rest.split('\'').next());
                assert!(SERVED.iter().any(|(other, _)| Some(*other) == from), "{name}: {line}");
            }
        }
    }

    #[test]
    fn a_drawn_body_links_to_its_sections() {
        let head = Head { sections: &[("price", "Price"), ("setup", "Setup")], choice: ("scope", "Symbol") };
        let body = drawn_body(&head, "<section id=\"price\"></section>\n", " Luck.");
        assert!(body.contains("<a href=\"#price\">Price</a><a href=\"#setup\">Setup</a>"), "{body}");
        assert!(body.contains("<label id=\"scope-box\">Symbol <select id=\"scope\">"), "{body}");
        assert!(body.contains("not a forecast. Luck.</p>") && !body.contains('%'), "{body}");
    }

    #[test]
    fn a_page_without_scripts_is_dark_where_the_system_is() {
        assert!(colours(false).contains("@media (prefers-color-scheme: dark) {\n:root {"));
        assert!(!colours(false).contains("data-theme") && colours(true).contains("data-theme"));
    }

    #[test]
    fn a_page_without_scripts_allows_none() {
        let page = Page { title: "a<b", style: "", body: "<body>\n", script: None }.html();
        assert!(page.contains("<title>a&lt;b</title>"), "{page}");
        assert!(!page.contains("<script") && !page.contains("script-src"), "{page}");
    }
}
