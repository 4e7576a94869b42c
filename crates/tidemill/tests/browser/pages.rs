//! Every page of a finished run.

use serde_json::Value;

use crate::chromium::{self, Page};
use crate::dash::{Dash, finished};

fn numbers(page: &mut Page, column: &str) -> Vec<f64> {
    let expression = format!(
        "(() => {{ const heads = [...document.querySelectorAll('.trials thead tr:last-child th')]; \
         const at = heads.findIndex((head) => head.dataset.column === '{column}'); \
         return [...document.querySelectorAll('.trials tbody tr')].map((row) => \
         Number(row.children[at].textContent.replace('−', '-').replaceAll(',', ''))); }})()"
    );
    page.eval(&expression)
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap_or(f64::NAN))
        .collect()
}

/// What is true of every page whatever it shows.
pub fn is_sound(page: &mut Page, link: &str) {
    assert_eq!(page.problems, Vec::<String>::new());
    let elsewhere: Vec<&String> =
        page.requests.iter().filter(|url| !url.starts_with(link) && *url != "about:blank").collect();
    assert_eq!(elsewhere, Vec::<&String>::new(), "the page requests nothing from elsewhere");
}

#[test]
fn a_run_is_listed_and_drawn() {
    let Some(mut page) = chromium::open() else { return };
    let dash = Dash::start(finished(), &[]);
    page.go(&dash.page(""));
    page.wait("document.querySelectorAll('.runs .row-link').length === 3");
    page.eval("document.querySelector('.search').focus()");
    page.write("parts");
    page.wait("document.querySelectorAll('.runs .row-link').length === 1");
    assert_eq!(page.text(".runs .row-link"), "parts");
    assert_eq!(page.text(".runs .pill"), "complete");
    assert!(page.text(".runs tbody").contains("100 %"));

    page.eval(
        "location.hash = document.querySelector('.row-link').getAttribute('href').replace('parts', 'dip')",
    );
    page.wait("document.querySelector('section[aria-label=Convergence] .line')");
    assert!(page.eval("location.hash") == "#/run/dip");
    assert!(page.text(".amount").starts_with("400 of 400 trials"));
    // The curve is as long as the plot is wide, and rises.
    let curve = page.eval(
        "(() => { const box = document.querySelector('section[aria-label=Convergence] .line').getBBox(); \
         return [box.width, box.height]; })()",
    );
    assert!(curve[0].as_f64().unwrap() > 300.0 && curve[1].as_f64().unwrap() > 20.0, "{curve}");
    let drawn =
        |page: &mut Page, what: &str| page.eval(&format!("document.querySelectorAll({what:?}).length"));
    assert!(drawn(&mut page, "section[aria-label=Lanes] rect[class^=phase]").as_u64().unwrap() > 10);
    assert!(drawn(&mut page, "section[aria-label='Device busy and full'] .line") == 2);
    assert!(drawn(&mut page, "section[aria-label=Phases] tbody tr").as_u64().unwrap() >= 3);
    assert!(drawn(&mut page, "section[aria-label=Events] tbody tr").as_u64().unwrap() >= 10);
    assert!(page.text("section[aria-label=Configuration]").contains("zscore-dip"));

    // Over time instead of trials, by the keys that every group of choices has.
    page.eval("document.querySelector('section[aria-label=Convergence] .choice input').focus()");
    page.key("ArrowRight");
    page.wait("document.querySelector('section[aria-label=Convergence]').textContent.includes(' s')");
    // What improved on all before is a panel of its own; the newest is the best, and leads to its page.
    page.click("section[aria-label=Improvements] tbody a");
    page.wait("location.hash.includes('/trial/')");
    is_sound(&mut page, &dash.link);
}

#[test]
fn trials_are_sorted_filtered_and_turned_by_the_page() {
    let Some(mut page) = chromium::open() else { return };
    let dash = Dash::start(finished(), &[]);
    page.go(&dash.page("run/dip/trials?fold=no"));
    page.wait("document.querySelector('.trials thead [data-column=test_objective]')");
    page.wait("document.querySelectorAll('.trials tbody tr').length === 50");
    let best = numbers(&mut page, "objective");
    assert!(best.windows(2).all(|pair| pair[0] >= pair[1]), "{best:?}");

    page.click(".trials [data-column=trades]");
    page.wait("document.querySelector('[aria-sort=descending] [data-column=trades]')");
    let most = numbers(&mut page, "trades");
    assert!(most.windows(2).all(|pair| pair[0] >= pair[1]) && most[0] > most[49], "{most:?}");
    // The focus stayed where it was, so that the key turns the order round.
    page.key("Enter");
    page.wait("document.querySelector('[aria-sort=ascending] [data-column=trades]')");
    let fewest = numbers(&mut page, "trades");
    assert!(fewest.windows(2).all(|pair| pair[0] <= pair[1]), "{fewest:?}");

    page.eval("document.querySelector('.filter').focus()");
    page.write("trades >= 30 and window < 60");
    page.key("Enter");
    page.wait("location.hash.includes('filter=') && / of 400 trials/.test(document.querySelector('.tools').textContent)");
    page.wait("!document.querySelector('.is-waiting')");
    assert!(numbers(&mut page, "trades").iter().all(|trades| *trades >= 30.0));
    assert!(numbers(&mut page, "window").iter().all(|window| *window < 60.0));

    page.write(" and nonsense > 1");
    page.key("Enter");
    page.wait("document.querySelector('.field-error').textContent.includes('nonsense')");
    assert_eq!(page.eval("document.querySelector('.filter').getAttribute('aria-invalid')"), "true");
    page.problems.retain(|problem| !problem.contains("400 (Bad Request)"));

    // The URL holds the query.
    page.go(&dash.page("run/dip/trials?sort=trades&order=asc&offset=50&fold=no"));
    page.wait("document.querySelector('.pages')?.textContent.includes('51 – 100')");
    page.click(".pages [aria-label='Next page']");
    page.wait("document.querySelector('.pages').textContent.includes('101 – 150')");
    page.click(".trials tbody tr:nth-child(3) td:nth-child(2)");
    page.wait("location.hash.startsWith('#/run/dip/trial/')");
    is_sound(&mut page, &dash.link);
}

#[test]
fn neighbours_share_a_row_and_unfold() {
    let Some(mut page) = chromium::open() else { return };
    let place = finished();
    let dash = Dash::start(place, &[]);
    page.go(&dash.page("run/dip/trials"));
    page.wait("document.querySelector('.trials .unfold')");
    // The sets that share a row are those of which the sweep lists one.
    let sweep: Value = serde_json::from_str(&place.read("dip.json")).unwrap();
    let listed: Vec<f64> =
        sweep["best"].as_array().unwrap().iter().map(|best| best["trial"].as_f64().unwrap()).collect();
    assert_eq!(numbers(&mut page, "trial")[..listed.len()], listed);
    // No trial is lost: every one stands in one row.
    let counts =
        page.eval("fetch('api/runs/dip/trials?fold=groups&limit=500').then((answer) => answer.json())");
    let sum = |key: &str| -> u64 { counts[key].as_array().unwrap().iter().filter_map(Value::as_u64).sum() };
    assert_eq!(sum("counts"), 400);
    let n_groups = counts["n_rows"].as_u64().unwrap();
    assert!(n_groups > 10 && n_groups < 400, "{n_groups}");
    assert!(page.text(".tools").contains(&format!("400 trials in {n_groups} groups")));

    let rows = "document.querySelectorAll('.trials tbody tr').length";
    let before = page.eval(rows).as_u64().unwrap();
    let size = page.eval("Number(document.querySelector('.unfold').textContent.replace(/[^0-9]/g, ''))");
    let size = size.as_u64().unwrap();
    let shown = (size - 1).min(20);
    page.click(".trials .unfold");
    page.wait(&format!("document.querySelectorAll('.trials .is-member:not(.is-rest)').length === {shown}"));
    // None of its neighbours is better, valid or not, and all have figures out of sample too.
    let scores = numbers(&mut page, "objective");
    page.wait(
        "(() => { const at = [...document.querySelectorAll('.trials thead tr:last-child th')]\
         .findIndex((head) => head.dataset.column === 'test_objective'); \
         return at > 0 && [...document.querySelectorAll('.trials .is-member:not(.is-rest)')]\
         .some((row) => /[0-9]/.test(row.children[at].textContent)); })()",
    );
    assert!(!scores[1..=shown as usize].iter().any(|score| *score > scores[0]), "{scores:?}");
    assert_eq!(page.eval("document.activeElement.getAttribute('aria-expanded')"), "true");
    page.key("Enter");
    page.wait(&format!("{rows} === {before}"));
    // Without folding there is one row per trial.
    page.click(".check input");
    page.wait("location.hash.includes('fold=no') && !document.querySelector('.unfold')");
    page.wait(&format!("{rows} === 50"));
    is_sound(&mut page, &dash.link);
}

#[test]
fn figures_out_of_sample_are_those_of_the_sweep() {
    let Some(mut page) = chromium::open() else { return };
    let place = finished();
    let dash = Dash::start(place, &[]);
    let sweep: Value = serde_json::from_str(&place.read("dip.json")).unwrap();
    let best = sweep["best"].as_array().unwrap();
    page.go(&dash.page("run/dip/trials"));
    page.wait("document.querySelector('.trials thead [data-column=test_total_return]')");
    let trials: Vec<String> = best.iter().map(|one| one["trial"].to_string()).collect();
    let told = page.eval(&format!(
        "fetch('api/runs/dip/unseen?trials={}').then((answer) => answer.json())",
        trials.join(",")
    ));
    let names: Vec<&str> =
        told["columns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
    let at = |name: &str| names.iter().position(|other| *other == name).unwrap();
    let rows = told["rows"].as_array().unwrap();
    assert_eq!(rows.len(), best.len());
    for row in rows {
        let own = best.iter().find(|one| one["trial"] == row[0]).unwrap();
        assert_eq!(row[1][at("test_objective")], own["out_of_sample"]["objective"]);
        for name in ["total_return", "trades", "max_drawdown"] {
            // The browser drops the point of a whole number.
            let told = row[1][at(&format!("test_{name}"))].as_f64();
            assert_eq!(told, own["out_of_sample"]["metrics"][name].as_f64(), "{name}");
        }
    }
    // And the first row of the table has them, as people read them.
    let first = numbers(&mut page, "test_total_return")[0];
    let stored = best[0]["out_of_sample"]["metrics"]["total_return"].as_f64().unwrap();
    assert!((first - 100.0 * stored).abs() < 0.006, "{first} {stored}");
    assert!(page.text(".trials .spans").contains("Out of sample"));
    is_sound(&mut page, &dash.link);
}

#[test]
fn a_trial_has_its_chart_and_its_trades() {
    let Some(mut page) = chromium::open() else { return };
    let place = finished();
    let dash = Dash::start(place, &[]);
    let best = place.json("study best runs/dip");
    let trial = best["best"][0]["trial"].as_u64().unwrap();
    page.go(&dash.page(&format!("run/dip/trial/{trial}")));
    page.wait("document.querySelector('.trades tbody tr')");
    page.wait("document.querySelector('canvas.price').dataset.bars > 100");
    assert!(page.text(".page-head").contains("Rank 1 of 400"));
    assert!(
        page.eval("document.querySelector('.alert')?.textContent ?? null").is_null(),
        "it came out as it was stored"
    );

    // The same as the command line says.
    let stored = best["best"][0]["metrics"]["trades"].as_f64().unwrap();
    let figure = page.eval(
        "[...document.querySelectorAll('.figures tbody tr')].find((row) => row.textContent.startsWith('# Trades')).children[1].textContent",
    );
    assert_eq!(figure.as_str().unwrap().parse::<f64>().unwrap(), stored);

    // Something is drawn: pixels of the colours of rising bars, entries and exits.
    let coloured = "(() => { const node = document.querySelector('canvas.price'); const { data } = \
         node.getContext('2d').getImageData(0, 0, node.width, node.height); let n = 0; \
         for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 0 && Math.abs(data[at] - data[at + 2]) > 60) n += 1; return n; })()";
    page.wait(&format!("{coloured} > 500"));
    let shown = |page: &mut Page| -> f64 {
        let count = page.eval("Number(document.querySelector('canvas.price').dataset.trades)");
        count.as_f64().unwrap()
    };
    let all = shown(&mut page);
    page.click("[aria-label='Zoom in']");
    page.click("[aria-label='Zoom in']");
    page.wait(&format!("Number(document.querySelector('canvas.price').dataset.trades) < {all}"));
    let few = shown(&mut page);
    page.eval("document.querySelector('canvas.price').focus()");
    page.key("-");
    page.key("0");
    page.wait(&format!("Number(document.querySelector('canvas.price').dataset.trades) === {all}"));
    assert!(few < all);
    // A trade leads to its place in the chart.
    page.click(".trades tbody tr:nth-child(2) button");
    page.wait(&format!("Number(document.querySelector('canvas.price').dataset.trades) < {all}"));
    let curves =
        page.eval("document.querySelectorAll('section[aria-label=\"Equity and drawdown\"] .line').length");
    assert_eq!(curves, 3);
    is_sound(&mut page, &dash.link);
}

#[test]
fn parameters_are_weighed_and_brushed() {
    let Some(mut page) = chromium::open() else { return };
    let dash = Dash::start(finished(), &[]);
    page.go(&dash.page("run/dip/parameters"));
    page.wait("document.querySelectorAll('.slice canvas').length >= 4");
    let shares = page.eval(
        "[...document.querySelectorAll('.importance .num')].map((node) => parseFloat(node.textContent))",
    );
    let shares: Vec<f64> = shares.as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1.0 && shares[0] >= shares[1], "{shares:?}");
    page.wait("document.querySelector('.parallel-summary').textContent.includes('Drag along')");
    // By the mouse, from the top of the first axis to its middle.
    let place = page.eval(
        "(() => { const box = document.querySelector('.parallel canvas').getBoundingClientRect(); return [box.x + 26, box.y + 40, box.y + 160]; })()",
    );
    for (kind, y) in [("mousePressed", &place[1]), ("mouseMoved", &place[2]), ("mouseReleased", &place[2])] {
        let params = serde_json::json!({ "type": kind, "x": place[0], "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
        page.call("Input.dispatchMouseEvent", params);
    }
    page.wait("/ of [0-9]+ trials pass/.test(document.querySelector('.parallel-summary').textContent)");
    page.click(".parallel-summary button");
    page.wait("document.querySelector('.parallel-summary').textContent.includes('Drag along')");
    // And by the keys.
    page.eval("document.querySelector('.axis-control').focus()");
    page.key("ArrowUp");
    page.wait("/ of [0-9]+ trials pass/.test(document.querySelector('.parallel-summary').textContent)");
    page.key("Escape");
    page.wait("document.querySelector('.parallel-summary').textContent.includes('Drag along')");
    is_sound(&mut page, &dash.link);
}

#[test]
fn two_parameters_are_mapped_and_scores_compared_with_those_out_of_sample() {
    let Some(mut page) = chromium::open() else { return };
    let dash = Dash::start(finished(), &[]);
    page.go(&dash.page("run/dip/parameters"));
    page.wait("Number(document.querySelector('.heat canvas')?.dataset.cells) > 3");
    let picture =
        "(() => { const node = document.querySelector('.heat canvas'); return node.toDataURL(); })()";
    let before = page.eval(picture);
    // A switch has two cells upwards, whatever lies across.
    page.eval(
        "(() => { const select = document.querySelector('.heat select[aria-label=\"Parameter upwards\"]'); \
         select.value = [...select.options].find((one) => one.textContent === 'use_stop').value; \
         select.dispatchEvent(new Event('change')); })()",
    );
    page.wait(&format!("{picture} !== {before}"));
    assert!(
        page.eval("Number(document.querySelector('.heat canvas').dataset.cells)").as_u64().unwrap() <= 28
    );
    // The scatter has both coordinates of every trial that it draws, and says how alike the two orders are.
    page.wait("Number(document.querySelector('.scatter canvas')?.dataset.points) > 50");
    let words = page.text(".scatter .note");
    let found: f64 = words
        .split("Rank correlation ")
        .nth(1)
        .and_then(|rest| rest.split(':').next())
        .map(|text| text.replace('−', "-"))
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{words}"));
    assert!((-1.0..=1.0).contains(&found), "{words}");
    let same = "import('./landscape.js').then(({ rankCorrelation }) => \
         [[[1, 10], [2, 20], [3, 30]], [[1, 3], [2, 2], [3, 1]], [[1, 1], [1, 2], [2, 1], [2, 2]], [[1, 1], [2, 1]]].map(rankCorrelation))";
    assert_eq!(page.eval(same), serde_json::json!([1, -1, 0, null]));
    is_sound(&mut page, &dash.link);
}

#[test]
fn nothing_is_wider_than_a_phone_in_light_and_dark() {
    let Some(mut page) = chromium::open() else { return };
    let dash = Dash::start(finished(), &[]);
    page.size(375, 800);
    page.go(&dash.page(""));
    let pages = [
        ("", ".runs .row-link"),
        ("run/dip", ".plot .line"),
        ("run/parts", ".study.is-ready .parts"),
        ("run/walk", ".walk.is-ready .windows"),
        ("run/dip/trials", ".trials tbody tr"),
        ("run/dip/parameters", ".slice canvas"),
        ("run/dip/trial/0", "section[aria-label=Parameters] dt"),
        ("run/none", ".is-error"),
    ];
    let background = "getComputedStyle(document.documentElement).backgroundColor";
    let mut seen = Vec::new();
    for theme in ["light", "dark"] {
        page.wait("document.querySelector('#theme')");
        while page.eval("document.documentElement.dataset.wish") != theme {
            page.click("#theme");
        }
        for (hash, selector) in pages {
            page.go(&dash.page(hash));
            page.wait(&format!("document.querySelector({selector:?})"));
            let wide = page.eval("document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= 375, "{hash}: {wide}");
            // What was chosen is kept.
            assert_eq!(page.eval("document.documentElement.dataset.theme"), theme);
        }
        seen.push(page.eval(background));
    }
    assert_ne!(seen[0], seen[1]);
    // The run that is not there is the one thing that may be missing.
    page.problems.retain(|problem| !problem.contains("runs/none"));
    is_sound(&mut page, &dash.link);
}

#[test]
fn the_colours_of_the_system_are_followed_until_one_is_chosen() {
    let Some(mut page) = chromium::open() else { return };
    let dash = Dash::start(finished(), &[]);
    page.go(&dash.page(""));
    for wish in ["dark", "light"] {
        let feature = serde_json::json!({ "name": "prefers-color-scheme", "value": wish });
        page.call("Emulation.setEmulatedMedia", serde_json::json!({ "features": [feature] }));
        page.wait(&format!("document.documentElement.dataset.theme === '{wish}'"));
    }
}

/// A name that two scripts of a page share would stop all of it.
#[test]
fn pages_that_are_one_file_draw_themselves() {
    let Some(mut page) = chromium::open() else { return };
    let place = finished();
    place.ok("backtest zscore-dip --data lcg.csv --split 0.7 --report report.html");
    place.ok("study show runs/dip --html study.html");
    for (file, canvas) in [("report.html", "#price-canvas"), ("study.html", "#parallel-canvas")] {
        let address = format!("file://{}", place.path(file).display());
        page.call("Page.navigate", serde_json::json!({ "url": address }));
        // The page before is there until this one is.
        page.wait(&format!(
            "location.href === {address:?} && document.documentElement?.classList.contains('ready')"
        ));
        page.wait(&format!(
            "(() => {{ const node = document.querySelector('{canvas}'); return node.width > 300 && \
             node.getContext('2d').getImageData(0, 0, node.width, node.height).data.some((value) => value > 0); }})()"
        ));
        let before = page.eval("document.documentElement.dataset.theme");
        page.click("#theme");
        assert_ne!(page.eval("document.documentElement.dataset.theme"), before);
        assert_eq!(page.problems, Vec::<String>::new(), "{file}");
        assert!(
            page.requests.iter().all(|url| *url == address || url == "about:blank"),
            "{:?}",
            page.requests
        );
        page.requests.clear();
    }
}
