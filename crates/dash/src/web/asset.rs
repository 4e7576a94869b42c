//! The pages: files that are part of the program.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::answer::Refusal;

/// Path, kind and text of a file.
struct Asset {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

macro_rules! asset {
    ($path:literal, $kind:expr) => {
        Asset { path: concat!("/", $path), kind: $kind, text: include_str!(concat!("asset/", $path)) }
    };
}

const ASSETS: &[Asset] = &[
    asset!("index.html", HTML),
    asset!("icon.svg", PICTURE),
    asset!("style.css", STYLE),
    asset!("card.css", STYLE),
    asset!("table.css", STYLE),
    asset!("control.css", STYLE),
    asset!("plot.css", STYLE),
    asset!("narrow.css", STYLE),
    asset!("theme.js", SCRIPT),
    asset!("main.js", SCRIPT),
    asset!("api.js", SCRIPT),
    asset!("dom.js", SCRIPT),
    asset!("format.js", SCRIPT),
    asset!("plot.js", SCRIPT),
    asset!("lanes.js", SCRIPT),
    asset!("price.js", SCRIPT),
    asset!("runs.js", SCRIPT),
    asset!("run.js", SCRIPT),
    asset!("trials.js", SCRIPT),
    asset!("parameters.js", SCRIPT),
    asset!("parallel.js", SCRIPT),
    asset!("trial.js", SCRIPT),
];

/// The file at a path; `/` is the page.
pub(super) fn answer(path: &str, headers: &HeaderMap) -> Response {
    let wanted = if path == "/" { "/index.html" } else { path };
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == wanted) else {
        return Refusal::missing("there is no such page").hint("the dashboard is at /").into_response();
    };
    let tag = format!("\"{}-{:x}\"", env!("CARGO_PKG_VERSION"), mark(asset.text));
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let kept = [(header::CACHE_CONTROL, "no-cache".to_owned()), (header::ETAG, tag)];
    if is_known {
        return (StatusCode::NOT_MODIFIED, kept).into_response();
    }
    (kept, [(header::CONTENT_TYPE, asset.kind)], asset.text).into_response()
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
        for asset in ASSETS {
            let text = asset.text.replace("http://www.w3.org/", "");
            assert!(!text.contains("http://") && !text.contains("https://"), "{}", asset.path);
            assert!(!text.contains("innerHTML") && !text.contains("eval("), "{}", asset.path);
            if asset.kind == HTML {
                assert!(!text.contains("<style") && !text.contains("style=") && !text.contains("onclick"));
            }
        }
    }

    #[test]
    fn every_module_that_is_imported_is_there() {
        for asset in ASSETS.iter().filter(|asset| asset.kind == SCRIPT) {
            for part in asset.text.split(" from \"./").skip(1) {
                let name = format!("/{}", part.split('"').next().unwrap());
                assert!(ASSETS.iter().any(|other| other.path == name), "{} imports {name}", asset.path);
            }
        }
    }

    #[test]
    fn what_a_browser_knows_is_not_sent_again() {
        let first = answer("/style.css", &HeaderMap::new());
        assert_eq!(first.headers()[header::CONTENT_TYPE], STYLE);
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        assert_eq!(answer("/style.css", &headers).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(answer("/../Cargo.toml", &HeaderMap::new()).status(), StatusCode::NOT_FOUND);
    }
}
