//! What pages tell of the strategy: the list of runs, the overview of a study and of a walk-forward.

use serde_json::Value;

use crate::chromium::{self, Page};
use crate::dash::{Dash, finished};
use crate::pages::is_sound;
use crate::support::Place;

/// The answer of the sweep `runs/parts`.
fn parts_answer() -> Value {
    serde_json::from_str(&finished().read("parts.json")).unwrap()
}

#[test]
fn a_run_tells_of_the_strategy_before_the_machine() {
    let Some(mut page) = chromium::open() else { return };
    let dash = Dash::start(finished(), &[]);
    let answer = parts_answer();
    let winner = &answer["holding_up"]["winners"][0];
    page.go(&dash.page("run/parts"));
    page.wait("document.querySelector('.study.is-ready')");
    // The verdict, in the words of the sweep.
    let sentence = winner["sentence"].as_str().unwrap();
    let (survives, words) = sentence.rsplit_once(": ").unwrap();
    assert_eq!(page.text(".verdict .grade"), words);
    assert!(page.text(".verdict").contains(survives), "{sentence}");
    assert_eq!(
        page.eval("document.querySelectorAll('.checks li').length"),
        winner["checks"].as_array().unwrap().len()
    );
    // Every part stands beside the others, and none of its figures is another one than the sweep's.
    for (column, part) in ["in_sample", "out_of_sample", "holdout", "whole"].into_iter().enumerate() {
        let figures = &winner["parts"][part];
        let told = |page: &mut Page, key: &str| -> f64 {
            let cell = format!(".parts [data-figure={key}][data-part={part}]");
            page.text(&cell).replace('−', "-").parse().unwrap()
        };
        let return_ = 100.0 * figures["metrics"]["total_return"].as_f64().unwrap();
        assert!((told(&mut page, "total_return") - return_).abs() < 0.006, "{part}: {return_}");
        let market = &figures["market"];
        for (key, scale) in [("benchmark_return", 100.0), ("excess_return", 100.0), ("alpha", 100.0)] {
            let wanted = scale * market[key].as_f64().unwrap();
            assert!((told(&mut page, key) - wanted).abs() < 0.006, "{part} {key}: {wanted}");
        }
        assert_eq!(told(&mut page, "trades"), figures["metrics"]["trades"].as_f64().unwrap());
        let right = page.eval(&format!(
            "(() => {{ const box = document.querySelector('.parts [data-part={part}]').getBoundingClientRect(); \
             return box.right <= document.querySelector('.parts').parentElement.getBoundingClientRect().right + 1; }})()"
        ));
        assert_eq!(right, true, "column {column} is in sight");
    }
    // Two lines, of the trial and of the benchmark, on either scale.
    let lines = "section[aria-label='Equity of the best trial'] .line";
    assert_eq!(page.eval(&format!("document.querySelectorAll({lines:?}).length")), 2);
    let path = format!("document.querySelector({lines:?}).getAttribute('d')");
    let linear = page.eval(&path);
    page.eval(
        "document.querySelector('section[aria-label=\"Equity of the best trial\"] input[value=log]').click()",
    );
    assert_ne!(page.eval(&path), linear);
    // What the machine did comes after all of it.
    let top = |page: &mut Page, what: &str| -> f64 {
        page.eval(&format!("document.querySelector({what:?}).getBoundingClientRect().top")).as_f64().unwrap()
    };
    let machine = top(&mut page, "h2.section");
    for what in [".verdict", ".parts", ".best", "section[aria-label=Improvements]"] {
        assert!(top(&mut page, what) < machine, "{what}");
    }
    for what in ["section[aria-label=Lanes]", "section[aria-label=Phases]", ".stats"] {
        assert!(top(&mut page, what) > machine, "{what}");
    }
    is_sound(&mut page, &dash.link);
}

#[test]
fn a_winner_at_the_end_of_a_range_and_a_missing_verdict_are_said() {
    let Some(mut page) = chromium::open() else { return };
    let place = Place::with_bars();
    // A grid of two values for each parameter has nothing but ends.
    let sweep = "sweep --data lcg.csv --sampler grid --trials 32 --verdict off --device cpu --out runs/ends";
    place.ok(sweep);
    let dash = Dash::start(&place, &[]);
    page.go(&dash.page("run/ends"));
    page.wait("document.querySelector('.study.is-ready .parts')");
    let hint = page.text(".hint-edge");
    assert!(hint.contains("lies at the end of a range"), "{hint}");
    assert_eq!(page.text(".verdict .grade"), "not judged");
    // Without a split there is one part, and it is called what it is.
    let parts = page.eval(
        "[...document.querySelectorAll('.parts thead th')].map((head) => head.firstChild?.textContent)",
    );
    assert_eq!(parts.as_array().unwrap()[1..], ["in sample"]);
    is_sound(&mut page, &dash.link);

    // Without the data there is what the study stores, and the reason.
    std::fs::remove_file(place.path("lcg.csv")).unwrap();
    let dash = Dash::start(&place, &[]);
    page.go(&dash.page("run/ends"));
    page.wait(
        "document.querySelector('.study.is-ready .hints')?.textContent.includes('is not there any more')",
    );
    assert!(page.text(".study").contains("in sample") && page.text(".best").contains("In sample"));
}

#[test]
fn the_best_trials_are_the_best_by_rank() {
    let Some(mut page) = chromium::open() else { return };
    let dash = Dash::start(finished(), &[]);
    page.go(&dash.page("run/parts"));
    page.wait("document.querySelector('.study.is-ready .best')");
    let told = page.eval(
        "[...document.querySelectorAll('.best tbody tr')].map((row) => row.children[1].textContent.replaceAll(',', ''))",
    );
    let told: Vec<u64> =
        told.as_array().unwrap().iter().map(|text| text.as_str().unwrap().parse().unwrap()).collect();
    let answer = parts_answer();
    let listed: Vec<u64> =
        answer["best"].as_array().unwrap().iter().map(|best| best["trial"].as_u64().unwrap()).collect();
    assert_eq!(told[..listed.len()], listed);
    assert!(page.text(".best .spans").contains("Out of sample"));
    is_sound(&mut page, &dash.link);
}

#[test]
fn the_list_of_runs_has_verdicts_and_every_part_beside_its_benchmark() {
    let Some(mut page) = chromium::open() else { return };
    let dash = Dash::start(finished(), &[]);
    page.go(&dash.page(""));
    // One after the other is asked for what it found.
    page.wait("document.querySelectorAll('.runs .plot-spark').length === 3");
    let answer = parts_answer();
    let winner = &answer["holding_up"]["winners"][0];
    let row = "[...document.querySelectorAll('.runs tbody tr')].find((row) => row.querySelector('.row-link').textContent === 'parts')";
    let cell = |page: &mut Page, label: &str| -> String {
        let text = page.eval(&format!("{row}.querySelector('[data-label=\"{label}\"]').textContent"));
        text.as_str().unwrap().replace('−', "-")
    };
    assert!(winner["sentence"].as_str().unwrap().ends_with(&cell(&mut page, "Verdict")));
    for (label, part) in
        [("In sample", "in_sample"), ("Out of sample", "out_of_sample"), ("Holdout", "holdout")]
    {
        let figures = &winner["parts"][part];
        let told = cell(&mut page, label);
        let percent = |value: &Value| format!("{:+.1} %", 100.0 * value.as_f64().unwrap());
        let wanted = format!(
            "{}market {}",
            percent(&figures["metrics"]["total_return"]),
            percent(&figures["market"]["benchmark_return"])
        );
        assert_eq!(told, wanted, "{part}");
    }
    // Columns of the machine come last.
    let heads = page.eval("[...document.querySelectorAll('.runs thead th')].map((head) => head.textContent)");
    let heads: Vec<&str> = heads.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(heads[..2], ["Run", "Verdict"]);
    assert_eq!(heads[heads.len() - 4..], ["State", "Progress", "Best", "Last event"]);
    is_sound(&mut page, &dash.link);
}

#[test]
fn a_walk_forward_has_a_page_of_its_own() {
    let Some(mut page) = chromium::open() else { return };
    let place = finished();
    let dash = Dash::start(place, &[]);
    let stored: Value = serde_json::from_str(&place.read("runs/walk/walkforward.json")).unwrap();
    let made = &stored["walk_forward"];
    page.go(&dash.page("run/walk"));
    page.wait("document.querySelector('.walk.is-ready .windows')");
    let windows = made["windows"].as_array().unwrap();
    let rows = page.eval("[...document.querySelectorAll('.windows tbody tr')].map((row) => row.innerText)");
    assert_eq!(rows.as_array().unwrap().len(), windows.len());
    for (row, window) in rows.as_array().unwrap().iter().zip(windows) {
        let row = row.as_str().unwrap().replace('−', "-");
        assert!(row.contains(window["test_from"].as_str().unwrap()), "{row}");
        let percent = format!("{:+.2} %", 100.0 * window["total_return"].as_f64().unwrap());
        assert!(row.contains(&percent), "{percent}: {row}");
    }
    let figure = |page: &mut Page, name: &str| -> f64 {
        let text = page.text(&format!(".walk [data-figure='{name}'] td"));
        text.replace('−', "-").replace(" %", "").parse().unwrap()
    };
    let market = &made["market"];
    for (name, value) in [
        ("stitched return", &made["total_return"]),
        ("return of the benchmark", &market["benchmark_return"]),
        ("excess over the benchmark", &market["excess_return"]),
        ("maximum drawdown", &made["max_drawdown"]),
    ] {
        assert!((figure(&mut page, name) - 100.0 * value.as_f64().unwrap()).abs() < 0.006, "{name}");
    }
    // Equity, benchmark and drawdown are drawn; the equity ends where the return says.
    let lines =
        "document.querySelectorAll('section[aria-label=\"Stitched equity and drawdown\"] .line').length";
    assert_eq!(page.eval(lines), 3);
    let curve = page.eval("fetch('api/runs/walk/walk').then((answer) => answer.json())");
    let last = |key: &str| curve["curve"][key].as_array().unwrap().last().unwrap().as_f64().unwrap();
    assert!((last("equity") - 1.0 - made["total_return"].as_f64().unwrap()).abs() < 1e-12);
    assert!((last("buy_hold") - 1.0 - market["benchmark_return"].as_f64().unwrap()).abs() < 1e-9);
    // The set that a window chose leads to its trades.
    page.click(".windows tbody a");
    page.wait("document.querySelector('.trades tbody tr, .empty-title')");
    assert!(page.text(".page-head").contains("Rank 1 of"));
}
