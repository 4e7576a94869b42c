//! What all pages share: the head, the colours, and the scripts for numbers, canvases, light and dark.
//!
//! Text of strangers (a strategy file, a symbol name) travels as JSON with `<`, `>` and `&` escaped and reaches the document only as text
//! nodes; a content-security policy inside the page forbids every network access besides.

/// Colours, letters, tables and controls.
pub const STYLE: &str = include_str!("kit/page.css");
/// Numbers and dates as text, and elements.
pub const FORMAT: &str = include_str!("kit/format.js");
/// Canvases and their axes.
pub const CANVAS: &str = include_str!("kit/canvas.js");
/// Light and dark.
pub const THEME: &str = include_str!("kit/theme.js");

/// A page that is one file.
pub struct Page<'a> {
    /// Title of the window.
    pub title: &'a str,
    /// What the page adds to the [`STYLE`] of all.
    pub style: &'a str,
    /// The element `body` without its end.
    pub body: &'a str,
    /// What draws the page; without it no script runs at all.
    pub script: Option<Script<'a>>,
}

/// Scripts inside a page, and what they draw.
pub struct Script<'a> {
    /// JSON for the element `data`.
    pub data: &'a str,
    /// The scripts, in an order in which each uses only earlier ones at load time.
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
        page += STYLE;
        page += self.style;
        page += "</style>\n</head>\n";
        page += self.body;
        if let Some(script) = &self.script {
            page += "<script type=\"application/json\" id=\"data\">";
            page += &escape_json(script.data);
            page += "</script>\n<script>\n'use strict';\n(() => {\n";
            script.parts.iter().for_each(|part| page += part);
            page += "})();\n</script>\n";
        }
        page + "</body>\n</html>\n"
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
    fn a_page_without_scripts_allows_none() {
        let page = Page { title: "a<b", style: "", body: "<body>\n", script: None }.html();
        assert!(page.contains("<title>a&lt;b</title>"), "{page}");
        assert!(!page.contains("<script") && !page.contains("script-src"), "{page}");
    }
}
