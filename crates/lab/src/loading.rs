//! How far data is loaded, in words.

use tidemill_market::{LoadStage, LoadState};

use crate::number;

/// What a load is doing; empty where the bytes of a single file say it all.
pub fn doing(state: &LoadState) -> String {
    match &state.stage {
        LoadStage::Finding => "looking for files".into(),
        LoadStage::Reading if state.files < 2 => String::new(),
        LoadStage::Reading => {
            let [done, all] = [state.files_done, state.files].map(|files| number::count(files as u64));
            format!("{done} of {all} files")
        }
        LoadStage::Cleaning(symbols) => format!("cleaning {}", number::counted(*symbols as u64, "symbol")),
        LoadStage::Joining(path) => {
            format!("joining {}", path.file_name().unwrap_or(path.as_os_str()).to_string_lossy())
        }
    }
}
