//! How far a load is, for whoever shows it. Loading writes counters; nothing here draws or waits.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::find::Found;

/// What a load has done so far. A clone looks at the same load; several loads that share one follow each other.
#[derive(Clone, Debug, Default)]
pub struct LoadProgress(Arc<Mutex<Arc<Counters>>>);

/// It says nothing about what is loaded, so that options are equal whoever watches.
impl PartialEq for LoadProgress {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LoadProgress {}

/// What a load is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LoadStage {
    /// Files are looked for.
    #[default]
    Finding,
    /// Files are read.
    Reading,
    /// The rows of this many symbols are ordered, cleaned and resampled.
    Cleaning(usize),
    /// The columns of this file are read and joined to the bars.
    Joining(PathBuf),
}

/// A look at a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadState {
    /// What it is doing.
    pub stage: LoadStage,
    /// Files of this stage.
    pub files: usize,
    /// How many of them are read.
    pub files_done: usize,
    /// Their bytes as they are stored; `None` if one of them does not say, as standard input.
    pub bytes: Option<u64>,
    /// How many of these are read.
    pub bytes_done: u64,
}

/// The counters of one stage.
#[derive(Debug, Default)]
struct Counters {
    stage: LoadStage,
    files: usize,
    files_done: AtomicUsize,
    bytes: Option<u64>,
    bytes_done: AtomicU64,
}

impl LoadProgress {
    /// How far the load is now.
    pub fn state(&self) -> LoadState {
        let counters = self.counters();
        LoadState {
            stage: counters.stage.clone(),
            files: counters.files,
            files_done: counters.files_done.load(Ordering::Relaxed),
            bytes: counters.bytes,
            bytes_done: counters.bytes_done.load(Ordering::Relaxed),
        }
    }

    /// These files are read from now on.
    pub(crate) fn read(&self, files: &[Found]) {
        let bytes = files.iter().map(|found| found.size).sum();
        self.begin(Counters { stage: LoadStage::Reading, files: files.len(), bytes, ..Counters::default() });
    }

    /// The symbols are cleaned from now on.
    pub(crate) fn clean(&self, n_symbols: usize) {
        self.begin(Counters { stage: LoadStage::Cleaning(n_symbols), ..Counters::default() });
    }

    /// A file is joined from now on.
    pub(crate) fn join(&self, path: &Path) -> FileProgress {
        let bytes = size_of(path);
        let stage = LoadStage::Joining(path.to_path_buf());
        self.begin(Counters { stage, files: 1, bytes, ..Counters::default() });
        self.file(bytes)
    }

    /// The counter of one of the files.
    pub(crate) fn file(&self, size: Option<u64>) -> FileProgress {
        FileProgress { load: self.counters(), size, done: AtomicU64::new(0) }
    }

    fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn begin(&self, counters: Counters) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(counters);
    }
}

/// The size of what can be read twice; what a pipe will bring is not known.
pub(crate) fn size_of(path: &Path) -> Option<u64> {
    path.metadata().ok().filter(|known| known.is_file()).map(|known| known.len())
}

/// How far one file is read. When it is dropped, all of the file counts as done.
pub(crate) struct FileProgress {
    load: Arc<Counters>,
    size: Option<u64>,
    done: AtomicU64,
}

impl FileProgress {
    /// Of something that nobody counts, such as what was counted while it was unpacked.
    pub(crate) fn unseen() -> Self {
        Self { load: Arc::default(), size: None, done: AtomicU64::new(0) }
    }

    /// So many bytes more are read.
    pub(crate) fn advance(&self, n_bytes: u64) {
        let before = self.done.fetch_add(n_bytes, Ordering::Relaxed);
        let room = self.size.map_or(n_bytes, |size| size.saturating_sub(before));
        self.load.bytes_done.fetch_add(n_bytes.min(room), Ordering::Relaxed);
    }

    /// So many of all rows more are read.
    pub(crate) fn advance_rows(&self, n_rows: u64, of: u64) {
        let size = u128::from(self.size.unwrap_or(0));
        self.advance((size * u128::from(n_rows) / u128::from(of.max(1))) as u64);
    }
}

impl Drop for FileProgress {
    fn drop(&mut self) {
        let done = *self.done.get_mut();
        self.advance(self.size.map_or(0, |size| size.saturating_sub(done)));
        self.load.files_done.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(size: Option<u64>) -> Found {
        Found { path: "a.csv".into(), is_given: true, symbol: None, size }
    }

    #[test]
    fn a_file_counts_once_and_whole_however_much_of_it_was_told() {
        let progress = LoadProgress::default();
        progress.read(&[found(Some(10)), found(Some(30))]);
        let [first, second] = [10, 30].map(|size| progress.file(Some(size)));
        first.advance(7);
        assert_eq!(progress.state().bytes_done, 7);
        first.advance(7);
        assert_eq!(progress.state().bytes_done, 10, "not beyond the size");
        second.advance_rows(1, 3);
        assert_eq!((progress.state().bytes_done, progress.state().files_done), (20, 0));
        drop((first, second));
        let state = progress.state();
        assert_eq!((state.bytes, state.bytes_done, state.files, state.files_done), (Some(40), 40, 2, 2));
        progress.clean(3);
        assert_eq!(
            progress.state(),
            LoadState { stage: LoadStage::Cleaning(3), bytes: None, ..LoadState::default() }
        );
    }

    #[test]
    fn what_comes_through_a_pipe_has_no_end_in_sight() {
        let progress = LoadProgress::default();
        progress.read(&[found(Some(10)), found(None)]);
        let piped = progress.file(None);
        piped.advance(1 << 20);
        drop(piped);
        let state = progress.state();
        assert_eq!((state.bytes, state.bytes_done, state.files_done), (None, 1 << 20, 1));
    }
}
