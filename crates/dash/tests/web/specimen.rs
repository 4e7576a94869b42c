//! Folders of runs, and a source that knows them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use tidemill_dash::terminal::ProcessState;
use tidemill_dash::web::{
    Backtest, BarQuery, BarWindow, Column, ColumnKind, Options, Parameters, RunSource, Server, SourceError,
    StudySummary, Token, Trial, TrialPage, TrialQuery, UnseenTrials, VerdictSummary, WalkSummary, serve,
};
use tidemill_telemetry::{Event, Follower, Journal, Snapshot};

/// Echoes the query, so that a test sees what arrived.
pub struct Echo;

impl RunSource for Echo {
    fn runs(&self, root: &Path) -> Result<Vec<PathBuf>, SourceError> {
        let entries =
            std::fs::read_dir(root).map_err(|error| SourceError::Failed { message: error.to_string() })?;
        let mut dirs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        dirs.retain(|dir| dir.join("journal.jsonl").is_file());
        dirs.sort();
        Ok(dirs)
    }

    fn glimpse(&self, dir: &Path) -> Result<Snapshot, SourceError> {
        let mut follower = Follower::open(dir);
        follower.poll(|_| ()).map_err(|error| SourceError::Failed { message: error.to_string() })?;
        Ok(follower.into_snapshot())
    }

    fn pulse(&self, _: &Path) -> ProcessState {
        ProcessState::Unknown
    }

    fn has_trials(&self, _: &Path) -> bool {
        true
    }

    fn summary(&self, _: &Path, points: usize) -> Result<StudySummary, SourceError> {
        let verdict = VerdictSummary {
            grade: Some("luck".into()),
            words: "probably luck".into(),
            sentence: "survives none".into(),
            checks: json!([]),
        };
        Ok(StudySummary {
            strategy: None,
            objective: "sharpe".into(),
            n_trials: points as u64,
            n_valid: 0,
            verdict,
            best: None,
        })
    }

    fn walk(&self, _: &Path, points: usize) -> Result<WalkSummary, SourceError> {
        Err(SourceError::Unavailable { message: format!("no walk of {points} points"), hint: None })
    }

    fn trials(&self, _: &Path, query: &TrialQuery) -> Result<TrialPage, SourceError> {
        let bound = query.filter.bind(&["trades"]);
        bound.map_err(|error| SourceError::Invalid { message: error.to_string() })?;
        let fold = format!("{:?}", query.fold);
        let row =
            json!([query.sort, query.is_descending, query.filter.text(), query.offset, query.limit, fold]);
        let column = Column {
            name: "trades".into(),
            label: "# Trades".into(),
            kind: ColumnKind::Metric,
            is_percent: false,
            is_shown: true,
        };
        Ok(TrialPage {
            columns: vec![column],
            sort: "trades".into(),
            n_trials: 1,
            n_matched: 1,
            n_folded: None,
            n_rows: 1,
            offset: query.offset,
            counts: vec![1],
            rows: vec![row.as_array().cloned().unwrap_or_default()],
        })
    }

    fn unseen(&self, _: &Path, trials: &[u64]) -> Result<UnseenTrials, SourceError> {
        let rows = trials.iter().map(|trial| (*trial, vec![json!(0.5)])).collect();
        Ok(UnseenTrials { columns: Vec::new(), rows })
    }

    fn parameters(&self, _: &Path) -> Result<Parameters, SourceError> {
        Err(SourceError::Unavailable { message: "no parameters".into(), hint: Some("a hint".into()) })
    }

    fn trial(&self, _: &Path, trial: u64) -> Result<Trial, SourceError> {
        Err(SourceError::Missing { what: format!("no trial {trial}") })
    }

    fn backtest(&self, _: &Path, _: u64, _: Option<&str>) -> Result<Backtest, SourceError> {
        panic!("a source that breaks must not break the server");
    }

    fn bars(&self, _: &Path, query: &BarQuery) -> Result<BarWindow, SourceError> {
        Ok(BarWindow {
            symbol: query.symbol.clone().unwrap_or_default(),
            timeframe_ms: 60_000,
            first_ms: query.from_ms.unwrap_or(0),
            last_ms: query.to_ms.unwrap_or(0),
            joined: query.points,
            ms: vec![],
            open: vec![],
            high: vec![],
            low: vec![],
            close: vec![],
        })
    }
}

/// A folder of runs that is being served.
pub struct Place {
    pub dir: TempDir,
    pub server: Server,
}

impl Place {
    /// Two runs, `first` and `second run`, on any port of this machine.
    pub fn new() -> Self {
        Self::with_token(None)
    }

    pub fn with_token(token: Option<&str>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["first", "second run"] {
            let journal = journal(&dir.path().join("runs").join(name));
            journal.record(start(name, 100.0));
            journal.record(step(1));
            journal.close().unwrap();
        }
        let server = serve(options(&dir.path().join("runs"), token), Echo).unwrap();
        Self { dir, server }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub fn run(&self, name: &str) -> PathBuf {
        self.dir.path().join("runs").join(name)
    }
}

pub fn options(folder: &Path, token: Option<&str>) -> Options {
    Options {
        folder: folder.to_owned(),
        is_run: false,
        address: "127.0.0.1:0".parse().unwrap(),
        token: token.map(|token| Token::new(token).unwrap()),
        version: "0.0.0".into(),
    }
}

pub fn journal(dir: &Path) -> Journal {
    std::fs::create_dir_all(dir).unwrap();
    Journal::create(&dir.join("journal.jsonl")).unwrap()
}

pub fn start(run: &str, total: f64) -> Event {
    Event::new(run, "run", "start")
        .parameter("workload", "sweep")
        .parameter("title", format!("{run} over nothing"))
        .value("total", total)
}

pub fn step(batch: u32) -> Event {
    Event::new("first", "kernel", format!("batch_{batch}"))
        .lasting_ms(2.0)
        .value("trials", f64::from(batch) * 10.0)
        .value("best", f64::from(batch))
        .value("busy", 0.75)
        .value("fill", 0.25)
}
