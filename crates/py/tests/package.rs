//! The Python package around the extension that cargo has just built, tested by Python: `python/tests` by pytest, the public layer by mypy.
//!
//! Both run in a virtual environment under the target folder, made once from `python/tests/requirements.txt`. Where there is no Python or
//! nothing can be installed they skip; with TIDEMILL_REQUIRE_PYTHON=1 that is a failure.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

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

    /// Runs Python from the root of the repository; the result is what it printed.
    fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.python);
        command.args(arguments).current_dir(root()).env("PYTHONPATH", &self.package);
        succeeds(command.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("TIDEMILL_SKIPS"))
    }
}

/// Runs a command that has to succeed; the result is what it printed.
fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let [printed, said] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{command:?}\n{printed}\n{said}");
    printed
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
    let python = program(&environment, "python");
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
    with_package(|staged| {
        staged.run(&["-m", "pytest", "-q", "-p", "no:cacheprovider", "python/tests"]);
    });
}

#[test]
fn the_public_layer_is_typed() {
    with_package(|staged| {
        let cache = staged.package.join("mypy");
        let cache = format!("--cache-dir={}", cache.display());
        staged.run(&["-m", "mypy", "--strict", &cache, "-p", "tidemill"]);
        staged.run(&["-m", "mypy", "--strict", &cache, "python/tests"]);
    });
}

/// The program of an environment.
fn program(environment: &Path, name: &str) -> PathBuf {
    environment.join(if cfg!(windows) { "Scripts" } else { "bin" }).join(name)
}

/// A wheel around the extension of this build, in empty environments: alone, and with each extra that the project declares.
///
/// Two environments are made and tried at a time: while one waits for packages, the other computes.
#[test]
fn the_wheel_runs_in_an_empty_environment_with_and_without_each_extra() {
    with_package(|staged| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("extras");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let folder_name = folder.to_str().unwrap();
        let made = staged.run(&["python/tests/assemble_wheel.py", "pyproject.toml", folder_name]);
        let (wheel, extras) = made.split_once('\n').unwrap();
        assert!(extras.lines().count() >= 6, "{extras}");
        let waiting = Mutex::new(std::iter::once("none").chain(extras.lines()));
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(extra) = next() {
                        try_extra(staged, wheel, extra, &folder.join(extra));
                    }
                });
            }
        });
    });
}

/// Installs the wheel with an extra and tries it, in an environment that is removed afterwards.
fn try_extra(staged: &Staged, wheel: &str, extra: &str, environment: &Path) {
    let made = ["-m", "venv", "--without-pip"];
    succeeds(Command::new(&staged.python).args(made).arg(environment));
    let wanted = if extra == "none" { wheel.to_owned() } else { format!("{wheel}[{extra}]") };
    let mut pip = Command::new(&staged.python);
    pip.args(["-m", "pip", "--disable-pip-version-check", "--python"]).arg(environment);
    // Most of what is installed is never imported here, and compiling it takes longer than all the rest of pip.
    pip.args(["install", "--quiet", "--no-compile", &wanted]);
    if extra == "none" {
        succeeds(pip.arg("--no-index"));
    } else if let Err(reason) = quietly(&mut pip) {
        skipped_unless_required("TIDEMILL_REQUIRE_PYTHON", format!("tidemill[{extra}]: {reason}"));
        return;
    }
    let mut tried = Command::new(program(environment, "python"));
    tried.arg("-I").arg(root().join("python/tests/try_extra.py"));
    tried.arg(extra).arg(root().join("docs/python.md")).current_dir(environment);
    for variable in ["TIDEMILL_NVRTC", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"] {
        tried.env_remove(variable);
    }
    // Kernels that another test compiled would prove nothing.
    succeeds(tried.env("TIDEMILL_CACHE", environment.join("cache")));
    std::fs::remove_dir_all(environment).unwrap();
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
