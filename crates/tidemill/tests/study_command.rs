//! `tidemill study`: studies made by the library, looked at with the program.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidemill_search::{
    Batch, Choice, Domain, Evaluated, ExportFormat, FunctionEvaluator, Param, SamplerKind, SamplerSettings,
    Scores, Space, Study, StudyFolder, StudyHeader, export,
};

/// What a run said.
struct CommandOutput {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn tidemill(dir: &Path, args: &[&str]) -> CommandOutput {
    let output = Command::new(env!("CARGO_BIN_EXE_tidemill")).args(args).current_dir(dir).output().unwrap();
    CommandOutput {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn ok(dir: &Path, args: &[&str]) -> CommandOutput {
    let said = tidemill(dir, args);
    assert_eq!(said.code, Some(0), "{args:?}: {}", said.stderr);
    said
}

fn refused(dir: &Path, args: &[&str]) -> String {
    let said = tidemill(dir, args);
    assert_eq!(said.code, Some(2), "{args:?}: {}", said.stdout);
    assert_eq!(said.stdout, "");
    said.stderr
}

fn space() -> Space {
    let float = |low, high, log| Domain::Float { low, high, step: None, log };
    let options = vec![Choice::Text("calm".into()), Choice::Text("wild".into())];
    let mut tail = Param::new("tail", float(0.0, 1.0, false), 0.5);
    tail.when = Some(tidemill_search::Condition::new(|row| row[2] == 1.0));
    Space {
        params: vec![
            Param::new("x", float(-1.0, 1.0, false), 0.0),
            Param::new("rate", float(1e-4, 1.0, true), 0.1),
            Param::new("on", Domain::Bool, 0.0),
            tail,
            Param::new("mood", Domain::Choice { options }, 0.0),
            Param {
                fixed: Some(7.0),
                ..Param::new("n", Domain::Int { low: 1, high: 9, step: 1, log: false }, 1.0)
            },
        ],
    }
}

fn header(trials: u64) -> StudyHeader {
    let config = toml::toml! {
        fixed = { n = 7 }
        [about]
        data = "thin air"
        file = "toy.toml"
        [strategy]
        name = "toy"
        [objective]
        maximize = "peak"
        [sweep]
        trials = 0
        sampler = "sobol"
        batch = 64
        lag = 1
    };
    let mut header =
        StudyHeader { version: "0.1.0".into(), semantics: 2, seed: 5, data_hash: "abc".into(), config };
    header.config["sweep"]
        .as_table_mut()
        .unwrap()
        .insert("trials".into(), i64::try_from(trials).unwrap().into());
    header
}

/// A study whose objective is highest at `x` = 0.5 and hardly depends on anything else. One trial in about ten is invalid.
fn run_study(dir: &Path, header: &StudyHeader, trials: u64, n_objectives: usize) -> StudyFolder {
    let space = space();
    let folder = StudyFolder::open_or_create(dir, header).unwrap().folder;
    let mut sampler = SamplerKind::Sobol.build(&space, &SamplerSettings::new(header.seed)).unwrap();
    let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
        let points = &batch.points;
        let rows = 0..points.len();
        let peak = |row: usize| {
            let (x, rate) = (points.value(row, 0), points.value(row, 1));
            if rate > 0.4 { f64::NAN } else { 1.0 - (x - 0.5) * (x - 0.5) + 0.001 * rate }
        };
        let columns = vec![rows.clone().map(peak).collect(), rows.map(|row| -points.value(row, 0)).collect()];
        let scores = Scores::from_columns(points.len(), columns.into_iter().take(n_objectives).collect());
        let double = points.column(0).iter().map(|x| 2.0 * x).collect();
        Ok(Evaluated { scores, metrics: vec![double, vec![f64::NAN; points.len()]] })
    });
    Study::new(&space, &mut *sampler)
        .trials(trials)
        .objectives(n_objectives)
        .metrics(&["double", "never"])
        .folder(&folder)
        .rows_per_part(700)
        .run(&mut evaluator)
        .unwrap();
    folder
}

/// A folder with the complete study `toy` of 2,000 trials.
fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let study = dir.path().join("toy");
    drop(run_study(&study, &header(2000), 2000, 1));
    (dir, study)
}

/// The trials of a study by its export, best first.
fn ranked(study: &Path) -> Vec<Value> {
    let mut bytes = Vec::new();
    export(study, ExportFormat::Json, &mut bytes).unwrap();
    let mut trials: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
    trials.retain(|trial| !trial["objective"].is_null());
    let value = |trial: &Value| trial["objective"].as_f64().unwrap();
    trials.sort_by(|a, b| value(b).total_cmp(&value(a)));
    trials
}

fn json_of(said: &CommandOutput) -> Value {
    serde_json::from_str(&said.stdout).unwrap()
}

#[test]
fn show_tells_what_was_run_and_what_came_of_it() {
    let (dir, study) = place();
    let text = ok(dir.path(), &["study", "show", "toy", "--top", "3"]).stdout;
    let best = ranked(&study);
    for line in [
        "study      toy",
        "strategy   toy (toy.toml)",
        "data       thin air",
        "objective  peak",
        "sampler    sobol, seed 5, batch 64, lag 1",
        "fixed      n=7",
        "trials     2,000, 1,801 valid",
        "state      complete",
        "Best 3 trials",
        "Convergence of peak",
        "Importance of parameters",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let header = text.lines().find(|line| line.trim_start().starts_with("trial ")).unwrap();
    let names: Vec<&str> = header.split_whitespace().collect();
    assert_eq!(names, ["trial", "peak", "double", "never", "x", "rate", "on", "tail", "mood"]);
    let row = text.lines().find(|line| line.trim_start().starts_with(&format!("{} ", best[0]["trial"])));
    let cells: Vec<&str> = row.unwrap().split_whitespace().collect();
    assert_eq!(cells[3], "–");
    assert_eq!(cells[8], best[0]["params"]["mood"].as_str().unwrap());
    // The parameter that decides has the longest bar, and the fixed one has none.
    let bars: Vec<&str> = text.lines().filter(|line| line.contains(" %  ")).collect();
    assert!(bars[0].starts_with("x "), "{text}");
    assert_eq!(bars.len(), 5, "{text}");
}

#[test]
fn show_as_json_agrees_with_the_trials() {
    let (dir, study) = place();
    let shown = json_of(&ok(dir.path(), &["study", "show", "toy", "--top", "4", "--json"]));
    assert_eq!(shown["trials"], 2000);
    assert_eq!(shown["asked"], 2000);
    assert_eq!(shown["state"], "complete");
    assert_eq!(shown["objectives"], json!(["peak"]));
    assert_eq!(shown["fixed"], json!({ "n": "7" }));
    let best = ranked(&study);
    assert_eq!(shown["best"].as_array().unwrap().len(), 4);
    for (shown, expected) in shown["best"].as_array().unwrap().iter().zip(&best) {
        assert_eq!(shown["trial"], expected["trial"]);
        assert_eq!(shown["objective"], expected["objective"]);
        assert_eq!(shown["parameters"], expected["params"]);
        assert_eq!(shown["metrics"], expected["metrics"]);
    }
    let steps = shown["convergence"][0]["improvements"].as_array().unwrap();
    assert_eq!(steps.last().unwrap()["best"], best[0]["objective"]);
    assert!(steps.windows(2).all(|pair| pair[0]["best"].as_f64() < pair[1]["best"].as_f64()));
    let shares = shown["importance"].as_array().unwrap();
    assert_eq!(shares[0]["parameter"], "x");
    assert!(shares[0]["share"].as_f64().unwrap() > 0.8, "{shares:?}");
    let total: f64 = shares.iter().map(|share| share["share"].as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-9);
}

#[test]
fn best_prints_one_trial_in_full_and_more_as_a_table() {
    let (dir, study) = place();
    let best = ranked(&study);
    let said = ok(dir.path(), &["study", "best", "toy"]);
    let value = |name: &str| {
        let line = said.stdout.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.and_then(|line| line.split_whitespace().nth(1)).unwrap().to_owned()
    };
    assert_eq!(value("trial").replace(',', ""), best[0]["trial"].to_string());
    assert_eq!(value("x").parse::<f64>().unwrap(), best[0]["params"]["x"].as_f64().unwrap());
    assert_eq!(value("n"), "7");
    assert_eq!(said.stderr, "", "a study without the text of its strategy cannot be evaluated again");
    assert_eq!(ok(dir.path(), &["study", "best", "toy", "--top", "5"]).stdout.lines().count(), 7);
    let shown = json_of(&ok(dir.path(), &["study", "best", "toy", "--top", "2", "--json"]));
    assert_eq!(shown["best"][1]["trial"], best[1]["trial"]);
    assert_eq!(shown["front"], Value::Null);
}

#[test]
fn several_objectives_show_the_front() {
    let dir = tempfile::tempdir().unwrap();
    drop(run_study(&dir.path().join("two"), &header(500), 500, 2));
    let shown = json_of(&ok(dir.path(), &["study", "best", "two", "--top", "1000", "--json"]));
    let front = shown["best"].as_array().unwrap();
    assert_eq!(shown["front"].as_u64(), Some(front.len() as u64));
    assert!(front.len() > 3);
    assert_eq!(shown["objectives"], json!(["objective", "objective_2"]));
    for pair in front.windows(2) {
        assert!(pair[0]["objective"].as_f64() > pair[1]["objective"].as_f64());
        assert!(pair[0]["objective_2"].as_f64() < pair[1]["objective_2"].as_f64());
    }
    let text = ok(dir.path(), &["study", "show", "two", "--top", "3"]).stdout;
    assert!(text.contains(&format!("Pareto front (3 of {} trials)", front.len())), "{text}");
    assert!(text.contains("Convergence of objective_2"), "{text}");
}

#[test]
fn export_writes_the_bytes_of_the_library() {
    let (dir, study) = place();
    for format in ExportFormat::ALL {
        let mut expected = Vec::new();
        export(&study, format, &mut expected).unwrap();
        let file = format!("out.{}", format.name());
        let line = ["study", "export", "toy", "--format", format.name()];
        let said = ok(dir.path(), &[&line[..], &["--out", &file]].concat());
        assert!(said.stderr.contains("exported 2,000 trials to out."), "{}", said.stderr);
        assert_eq!(std::fs::read(dir.path().join(&file)).unwrap(), expected);
        let output =
            Command::new(env!("CARGO_BIN_EXE_tidemill")).args(line).current_dir(dir.path()).output().unwrap();
        assert!(output.stdout == expected, "{format:?}");
    }
    // Nothing unfinished stays behind.
    let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(|name| name.to_string_lossy().ends_with(".tmp")).count(), 0);
    let error = refused(dir.path(), &["study", "export", "toy", "--format", "xlsx"]);
    assert!(error.contains("there is no format `xlsx`; choose one of csv, parquet, json"), "{error}");
    let error = refused(dir.path(), &["study", "export", "toy", "--format", "csv", "--out", "no/where.csv"]);
    assert!(error.contains("cannot write no/where.csv"), "{error}");
}

#[test]
fn list_finds_studies_and_says_how_far_they_are() {
    let (dir, _) = place();
    drop(run_study(&dir.path().join("deep/er/half"), &header(2000), 300, 1));
    let running = run_study(&dir.path().join("deep/running"), &header(900), 100, 1);
    std::fs::create_dir_all(dir.path().join(".hidden")).unwrap();
    std::fs::write(dir.path().join(".hidden/study.toml"), "").unwrap();
    std::fs::create_dir_all(dir.path().join("broken")).unwrap();
    std::fs::write(dir.path().join("broken/study.toml"), "format = 1\nversion = ").unwrap();
    let said = ok(dir.path(), &["study", "list", "--json"]);
    let studies = json_of(&said);
    let studies = studies.as_array().unwrap();
    let names: Vec<&str> = studies.iter().map(|study| study["study"].as_str().unwrap()).collect();
    assert_eq!(names, ["broken", "deep/er/half", "deep/running", "toy"]);
    let states: Vec<&str> = studies.iter().map(|study| study["state"].as_str().unwrap()).collect();
    // The half study was complete as far as it was asked to run, which the header says otherwise; its log is gone.
    assert_eq!(states, ["damaged", "complete", "running", "complete"]);
    assert_eq!(studies[2]["process"], std::process::id());
    assert_eq!(studies[2]["trials"], 100);
    assert_eq!(studies[2]["asked"], 900);
    assert!(said.stderr.contains("note: broken cannot be read: cannot understand"), "{}", said.stderr);
    let text = ok(dir.path(), &["study", "list", "deep"]).stdout;
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["study", "strategy", "sampler", "state", "trials", "of", "best", "objective"]);
    assert_eq!(lines[3][..6], ["deep/running", "toy", "sobol", "running", "100", "900"]);
    let shown = ok(dir.path(), &["study", "show", "deep/running"]).stdout;
    assert!(shown.contains(&format!("state      running (process {})", std::process::id())), "{shown}");
    assert!(shown.contains("trials     100 of 900, "), "{shown}");
    drop(running);
    let none = tempfile::tempdir().unwrap();
    let said = ok(none.path(), &["study", "list"]);
    assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("", "no studies beneath .\n"));
}

#[test]
fn a_study_that_was_stopped_is_called_so() {
    let dir = tempfile::tempdir().unwrap();
    let space = space();
    let folder = StudyFolder::open_or_create(&dir.path().join("s"), &header(100)).unwrap().folder;
    let mut sampler = SamplerKind::Random.build(&space, &SamplerSettings::new(1)).unwrap();
    let mut n_batches = 0;
    let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
        n_batches += 1;
        if n_batches > 3 {
            return Err("enough".into());
        }
        let x = batch.points.column(0).to_vec();
        Ok(Evaluated { scores: Scores::from_columns(x.len(), vec![x]), metrics: vec![] })
    });
    let study = Study::new(&space, &mut *sampler).trials(100).batch(10).folder(&folder);
    assert!(study.run(&mut evaluator).is_err());
    drop(folder);
    let shown = json_of(&ok(dir.path(), &["study", "show", "s", "--json"]));
    assert_eq!((&shown["state"], &shown["trials"]), (&json!("stopped"), &json!(30)));
}

#[test]
fn what_is_no_study_or_has_nothing_to_show_is_said() {
    let (dir, study) = place();
    std::fs::create_dir(dir.path().join("plain")).unwrap();
    let error = refused(dir.path(), &["study", "show", "plain"]);
    assert!(error.contains("plain is not a study: it has no study.toml"), "{error}");
    assert!(error.contains("`tidemill study list plain`"), "{error}");
    let error = refused(dir.path(), &["study", "best", "nowhere"]);
    assert_eq!(error, "error: there is no folder nowhere\n");
    drop(StudyFolder::open_or_create(&dir.path().join("empty"), &header(10)).unwrap());
    let text = ok(dir.path(), &["study", "show", "empty"]).stdout;
    assert!(text.contains("trials     0 of 10, 0 valid") && text.ends_with("No trial is finished yet.\n"));
    let error = refused(dir.path(), &["study", "best", "empty"]);
    assert_eq!(error, "error: empty has no finished trial yet\n");
    let error = refused(dir.path(), &["study", "show", "empty", "--html", "e.html"]);
    assert!(error.contains("nothing to draw"), "{error}");
    let part = study.join("trials/part-000001.parquet");
    std::fs::write(&part, "PAR1 no more").unwrap();
    let error = refused(dir.path(), &["study", "show", "toy"]);
    assert!(error.contains("cannot read") && error.contains("part-000001.parquet"), "{error}");
    std::fs::remove_file(&part).unwrap();
    let error = refused(dir.path(), &["study", "best", "toy"]);
    assert!(error.contains("this part is missing, and later ones are there"), "{error}");
}

#[test]
fn reading_leaves_a_study_as_it_was() {
    let (dir, study) = place();
    let listing = || {
        let mut files: Vec<(PathBuf, u64, std::time::SystemTime)> = Vec::new();
        let mut open = vec![study.clone()];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
                let metadata = entry.metadata().unwrap();
                files.push((entry.path(), metadata.len(), metadata.modified().unwrap()));
                if metadata.is_dir() {
                    open.push(entry.path());
                }
            }
        }
        files.sort();
        files
    };
    let before = listing();
    ok(dir.path(), &["study", "list"]);
    ok(dir.path(), &["study", "show", "toy", "--html", "toy.html"]);
    ok(dir.path(), &["study", "best", "toy"]);
    ok(dir.path(), &["study", "export", "toy", "--format", "csv"]);
    assert_eq!(listing(), before);
}

#[test]
fn the_page_holds_the_study_and_asks_the_network_for_nothing() {
    let (dir, study) = place();
    let said = ok(dir.path(), &["study", "show", "toy", "--html", "toy.html"]);
    assert_eq!(said.stderr, "page: toy.html\n");
    let page = std::fs::read_to_string(dir.path().join("toy.html")).unwrap();
    assert!(page.contains("default-src 'none'") && !page.contains("http://") && !page.contains("https://"));
    assert!(!page.contains("%%"));
    let (_, data) = page.split_once(r#"<script type="application/json" id="data">"#).unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!((&data["title"], &data["n_trials"]), (&json!("toy"), &json!(2000)));
    let trials = data["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2000);
    assert_eq!(data["n_best"], 300);
    for (place, expected) in ranked(&study).iter().take(300).enumerate() {
        assert_eq!(trials[place], expected["trial"]);
    }
    let axes: Vec<(&str, &str)> = data["axes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|axis| (axis["name"].as_str().unwrap(), axis["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(
        axes,
        [("x", "number"), ("rate", "number"), ("on", "names"), ("tail", "number"), ("mood", "names")]
    );
    assert_eq!(data["axes"][1]["is_log"], true);
    assert_eq!(data["axes"][0]["is_log"], false);
    assert_eq!(data["values"].as_array().unwrap().len(), 5);
    // A conditional parameter is null where it was not active.
    let pairs = data["values"][2].as_array().unwrap().iter().zip(data["values"][3].as_array().unwrap());
    assert!(pairs.clone().all(|(on, tail)| tail.is_null() == (on == 0.0)));
}
