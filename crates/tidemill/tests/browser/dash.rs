//! `tidemill dash` as a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use crate::support::Place;

/// A dashboard that is being served.
pub struct Dash {
    pub process: Child,
    /// Where, as it was printed.
    pub link: String,
}

impl Dash {
    pub fn start(place: &Place, args: &[&str]) -> Self {
        let all = [&["dash", "runs", "--address", "127.0.0.1:0"], args].concat();
        let mut process = place.command(&all).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut link = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut link).unwrap();
        let link = link.trim().to_owned();
        assert!(link.starts_with("http://127.0.0.1:"), "{link}");
        Self { process, link }
    }

    /// The address of a page.
    pub fn page(&self, hash: &str) -> String {
        format!("{}#/{hash}", self.link)
    }
}

impl Drop for Dash {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A folder with finished runs, made once for all tests: the sweep `runs/dip` on data split in two and its answer in `dip.json`, the sweep
/// `runs/parts` with a holdout besides and its answer in `parts.json`, and the walk-forward `runs/walk`.
pub fn finished() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Place::new();
        place.ok("data generate --kind lcg --bars 5000 --out lcg.csv");
        let sweep = "sweep --data lcg.csv --trials 400 --batch 32 --split 0.7 --seed 3 --device cpu --json";
        let said = place.ok(&format!("{sweep} --out runs/dip"));
        place.write("dip.json", said.stdout);
        place.ok("data generate --kind walk --bars 12000 --out walk.csv");
        let sweep = "sweep --data walk.csv --trials 200 --split 0.7 --holdout 2021-01-01 --device cpu --json";
        let said = place.ok(&format!("{sweep} --out runs/parts"));
        place.write("parts.json", said.stdout);
        place.ok(
            "walkforward --data walk.csv --train 200d --test 90d --trials 60 --device cpu --out runs/walk",
        );
        place
    })
}
