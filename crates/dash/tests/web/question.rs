//! Requests and their answers.

use serde_json::json;

use crate::client::get;
use crate::specimen::Place;

#[test]
fn runs_are_listed_with_their_standing() {
    let place = Place::new();
    let reply = get(place.address(), "/api/runs");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let runs = reply.json()["runs"].clone();
    assert_eq!(runs.as_array().unwrap().len(), 2);
    assert_eq!(runs[0]["name"], "first");
    assert_eq!(runs[1]["title"], "second run over nothing");
    assert_eq!(
        (&runs[0]["state"], &runs[0]["done"], &runs[0]["total"]),
        (&json!("running"), &json!(10.0), &json!(100.0))
    );
    assert_eq!((&runs[0]["best"], &runs[0]["workload"]), (&json!(1.0), &json!("sweep")));
}

#[test]
fn a_run_is_told_in_sections() {
    let place = Place::new();
    let run = get(place.address(), "/api/runs/second%20run").json();
    assert_eq!(run["head"]["done"], 10.0);
    assert_eq!(run["phases"][0]["name"], "kernel");
    assert_eq!(run["convergence"][0][2], 1.0);
    assert_eq!(run["lanes"]["spans"][0][4], "batch_1");
    assert_eq!((&run["busy"][0][1], &run["fill"][0][1]), (&json!(0.75), &json!(0.25)));
    assert_eq!(run["head"]["fill"], 0.25);
    assert_eq!(run["recent"][0]["step"], "batch_1");
}

#[test]
fn questions_reach_the_source_as_they_were_meant() {
    let place = Place::new();
    let trials = |query: &str| get(place.address(), &format!("/api/runs/first/trials{query}"));
    assert_eq!(trials("").json()["rows"][0], json!([null, true, "", 0, 50, "No"]));
    let all = trials("?sort=sharpe&order=asc&filter=trades%20%3E%3D%2030&offset=100&limit=20&fold=groups");
    assert_eq!(all.json()["rows"][0], json!(["sharpe", false, "trades >= 30", 100, 20, "Groups"]));
    assert_eq!(trials("?fold=17").json()["rows"][0][5], "Of(17)");
    let summary = get(place.address(), "/api/runs/first/summary?points=60").json();
    assert_eq!((&summary["n_trials"], &summary["verdict"]["grade"]), (&json!(60), &json!("luck")));
    let unseen = get(place.address(), "/api/runs/first/unseen?trials=3,17").json();
    assert_eq!(unseen["rows"], json!([[3, [0.5]], [17, [0.5]]]));
    let bars = get(place.address(), "/api/runs/first/bars?symbol=BTC&from=-5&to=7&points=33").json();
    assert_eq!(
        (&bars["symbol"], &bars["first_ms"], &bars["joined"]),
        (&json!("BTC"), &json!(-5), &json!(33))
    );
}

#[test]
fn bad_questions_are_told_what_is_wrong() {
    let place = Place::new();
    let cases = [
        ("/api/runs/first/trials?filter=trades+%3E", 400, "filter, character 9"),
        ("/api/runs/first/trials?filter=sharp+%3E+1", 400, "there is no column `sharp`"),
        ("/api/runs/first/trials?limit=501", 400, "`limit` is at most 500"),
        ("/api/runs/first/trials?limit=-1", 400, "limit"),
        ("/api/runs/first/trials?limit=1e99", 400, "limit"),
        ("/api/runs/first/trials?order=up", 400, "`asc` or `desc`"),
        ("/api/runs/first/trials?fold=all", 400, "`fold` is `groups` or the number of a trial"),
        ("/api/runs/first/unseen?trials=1,x", 400, "a list of numbers"),
        ("/api/runs/first/unseen", 400, "trials"),
        ("/api/runs/first/summary?points=4001", 400, "`points` is at most 4000"),
        ("/api/runs/first/walk?points=60", 422, "no walk of 60 points"),
        ("/api/runs/first/bars?points=99999999999999999999", 400, "points"),
        ("/api/runs/first/trials/x", 404, "no such trial"),
        ("/api/runs/first/trials/-1", 404, "no such trial"),
        ("/api/runs/first/trials/18446744073709551616", 404, "no such trial"),
        ("/api/runs/first/trials/7", 404, "no trial 7"),
        ("/api/runs/first/parameters", 422, "no parameters"),
        ("/api/runs/first/trials/7/backtest", 500, "a bug"),
        ("/api/runs/none", 404, "there is no run `none`"),
        ("/api/nothing", 404, "no such API path"),
        ("/nothing.html", 404, "no such page"),
        ("/api/runs/%ff%fe", 404, "UTF-8"),
    ];
    for (target, status, part) in cases {
        let reply = get(place.address(), target);
        assert_eq!(reply.status, status, "{target}: {}", reply.body);
        let error = reply.json()["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.contains(part), "{target}: {error}");
    }
    assert_eq!(get(place.address(), "/api/runs/first/parameters").json()["hint"], "a hint");
    // And it still answers.
    assert_eq!(get(place.address(), "/api/about").json()["version"], "0.0.0");
}

#[test]
fn pages_are_served_from_the_program() {
    let place = Place::new();
    let page = get(place.address(), "/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    // What the page names, and what that imports.
    let mut open: Vec<String> = names(&page.body, "src=\"").chain(names(&page.body, "href=\"")).collect();
    let mut seen = Vec::new();
    while let Some(name) = open.pop().filter(|_| seen.len() < 100) {
        if name.starts_with('#') || seen.contains(&name) {
            continue;
        }
        let reply = get(place.address(), &format!("/{name}"));
        assert_eq!(reply.status, 200, "{name}");
        open.extend(names(&reply.body, "from \"./").filter(|_| name.ends_with(".js")));
        seen.push(name);
    }
    assert!(seen.len() > 12 && seen.iter().any(|name| name == "api.js"), "{seen:?}");
}

fn names(text: &str, before: &str) -> impl Iterator<Item = String> {
    text.split(before)
        .skip(1)
        .map(|part| part.split('"').next().unwrap().to_owned())
        .collect::<Vec<_>>()
        .into_iter()
}
