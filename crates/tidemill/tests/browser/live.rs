//! A live run, watched from another process.

use std::process::Stdio;

use crate::chromium::{self, until};
use crate::dash::Dash;
use crate::support::Place;

#[test]
fn a_live_run_advances_without_reload_and_outlives_its_viewer() {
    let Some(mut page) = chromium::open() else { return };
    let place = Place::new();
    place.ok("data generate --kind lcg --bars 5000 --out lcg.csv");
    std::fs::create_dir_all(place.path("runs")).unwrap();
    let mut dash = Dash::start(&place, &[]);
    page.go(&dash.page(""));
    page.wait("document.body.textContent.includes('No runs here yet')");
    page.eval("window.isTheSame = true");

    // It runs until it is stopped, however fast the machine is.
    let line = "sweep --data lcg.csv --trials 1000000000 --batch 32 --device cpu --threads 1 --out runs/live";
    let args: Vec<&str> = line.split(' ').collect();
    let mut sweep = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    page.wait("document.querySelector('.runs .row-link')?.textContent === 'live'");
    page.click_until(".runs .row-link", "document.querySelector('.amount b')");
    assert_eq!(page.text("#run-head .pill"), "running");
    let done = "Number(document.querySelector('.amount b').textContent.replaceAll(',', ''))";
    for _ in 0..3 {
        let before = page.eval(done).as_f64().unwrap();
        page.wait(&format!("{done} > {before}"));
    }
    page.wait("document.querySelector('section[aria-label=Convergence] .line')");
    // Trials of a live run, and one of them in full.
    page.eval("location.hash = '#/run/live/trials'");
    page.wait("document.querySelector('.trials tbody tr')");
    page.wait("/new – show/.test(document.querySelector('.tools').textContent)");
    page.eval("location.hash = '#/run/live/trial/0'");
    page.wait("document.querySelector('section[aria-label=Parameters] dt')");
    assert_eq!(page.eval("window.isTheSame"), true, "the page was never loaded again");
    assert_eq!(page.problems, Vec::<String>::new());

    // The viewer is killed; the run continues.
    dash.process.kill().unwrap();
    dash.process.wait().unwrap();
    let written = || place.read("runs/live/journal.jsonl").len();
    let before = written();
    until("the run continues", || (written() > before + 2000).then_some(()));
    assert!(sweep.try_wait().unwrap().is_none());
    page.wait("document.querySelector('#link-state').textContent.includes('connection lost')");

    // The run is killed; what it wrote is there, and another viewer says so.
    sweep.kill().unwrap();
    sweep.wait().unwrap();
    let dash = Dash::start(&place, &[]);
    page.go(&dash.page("run/live"));
    page.wait("document.querySelector('#run-head .pill')?.textContent === 'killed'");
    assert!(page.text(".alerts").contains("process is gone"));
}

#[test]
fn a_token_in_the_address_is_taken_once() {
    let Some(mut page) = chromium::open() else { return };
    let place = Place::new();
    std::fs::create_dir_all(place.path("runs")).unwrap();
    let dash = Dash::start(&place, &["--token", "a-token-of-a-test"]);
    assert!(dash.link.ends_with("/?token=a-token-of-a-test"), "{}", dash.link);
    page.go(&dash.link);
    page.wait("document.body.textContent.includes('No runs here yet')");
    assert_eq!(page.eval("location.search"), "");
    assert_eq!(page.eval("document.cookie"), "", "scripts cannot read it");
    assert_eq!(page.problems, Vec::<String>::new());
}
