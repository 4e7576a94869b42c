//! The Python package around the extension that cargo has just built, tested by Python: `python/tests` by pytest, the public layer by mypy.
//!
//! Both run in a virtual environment under the target folder, made once from `python/tests/requirements.txt`. Where there is no Python or
//! nothing can be installed they skip; with TIDEMILL_REQUIRE_PYTHON=1 that is a failure.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tidemill_skip::skipped_unless_required;

/// The least Python that the extension loads into.
const LEAST_PYTHON: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

/// Where the package was staged, and the Python to run it with.
struct Staged {
    package: PathBuf,
    python: PathBuf,
}

impl Staged {
    /// The package and its environment, made once; an error says why there is none.
    fn get() -> Result<&'static Self, &'static str> {
        static STAGED: OnceLock<Result<Staged, String>> = OnceLock::new();
        let made = STAGED.get_or_init(|| Ok(Self { python: environment()?, package: stage() }));
        made.as_ref().map_err(String::as_str)
    }

    /// Runs a module of Python from the root of the repository.
    fn run(&self, arguments: &[&str]) {
        let output = Command::new(&self.python)
            .arg("-m")
            .args(arguments)
            .current_dir(root())
            .env("PYTHONPATH", &self.package)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env_remove("TIDEMILL_SKIPS")
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "python -m {}\n{}", arguments.join(" "), said.join("\n"));
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The extension that cargo built with this test.
fn library() -> PathBuf {
    let built = std::env::current_exe().unwrap();
    let built = built.parent().unwrap();
    let name = format!("{}_tidemill{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let library = [built.join(&name), built.with_file_name(&name)].into_iter().find(|path| path.exists());
    library.unwrap_or_else(|| panic!("{name} is not beside {}", built.display()))
}

/// Puts the sources of the package and the extension of this build side by side.
fn stage() -> PathBuf {
    let staged = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let package = staged.join("tidemill");
    let _ = std::fs::remove_dir_all(&package);
    std::fs::create_dir_all(&package).unwrap();
    for file in std::fs::read_dir(root().join("python/tidemill")).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    let name = if cfg!(windows) { "_tidemill.pyd" } else { "_tidemill.abi3.so" };
    std::fs::copy(library(), package.join(name)).unwrap();
    staged
}

/// The Python of the environment with all that the tests need.
fn environment() -> Result<PathBuf, String> {
    let wanted = std::fs::read_to_string(root().join("python/tests/requirements.txt")).unwrap();
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-env");
    let python =
        if cfg!(windows) { environment.join("Scripts/python.exe") } else { environment.join("bin/python") };
    let mark = environment.join("installed");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    let is_new_enough = |name: &&str| quietly(Command::new(name).args(["-c", LEAST_PYTHON])).is_ok();
    let names = ["python3", "python3.13", "python3.12", "python3.11", "python"];
    let system = names.into_iter().find(is_new_enough).ok_or("there is no Python 3.11 or later")?;
    quietly(Command::new(system).args(["-m", "venv", "--clear"]).arg(&environment))?;
    let file = root().join("python/tests/requirements.txt");
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    quietly(Command::new(&python).args(install).arg(file))?;
    std::fs::write(mark, wanted).unwrap();
    Ok(python)
}

/// Runs a command; its last line is the error.
fn quietly(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
    if output.status.success() { Ok(()) } else { Err(last.trim().to_owned()) }
}

fn with_package(test: impl FnOnce(&Staged)) {
    match Staged::get() {
        Ok(staged) => test(staged),
        Err(reason) => skipped_unless_required("TIDEMILL_REQUIRE_PYTHON", reason),
    }
}

#[test]
fn the_package_passes_its_tests() {
    with_package(|staged| staged.run(&["pytest", "-q", "-p", "no:cacheprovider", "python/tests"]));
}

#[test]
fn the_public_layer_is_typed() {
    with_package(|staged| {
        let cache = staged.package.join("mypy");
        let cache = format!("--cache-dir={}", cache.display());
        staged.run(&["mypy", "--strict", &cache, "-p", "tidemill"]);
        staged.run(&["mypy", "--strict", &cache, "python/tests"]);
    });
}

/// What the extension says about itself is what type checkers read; TIDEMILL_BLESS=1 renews the file.
#[test]
fn the_stub_is_that_of_the_extension() {
    let module = pyo3_introspection::introspect_cdylib(library(), "_tidemill").unwrap();
    let files = pyo3_introspection::module_stub_files(&module);
    let stub = files.values().next().unwrap();
    assert_eq!(files.len(), 1, "{:?}", files.keys());
    let path = root().join("python/tidemill/_tidemill.pyi");
    if std::env::var_os("TIDEMILL_BLESS").is_some() {
        std::fs::write(&path, stub).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == *stub, "the stub is out of date: TIDEMILL_BLESS=1 renews it");
}
