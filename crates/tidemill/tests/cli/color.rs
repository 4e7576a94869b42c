//! `tidemill color`: graphs in, verified colourings out.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tidemill_telemetry::Event;
use tidemill_telemetry::hypertune::Decision;

#[cfg(unix)]
use crate::process::{ended, signal, spawn, until};
use crate::support::Place;

/// A folder with a random graph of 60 vertices in it.
fn place() -> Place {
    let place = Place::new();
    place.ok("color generate random --vertices 60 --density 0.5 --seed 3 --out graph.col");
    place
}

fn colors(answer: &Value) -> Vec<u64> {
    answer["coloring"].as_array().unwrap().iter().map(|color| color.as_u64().unwrap()).collect()
}

/// The edges of a DIMACS file, read by nothing of ours.
fn edges(text: &str) -> Vec<(usize, usize)> {
    let edge = |line: &str| {
        let mut words = line.strip_prefix("e ")?.split(' ').map(|word| word.parse::<usize>().unwrap() - 1);
        Some((words.next()?, words.next()?))
    };
    text.lines().filter_map(edge).collect()
}

#[test]
fn a_colouring_is_proper_and_the_same_for_the_same_seed() {
    let place = place();
    let line = "color graph.col --iterations 200000 --seed 5";
    let answer = place.json(line);
    let colors = colors(&answer);
    assert_eq!(colors.len(), 60);
    assert!(edges(&place.read("graph.col")).iter().all(|(a, b)| colors[*a] != colors[*b]));
    let mut used = colors.clone();
    used.sort_unstable();
    used.dedup();
    assert_eq!(answer["k"].as_u64(), Some(used.len() as u64));
    assert_eq!(answer["verified"], true);
    assert!(answer["time_s"].as_f64().unwrap() > 0.0);
    assert!(answer["lower_bound"].as_u64() <= answer["k"].as_u64());
    let phases: Vec<&str> =
        answer["phases"].as_array().unwrap().iter().map(|it| it["phase"].as_str().unwrap()).collect();
    assert!(
        phases.contains(&"dsatur") && phases.contains(&"tabu") && phases.contains(&"validation"),
        "{phases:?}"
    );
    let again = place.json(line);
    assert_eq!((&again["coloring"], &again["iterations"]), (&answer["coloring"], &answer["iterations"]));
}

#[test]
fn what_is_written_can_be_verified_and_what_is_wrong_cannot() {
    let place = place();
    let answer = place.json("color graph.col --iterations 50000 --out best.sol");
    let said = place.ok("color verify graph.col best.sol");
    assert!(said.stdout.starts_with(&format!("proper: {} colours", answer["k"])), "{}", said.stdout);
    assert_eq!(place.json("color verify graph.col best.sol")["verified"], true);

    // All vertices the same colour.
    let header: Vec<String> = place.read("best.sol").lines().take(6).map(str::to_owned).collect();
    place.write("wrong.sol", header.join("\n") + &"\n0".repeat(60));
    let said = place.line("color verify graph.col wrong.sol");
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("edges join equal colours"), "{}", said.stderr);
    let said = place.line("color verify graph.col wrong.sol --json");
    assert_eq!((said.code, &said.json()["verified"]), (Some(1), &Value::Bool(false)));

    place.ok("color generate random --vertices 60 --density 0.5 --seed 4 --out other.col");
    let said = place.line("color verify other.col best.sol");
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("it belongs to another graph"), "{}", said.stderr);
    place.refused("color verify graph.col missing.sol", "cannot read missing.sol");
}

#[test]
fn a_run_that_was_stopped_goes_on_to_where_it_would_have_come() {
    let place = place();
    let whole = place.json("color graph.col --iterations 900000 --seed 2 --hypertune off");
    place.ok("color graph.col --iterations 300000 --seed 2 --hypertune off --out run");
    let best = place.json("color verify graph.col run/best.sol");
    assert_eq!(best["verified"], true);
    let answer =
        place.json("color graph.col --iterations 900000 --seed 2 --hypertune off --out run --resume");
    assert_eq!((&answer["coloring"], &answer["passes"]), (&whole["coloring"], &whole["passes"]));
    assert_eq!(place.json("color verify graph.col run/best.sol")["k"], answer["k"]);

    place.refused("color graph.col --out run", "the folder already holds a run");
    place.refused("color graph.col --out run --resume --seed 3", "the run was started with seed = 2, not 3");
    place.refused("color graph.col --out other --resume", "the folder holds no colouring run");
    place.refused("color graph.col --resume", "--resume needs the folder of a run");
}

#[test]
fn a_tuned_run_records_its_decisions_before_the_rounds_they_affect_and_repeats_them() {
    let place = place();
    place.write("tidemill.toml", crate::hypertune::EAGER);
    // Two colours are not enough, so that iterations end it.
    let line = "color graph.col --target 2 --seed 2 --out run";
    let said = place.ok(&format!("{line} --iterations 500000 --hypertune on -v"));
    assert!(said.stderr.contains("hypertune changed iterations "), "{}", said.stderr);
    let events = crate::hypertune::events(&place, "run");
    let is_apply = |event: &&Event| event.is("hypertune", "apply");
    let n_decided = events.iter().filter(is_apply).count();
    for (at, event) in events.iter().enumerate().filter(|(_, event)| event.is("hypertune", "apply")) {
        let decision = Decision::from_event(event).unwrap();
        assert!(decision.old != decision.new && !decision.cause.is_empty(), "{decision:?}");
        // Of the searches; a verifier may report between two rounds.
        let is_first = |event: &Event| {
            let round = event.parameters.get("round").and_then(Value::as_u64);
            event.phase == "tabu" && round.is_some_and(|round| round >= decision.batch)
        };
        assert!(events.iter().position(is_first).is_none_or(|round| at < round), "{decision:?}");
        assert_ne!(decision.knob, "population", "nothing reads it on a CPU");
    }
    assert!(n_decided > 0 && events.iter().any(|event| event.is("hypertune", "effect")), "{n_decided}");
    // Two that resume with the rules off repeat what was decided, and decide nothing.
    std::fs::create_dir(place.path("again")).unwrap();
    for file in ["best.sol", "color.json", "journal.jsonl", "state.json"] {
        std::fs::copy(place.path("run").join(file), place.path("again").join(file)).unwrap();
    }
    let resumed = |folder: &str, iterations: u64| {
        let line = "color graph.col --target 2 --seed 2 --hypertune off --resume --device cpu";
        place.json(&format!("{line} --iterations {iterations} --out {folder}"))
    };
    resumed("again", 600_000);
    let (once, twice) = (resumed("run", 900_000), resumed("again", 900_000));
    assert_eq!((&once["coloring"], &once["iterations"]), (&twice["coloring"], &twice["iterations"]));
    assert_eq!(crate::hypertune::events(&place, "run").iter().filter(is_apply).count(), n_decided);
}

#[test]
fn the_journal_of_a_run_is_one_that_monitor_understands() {
    let place = place();
    place.ok("color graph.col --iterations 300000 --out run");
    let journal = place.read("run/journal.jsonl");
    let events: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["phase"], &events[0]["parameters"]["score"]), (&"run".into(), &"k".into()));
    let tabu = events.iter().find(|event| event["phase"] == "tabu").unwrap();
    assert!(tabu["step"].as_str().unwrap().starts_with("k="), "{tabu}");
    for name in ["conflicts", "it_per_s", "iterations"] {
        assert!(tabu["values"][name].is_number(), "{name}: {tabu}");
    }
    for event in events
        .iter()
        .filter(|it| !["run", "improvement", "hypertune"].contains(&it["phase"].as_str().unwrap()))
    {
        assert!(event["parameters"]["k"].is_number(), "{event}");
    }
    for name in ["k", "tenure", "iterations", "pass", "round"] {
        assert!(tabu["parameters"][name].is_number(), "{name}: {tabu}");
    }
    let passes = events.iter().filter(|it| it["phase"] == "pass");
    let ended: Vec<&Value> = passes.map(|it| &it["parameters"]["pass"]).collect();
    assert!(!ended.is_empty() && ended.iter().enumerate().all(|(at, pass)| **pass == at + 1), "{ended:?}");
    let found: Vec<f64> = events
        .iter()
        .filter(|it| it["phase"] == "improvement")
        .map(|it| it["values"]["k"].as_f64().unwrap())
        .collect();
    assert!(!found.is_empty() && found.windows(2).all(|pair| pair[1] < pair[0]), "{found:?}");
    let lines = place.ok("monitor run/journal.jsonl --tail --phase tabu").stdout;
    assert!(lines.lines().next().unwrap().starts_with("[TABU][CPU] k="), "{lines}");
    assert!(lines.contains("conflicts=") && lines.contains(" it/s"), "{lines}");
    let rounds = place.ok("monitor run/journal.jsonl --tail --phase ensemble").stdout;
    assert!(rounds.lines().all(|line| line.starts_with("[ROUND] round_")), "{rounds}");
    assert!(rounds.contains("busy="), "{rounds}");
    place.refused("monitor run --tail --phase thermodynamic", "`tempering`");
}

#[test]
fn bad_input_is_refused_with_its_place_and_a_cure() {
    let place = place();
    place.write("loop.col", "p edge 3 2\ne 1 2\ne 3 3\n");
    let said = place.refused("color loop.col", "loop.col, line 3: vertex 3 is joined to itself");
    assert!(said.stderr.contains("hint: "), "{}", said.stderr);
    place.refused("color missing.col", "cannot read missing.col");
    place.refused(
        "color graph.col --phases simplex",
        "there is no phase `simplex`; the phases are reduction, ",
    );
    place.refused("color graph.col --time 0", "--time 0: expected a number of seconds above 0");
    place.refused("color graph.col --target 0", "target = 0: expected at least 1 colour");
    place.refused(
        "color generate flat --vertices 10 --colors 11",
        "k = 11: expected 1 to the number of vertices",
    );
    let said = place.refused("color missing.col", "cannot read missing.col: ");
    assert_eq!(said.stderr.matches("os error").count(), 1, "once is enough: {}", said.stderr);
    place.write("cut.col.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1]);
    place.refused("color cut.col.gz", "hint: the file is damaged or incomplete");
    place.refused("color graph.col --out none/best.sol", "--out: none/best.sol: there is no folder none");
    place.refused("color graph.col --out best.json", "--out best.json: expected a .sol file or a folder");
    std::fs::create_dir(place.path("folder.sol")).unwrap();
    place.refused("color graph.col --out folder.sol", "--out: folder.sol: it is a folder");
    assert!(!place.path("none").exists() && !place.path("best.json").exists());
    place.write("tidemill.toml", "[color]\nsped = 1\n");
    place.refused("color graph.col", "unknown field `sped`");
    place.write("tidemill.toml", "[color.knobs]\niterations = -1.0\n");
    place.refused("color graph.col", "knobs.iterations = -1: expected a number from 0.125 to 16");
}

#[test]
fn settings_are_defaults_and_flags_win() {
    let place = place();
    place.write("tidemill.toml", "[color]\nseed = 9\nphases = [\"rlf\"]\n");
    let answer = place.json("color graph.col");
    assert_eq!(answer["found_by"], "rlf");
    assert_eq!(answer["ended"], "done");
    let answer = place.json("color graph.col --phases greedy");
    assert_eq!(answer["found_by"], "greedy");
}

#[test]
fn passes_and_first_colourings_can_be_set_and_aliases_name_phases() {
    let place = place();
    let settings = "[iterative]\npasses = 2\nmin_delta = 3\npatience = 9\nwarm_start = false\n\n\
                    [initial_coloring]\nstrategy = \"rlf\"\n\n[color.gpu]\nquantum = false\n";
    place.write("tidemill.toml", settings);
    let line = "color graph.col --seed 4 --phases tabu,thermodynamic,active_inference --out run";
    let answer = place.json(line);
    assert_eq!((&answer["ended"], &answer["passes"]), (&"passes".into(), &2.into()));
    let phases: Vec<&str> =
        answer["phases"].as_array().unwrap().iter().map(|it| it["phase"].as_str().unwrap()).collect();
    assert!(phases.contains(&"tempering") && phases.contains(&"inference"), "{phases:?}");
    assert!(phases.contains(&"rlf") && !phases.contains(&"dsatur"), "{phases:?}");
    let stored: Value = serde_json::from_str(&place.read("run/color.json")).unwrap();
    let text = stored.to_string();
    assert!(text.contains("\"warm_start\":false") && text.contains("\"min_delta\":3"), "{text}");
    assert!(text.contains("\"on_cpu\":[\"annealing\"]") && text.contains("\"patience\":9"), "{text}");
    assert_eq!(place.json("color graph.col --phases tabu --passes 1")["passes"], 1, "flags win");
    place.write("tidemill.toml", settings.replace("warm_start = false", "warm_start = true"));
    place.refused(&format!("{line} --resume"), "the run was started with warm_start = false, not true");
    place.write("tidemill.toml", "[initial_coloring]\nstrategy = [\"rlf\", \"tabu\"]\n");
    place.refused(
        "color graph.col",
        "initial_coloring.strategy = rlf,tabu: expected one or several of greedy,",
    );
    place.write("tidemill.toml", "[color.gpu]\nedge = false\n");
    let said =
        place.refused("color graph.col", "color.gpu = edge: expected phases that can run on a device: ");
    assert!(said.stderr.contains("settings tidemill.toml"), "{}", said.stderr);
    place.write("tidemill.toml", "[iterative]\npaces = 2\n");
    place.refused("color graph.col", "unknown field `paces`");
}

#[test]
fn one_colour_is_one_colour() {
    let place = Place::new();
    place.write("one.col", "p edge 1 0\n");
    let said = place.ok("color one.col --out best.sol");
    assert!(said.stdout.starts_with("one: 1 colour, verified"), "{}", said.stdout);
    assert!(said.stderr.contains("colouring one: 1 vertex, 0 edges"), "{}", said.stderr);
    assert_eq!(
        place.ok("color verify one.col best.sol").stdout,
        "proper: 1 colour, 1 vertex, 0 edges checked\n"
    );
}

#[cfg(unix)]
#[test]
fn whoever_closes_standard_error_does_not_end_a_run() {
    let place = place();
    let mut child = place
        .command(&["color", "graph.col", "--iterations", "20000", "--out", "best.sol"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(place.json("color verify graph.col best.sol")["verified"], true);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_with_the_best_so_far() {
    let place = place();
    // Far below what is possible, so that only the interrupt ends it.
    let child = spawn(&place, "color graph.col --target 2 --time 86400 --out best.sol --json");
    until("a colouring", || place.path("best.sol").exists());
    signal(&child, "INT");
    let said = ended(child);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(said.json()["ended"], "stopped");
    assert_eq!(place.json("color verify graph.col best.sol")["k"], said.json()["k"]);
}

/// The folder of graphs that some checkouts have next to them.
fn shared_graph(name: &str) -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/graphs")).join(name);
    if path.is_file() {
        return Some(path);
    }
    tidemill_skip::skipped("there are no shared graphs next to this checkout");
    None
}

#[test]
fn a_public_graph_comes_out_with_the_colours_of_the_literature() {
    let Some(path) = shared_graph("DSJC125.5.col.gz") else { return };
    let place = Place::new();
    let said = place.run(&["color", path.to_str().unwrap(), "--target", "17", "--time", "120", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(said.json()["k"], 17);
}
