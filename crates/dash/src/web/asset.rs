//! The pages: files that are part of the program, its own and those of the kit.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tidemill_page::kit;

use super::answer::Refusal;

macro_rules! assets {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("asset/", $name)))),*] };
}

/// Names and texts.
const ASSETS: &[(&str, &str)] = assets! {
    "index.html" "icon.svg"
    "style.css" "card.css" "table.css" "control.css" "plot.css" "narrow.css"
    "main.js" "api.js" "widget.js" "plot.js" "lanes.js" "runs.js" "run.js" "summary.js" "walk.js"
    "trials.js"
    "parameters.js" "combination.js" "landscape.js" "trial.js" "chart.js"
};

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    ASSETS.iter().copied().chain(kit::SERVED)
}

/// The content type of a file.
fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    }
}

/// The file at a path; `/` is the page.
pub(super) fn answer(path: &str, headers: &HeaderMap) -> Response {
    let wanted = if path == "/" { "/index.html" } else { path };
    let Some((name, text)) = all().find(|(name, _)| wanted.strip_prefix('/') == Some(name)) else {
        return Refusal::missing("there is no such page").hint("the dashboard is at /").into_response();
    };
    let tag = format!("\"{}-{:x}\"", env!("CARGO_PKG_VERSION"), mark(text));
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let kept = [(header::CACHE_CONTROL, "no-cache".to_owned()), (header::ETAG, tag)];
    if is_known {
        return (StatusCode::NOT_MODIFIED, kept).into_response();
    }
    (kept, [(header::CONTENT_TYPE, kind(name))], text).into_response()
}

/// A number that changes with the text (FNV-1a).
fn mark(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_load_nothing_from_elsewhere_and_have_no_inline_code() {
        for (name, text) in all() {
            let text = text.replace("http://www.w3.org/", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{name}");
            assert!(!text.contains("innerHTML") && !text.contains("eval("), "{name}");
            if name.ends_with(".html") {
                assert!(!text.contains("<style") && !text.contains("style=") && !text.contains("onclick"));
            }
        }
    }

    #[test]
    fn every_module_that_is_imported_is_there() {
        for (name, text) in all() {
            for part in text.split(" from \"./").skip(1) {
                let imported = part.split('"').next();
                assert!(all().any(|(other, _)| Some(other) == imported), "{name} imports {imported:?}");
            }
        }
    }

    #[test]
    fn what_a_browser_knows_is_not_sent_again() {
        let first = answer("/style.css", &HeaderMap::new());
        assert_eq!(first.headers()[header::CONTENT_TYPE], kind("style.css"));
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        assert_eq!(answer("/style.css", &headers).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(answer("/../Cargo.toml", &HeaderMap::new()).status(), StatusCode::NOT_FOUND);
    }
}
