//! The page of a study: its verdict and parts at the top, the heat map, in sample against out of sample.

use crate::chromium::{self, Page};
use crate::dash::finished;

#[test]
fn a_study_shows_its_verdict_a_heat_map_and_what_was_kept_out_of_sample() {
    let Some(mut page) = chromium::open() else { return };
    let place = finished();
    place.ok("study show runs/dip --html study-page.html");
    let address = format!("file://{}", place.path("study-page.html").display());
    page.call("Page.navigate", serde_json::json!({ "url": address }));
    page.wait(&format!(
        "location.href === {address:?} && document.documentElement?.classList.contains('ready')"
    ));
    let verdict = page.text("#judged");
    assert!(verdict.contains("survives") && verdict.contains("checks"), "{verdict}");
    let columns = page.eval(
        "[...document.querySelectorAll('#parts thead th')].map((cell) => cell.firstChild?.textContent)",
    );
    assert_eq!(columns, serde_json::json!([null, "in sample", "out of sample", "whole period"]));
    let is_drawn = |page: &mut Page, canvas: &str| {
        page.wait(&format!(
            "(() => {{ const node = document.querySelector('{canvas}'); return node.width > 300 && \
             node.getContext('2d').getImageData(0, 0, node.width, node.height).data.some((value) => value > 0); }})()"
        ));
    };
    is_drawn(&mut page, "#heat-canvas");
    is_drawn(&mut page, "#unseen-canvas");
    assert!(
        page.text("#unseen-note").contains("rank correlation"),
        "every trial has its figure out of sample"
    );
    // Another pair of parameters is another map.
    let before = page.eval("document.querySelector('#heat-canvas').toDataURL()");
    page.eval(
        "(() => { const select = document.querySelector('#heat-up'); select.value = select.options[2].value; \
         select.dispatchEvent(new Event('change')); })()",
    );
    page.wait(&format!("document.querySelector('#heat-canvas').toDataURL() !== {before}"));
    // The cell of the best trial is under the pointer at its frame: some cell names its trials.
    page.eval(
        "(() => { const node = document.querySelector('#heat-canvas'); const box = node.getBoundingClientRect(); \
         for (let x = 60; x < box.width - 80; x += 9) for (let y = 10; y < box.height - 30; y += 9) { \
           node.dispatchEvent(new PointerEvent('pointermove', { clientX: box.left + x, clientY: box.top + y })); \
           if (document.querySelector('#heat-readout').textContent.includes('median')) return; } })()",
    );
    assert!(page.text("#heat-readout").contains("median"));
    for width in [1280, 390] {
        page.size(width, 900);
        let wide = page.eval("document.documentElement.scrollWidth").as_u64().unwrap();
        assert!(wide <= u64::from(width), "{wide} of {width}");
    }
    assert_eq!(page.problems, Vec::<String>::new());
}
