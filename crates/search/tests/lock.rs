//! One writer at a time, also where a study is gone on with: whoever has it open holds its lock until the last trace of it is dropped.

use std::path::Path;

use tidemill_search::folder::{FolderError, Lock, OpenedFolder};
use tidemill_search::{StudyFolder, StudyHeader};

fn header(seed: u64) -> StudyHeader {
    StudyHeader {
        version: "0.1.0".into(),
        semantics: 2,
        seed,
        data_hash: "none".into(),
        config: toml::Table::new(),
    }
}

fn open(dir: &Path) -> OpenedFolder {
    StudyFolder::open_or_create(dir, &header(1)).unwrap()
}

/// Every way to the lock is closed, and the holder is named.
#[track_caller]
fn assert_held(dir: &Path) {
    let attempts = [
        ("open again", StudyFolder::open_or_create(dir, &header(1)).map(drop)),
        ("lock what is looked at", StudyFolder::open(dir).unwrap().locked().map(drop)),
        ("take it", Lock::take(dir).map(drop)),
    ];
    for (what, attempt) in attempts {
        match attempt {
            Err(FolderError::Locked { holder, .. }) => assert_eq!(holder, Some(std::process::id()), "{what}"),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[track_caller]
fn assert_free(dir: &Path) {
    drop(Lock::take(dir).unwrap());
}

#[test]
fn a_resumed_study_is_locked_like_a_new_one() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("study");
    for is_resumed in [false, true, true] {
        let opened = open(&dir);
        assert_eq!(opened.is_resumed, is_resumed);
        assert_held(&dir);
        drop(opened);
        assert_free(&dir);
    }
}

#[test]
fn a_resumed_study_stays_locked_while_a_part_of_it_is_in_use() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("study");
    drop(open(&dir));
    let opened = open(&dir);
    let copy = opened.folder.clone();
    // What a run does to its folder first: it is the same lock, not a second one.
    let running = opened.folder.locked().unwrap();
    drop(opened);
    assert_held(&dir);
    drop(copy);
    assert_held(&dir);
    drop(running);
    assert_free(&dir);
}

#[test]
fn what_is_refused_leaves_nothing_locked() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("study");
    drop(open(&dir));
    let other = StudyFolder::open_or_create(&dir, &header(2)).unwrap_err();
    assert!(matches!(other, FolderError::Differs { .. }), "{other}");
    assert_free(&dir);
    // Looking is free while somebody writes.
    let opened = open(&dir);
    assert_eq!(StudyFolder::open(&dir).unwrap().n_trials().unwrap(), 0);
    assert_held(&dir);
    drop(opened);
}
