//! The routes of the server and their handlers.
//!
//! Reading a study or evaluating a trial takes a while, so both run on threads that may block, a few at a time.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Semaphore;

use super::answer::{Refusal, fresh};
use super::asset;
use super::filter::Filter;
use super::folder::Folder;
use super::guard::{self, Guard};
use super::live::{LiveJournals, RunSections};
use super::model::{BarQuery, Fold, TrialQuery};
use super::source::RunSource;
use super::view::{RunLine, Sections, changed};

/// Time between two polls of a live run for a page, and of one that is over.
const LIVE_EVERY: Duration = Duration::from_millis(250);
const OVER_EVERY: Duration = Duration::from_secs(2);

/// Studies and trials that are worked on at a time.
const AT_A_TIME: usize = 3;

/// Most trials of one answer, and the default.
const MAX_LIMIT: usize = 500;
const LIMIT: usize = 50;

/// Most trials that are skipped: all before have to be sorted.
const MAX_OFFSET: usize = 1_000_000;

/// Most bars of one answer, and the default.
const MAX_BARS: usize = 4000;
const BARS: usize = 1000;

/// The state that all handlers share.
pub(super) struct App {
    pub(super) source: Box<dyn RunSource>,
    pub(super) folder: Folder,
    pub(super) live: LiveJournals,
    pub(super) version: String,
    work: Semaphore,
}

impl App {
    pub(super) fn new(source: Box<dyn RunSource>, folder: Folder, version: String) -> Self {
        Self { source, folder, live: LiveJournals::default(), version, work: Semaphore::new(AT_A_TIME) }
    }
}

type AppState = State<Arc<App>>;
type ResponseResult = Result<Response, Refusal>;
type QueryResult<T> = Result<Query<T>, QueryRejection>;
type PathResult<T> = Result<Path<T>, PathRejection>;

/// All routes.
pub(super) fn router(app: Arc<App>, guard: Arc<Guard>) -> Router {
    let guarded = axum::middleware::from_fn_with_state(guard, guard::check);
    Router::new()
        .route("/api/about", get(about))
        .route("/api/runs", get(runs))
        .route("/api/runs/{run}", get(run))
        .route("/api/runs/{run}/events", get(events))
        .route("/api/runs/{run}/summary", get(summary))
        .route("/api/runs/{run}/walk", get(walk))
        .route("/api/runs/{run}/trials", get(trials))
        .route("/api/runs/{run}/unseen", get(unseen))
        .route("/api/runs/{run}/parameters", get(parameters))
        .route("/api/runs/{run}/bars", get(bars))
        .route("/api/runs/{run}/trials/{trial}", get(trial))
        .route("/api/runs/{run}/trials/{trial}/backtest", get(backtest))
        .fallback(other)
        .layer(guarded)
        .with_state(app)
}

async fn other(uri: Uri, headers: HeaderMap) -> Response {
    if uri.path().starts_with("/api/") {
        return Refusal::missing("there is no such API path").hint("docs/dash.md lists them").into_response();
    }
    asset::answer(uri.path(), &headers)
}

async fn about(State(app): AppState) -> Response {
    fresh(json!({ "version": app.version, "folder": app.folder.shown() }))
}

async fn runs(State(app): AppState) -> ResponseResult {
    quick(move || {
        let source = &*app.source;
        let lines: Vec<RunLine> = app
            .folder
            .runs(source)?
            .into_iter()
            .map(|(name, dir)| match source.glimpse(&dir) {
                Ok(snapshot) => RunLine::new(&name, &snapshot, source.pulse(&dir), source.has_trials(&dir)),
                Err(error) => RunLine::damaged(&name, error.to_string()),
            })
            .collect();
        Ok(fresh(json!({ "folder": app.folder.shown(), "runs": lines })))
    })
    .await
}

async fn run(State(app): AppState, name: PathResult<String>) -> ResponseResult {
    let dir = locate(&app, name)?;
    let look = quick(move || Ok(app.live.look(&dir, &*app.source)?)).await?;
    let body = changed(&look.sections, &Sections::new()).unwrap_or_else(|| "{}".to_owned());
    Ok(([(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")], body)
        .into_response())
}

/// The sections of a run, then those that change, as they change.
async fn events(State(app): AppState, name: PathResult<String>) -> ResponseResult {
    let dir = locate(&app, name)?;
    // An error that exists from the start is an HTTP answer, not an event of the stream.
    let first = look(&app, &dir).await?;
    let sent =
        stream::unfold((app, dir, Sections::new(), Some(first)), |(app, dir, before, first)| async move {
            let mut now = match first {
                Some(first) => first,
                None => look(&app, &dir).await.ok()?,
            };
            loop {
                if let Some(delta) = changed(&now.sections, &before) {
                    let event = Ok::<_, Infallible>(Event::default().data(delta));
                    return Some((event, (app, dir, now.sections.to_vec(), None)));
                }
                tokio::time::sleep(if now.is_over { OVER_EVERY } else { LIVE_EVERY }).await;
                // A folder that is gone ends the stream.
                now = look(&app, &dir).await.ok()?;
            }
        });
    Ok(Sse::new(sent).keep_alive(KeepAlive::default()).into_response())
}

async fn look(app: &Arc<App>, dir: &std::path::Path) -> Result<RunSections, Refusal> {
    let (app, dir) = (app.clone(), dir.to_owned());
    quick(move || Ok(app.live.look(&dir, &*app.source)?)).await
}

#[derive(Deserialize)]
struct SummaryParams {
    points: Option<usize>,
}

async fn summary(
    State(app): AppState,
    name: PathResult<String>,
    asked: QueryResult<SummaryParams>,
) -> ResponseResult {
    let dir = locate(&app, name)?;
    let points = asked_points(asked)?;
    work(&app, move |source| Ok(fresh(source.summary(&dir, points)?))).await
}

async fn walk(
    State(app): AppState,
    name: PathResult<String>,
    asked: QueryResult<SummaryParams>,
) -> ResponseResult {
    let dir = locate(&app, name)?;
    let points = asked_points(asked)?;
    work(&app, move |source| Ok(fresh(source.walk(&dir, points)?))).await
}

/// How many points a curve may have.
fn asked_points(asked: QueryResult<SummaryParams>) -> Result<usize, Refusal> {
    let Query(asked) = asked.map_err(|error| Refusal::bad(error.body_text()))?;
    Ok(at_most("points", asked.points.unwrap_or(BARS), MAX_BARS)?.max(2))
}

#[derive(Deserialize)]
struct TrialsParams {
    sort: Option<String>,
    order: Option<String>,
    filter: Option<String>,
    fold: Option<String>,
    offset: Option<usize>,
    limit: Option<usize>,
}

async fn trials(
    State(app): AppState,
    name: PathResult<String>,
    asked: QueryResult<TrialsParams>,
) -> ResponseResult {
    let dir = locate(&app, name)?;
    let Query(asked) = asked.map_err(|error| Refusal::bad(error.body_text()))?;
    let is_descending = match asked.order.as_deref() {
        None | Some("desc") => true,
        Some("asc") => false,
        Some(_) => return Err(Refusal::bad("`order` is `asc` or `desc`")),
    };
    let fold = match asked.fold.as_deref() {
        None | Some("") => Fold::No,
        Some("groups") => Fold::Groups,
        Some(trial) => {
            Fold::Of(trial.parse().map_err(|_| Refusal::bad("`fold` is `groups` or the number of a trial"))?)
        }
    };
    let filter = Filter::parse(asked.filter.as_deref().unwrap_or_default());
    let query = TrialQuery {
        sort: asked.sort.filter(|sort| !sort.is_empty()),
        is_descending,
        filter: filter.map_err(|error| Refusal::bad(error.to_string()))?,
        fold,
        offset: at_most("offset", asked.offset.unwrap_or(0), MAX_OFFSET)?,
        limit: at_most("limit", asked.limit.unwrap_or(LIMIT), MAX_LIMIT)?,
    };
    work(&app, move |source| Ok(fresh(source.trials(&dir, &query)?))).await
}

#[derive(Deserialize)]
struct UnseenParams {
    trials: String,
}

async fn unseen(
    State(app): AppState,
    name: PathResult<String>,
    asked: QueryResult<UnseenParams>,
) -> ResponseResult {
    let dir = locate(&app, name)?;
    let Query(asked) = asked.map_err(|error| Refusal::bad(error.body_text()))?;
    let numbers: Result<Vec<u64>, _> = asked.trials.split(',').map(str::parse).collect();
    let trials = numbers.map_err(|_| Refusal::bad("`trials` is a list of numbers, such as 3,17"))?;
    at_most("trials", trials.len(), MAX_LIMIT)?;
    work(&app, move |source| Ok(fresh(source.unseen(&dir, &trials)?))).await
}

async fn parameters(State(app): AppState, name: PathResult<String>) -> ResponseResult {
    let dir = locate(&app, name)?;
    work(&app, move |source| Ok(fresh(source.parameters(&dir)?))).await
}

async fn trial(State(app): AppState, name: PathResult<(String, u64)>) -> ResponseResult {
    let (dir, trial) = locate_trial(&app, name)?;
    work(&app, move |source| Ok(fresh(source.trial(&dir, trial)?))).await
}

#[derive(Deserialize)]
struct BacktestParams {
    symbol: Option<String>,
}

async fn backtest(
    State(app): AppState,
    name: PathResult<(String, u64)>,
    asked: QueryResult<BacktestParams>,
) -> ResponseResult {
    let (dir, trial) = locate_trial(&app, name)?;
    let Query(asked) = asked.map_err(|error| Refusal::bad(error.body_text()))?;
    let symbol = asked.symbol.filter(|symbol| !symbol.is_empty());
    work(&app, move |source| Ok(fresh(source.backtest(&dir, trial, symbol.as_deref())?))).await
}

#[derive(Deserialize)]
struct BarsParams {
    symbol: Option<String>,
    from: Option<i64>,
    to: Option<i64>,
    points: Option<usize>,
}

async fn bars(
    State(app): AppState,
    name: PathResult<String>,
    asked: QueryResult<BarsParams>,
) -> ResponseResult {
    let dir = locate(&app, name)?;
    let Query(asked) = asked.map_err(|error| Refusal::bad(error.body_text()))?;
    let query = BarQuery {
        symbol: asked.symbol.filter(|symbol| !symbol.is_empty()),
        from_ms: asked.from,
        to_ms: asked.to,
        points: at_most("points", asked.points.unwrap_or(BARS), MAX_BARS)?.max(1),
    };
    work(&app, move |source| Ok(fresh(source.bars(&dir, &query)?))).await
}

fn at_most(name: &str, value: usize, most: usize) -> Result<usize, Refusal> {
    if value > most { Err(Refusal::bad(format!("`{name}` is at most {most}"))) } else { Ok(value) }
}

fn locate(app: &App, name: PathResult<String>) -> Result<PathBuf, Refusal> {
    let Path(name) = name.map_err(|error| Refusal::missing(error.body_text()))?;
    app.folder.locate(&name)
}

fn locate_trial(app: &App, name: PathResult<(String, u64)>) -> Result<(PathBuf, u64), Refusal> {
    let Path((name, trial)) = name.map_err(|_| Refusal::missing("there is no such trial"))?;
    Ok((app.folder.locate(&name)?, trial))
}

/// Runs work that may take seconds, a few at a time.
async fn work(
    app: &Arc<App>,
    task: impl FnOnce(&dyn RunSource) -> ResponseResult + Send + 'static,
) -> ResponseResult {
    let closed = |_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the dashboard is ending");
    let _permit = app.work.acquire().await.map_err(closed)?;
    let app = app.clone();
    quick(move || task(&*app.source)).await
}

/// Runs work that reads files, on a thread that may block.
async fn quick<T: Send + 'static>(
    task: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(task).await.unwrap_or_else(|_| {
        Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the dashboard failed to answer; this is a bug")
            .hint("the terminal of `tidemill dash` has the details"))
    })
}
