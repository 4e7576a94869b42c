//! Kernels on the host: the text that NVRTC compiles for a GPU, compiled by the C++ compiler and run on fibers.
//!
//! It exists so that kernels can be executed, and compared bit for bit with their Rust twins, on machines without a
//! GPU. [`Library::compile`] puts `emulate.h` before the text; what that header does is written there. Compiled
//! libraries are kept on disk, named by a hash of everything that went into them.

use std::ffi::{CStr, OsString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{env, fs, io};

use sha2::{Digest, Sha256};

const HEADER: &str = include_str!("emulate.h");

/// Follows the header where accesses are checked.
const CHECK: &str = include_str!("emulate/check.h");

/// No contraction, because the bits have to be those of the Rust twin; no warnings, because NVRTC gives them.
const OPTIONS: [&str; 8] = [
    "-std=c++17",
    "-O2",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
    "-w",
    "-fPIC",
];

/// Has the compiler put a call before every access to memory. A library is linked without it: `check.h` has what is called.
const INSTRUMENT: &str = "-fsanitize=thread";

/// Why a kernel cannot be emulated.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// There is no C++ compiler.
    #[error(
        "cannot start the C++ compiler `{compiler}`: {source}; install g++ or clang++, or name one in the variable CXX"
    )]
    NoCompiler {
        /// The command that was tried.
        compiler: String,
        /// The system's error.
        source: io::Error,
    },
    /// The compiler does not accept the text.
    #[error("{name} does not compile on the host:\n{log}")]
    Compile {
        /// Name of the text.
        name: String,
        /// The compiler's log.
        log: String,
    },
    /// A file could not be written or moved.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The compiled library could not be loaded.
    #[error("cannot load the compiled {name}: {source}")]
    Load {
        /// Name of the text.
        name: String,
        /// The loader's error.
        source: libloading::Error,
    },
    /// The arguments are not those of the kernel.
    #[error("kernel {kernel} takes {expected} bytes of arguments, not {given}")]
    Arguments {
        /// Name of the kernel.
        kernel: String,
        /// Bytes that the kernel takes.
        expected: usize,
        /// Bytes that were given.
        given: usize,
    },
    /// A launch that cannot be made or cannot end.
    #[error("kernel {kernel} under emulation: {message}")]
    Launch {
        /// Name of the kernel.
        kernel: String,
        /// What went wrong, and in which block.
        message: String,
    },
}

/// A kernel text compiled for the host.
#[derive(Clone, Debug)]
pub struct Library {
    loaded: Arc<libloading::Library>,
}

/// Runs a grid; null, or what went wrong, valid until the thread's next launch.
type LaunchFn = unsafe extern "C" fn(*const c_void, *const u32, *const u32, u32) -> *const c_char;
type ArgsSizeFn = unsafe extern "C" fn() -> u32;

/// One kernel of a [`Library`].
#[derive(Clone, Debug)]
pub struct EmulatedKernel {
    name: String,
    args_size: usize,
    launch: LaunchFn,
    /// The code lives as long as this does.
    _loaded: Arc<libloading::Library>,
}

impl Library {
    /// Compiles a text that begins with `tidemill.cuh`, or takes what an earlier call has left on disk.
    pub fn compile(name: &str, text: &str) -> Result<Self, EmulateError> {
        Self::compile_with(name, text, &[])
    }

    /// The same with all accesses to shared memory checked: a launch ends with an error where threads of a block touch the same byte, one of
    /// them to write it, without a barrier between. Slow.
    pub(crate) fn compile_checked(name: &str, text: &str) -> Result<Self, EmulateError> {
        Self::compile_with(name, text, &["-DEMULATE_CHECKS", "-g1", INSTRUMENT])
    }

    fn compile_with(name: &str, text: &str, options: &[&str]) -> Result<Self, EmulateError> {
        let compiler = Compiler::find()?;
        let check = if options.contains(&INSTRUMENT) { CHECK } else { "" };
        let source = format!("{HEADER}\n{check}\n#line 1 \"{name}\"\n{}", rewrite_dynamic_shared(text));
        let options: Vec<&str> = OPTIONS.iter().chain(options).copied().collect();
        let hash = hash([&source, &options.join(" "), &compiler.version]);
        let load = |path: &Path| {
            // SAFETY: the file was written by the compiler from kernel text; it has no initialisers.
            let loaded = unsafe { libloading::Library::new(path) };
            loaded.map(|loaded| Self { loaded: Arc::new(loaded) })
        };
        let failed = |source| EmulateError::Load { name: name.to_owned(), source };
        if let Some(folder) = cache_folder() {
            let path = folder.join(format!("{hash}.so"));
            if let Ok(library) = load(&path) {
                return Ok(library);
            }
            let built = fs::create_dir_all(&folder)
                .map_err(|source| EmulateError::Write { path: folder.clone(), source })
                .and_then(|()| compiler.build(name, &source, &options, &folder, &path));
            match built {
                Ok(()) => return load(&path).map_err(failed),
                Err(EmulateError::Write { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // No place to keep it: a private folder, which is removed once the library is loaded.
        let folder =
            tempfile::tempdir().map_err(|source| EmulateError::Write { path: env::temp_dir(), source })?;
        let path = folder.path().join("kernels.so");
        compiler.build(name, &source, &options, folder.path(), &path)?;
        load(&path).map_err(failed)
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<EmulatedKernel> {
        // SAFETY: the macro KERNEL of emulate.h gives both symbols these types.
        let (launch, args_size) = unsafe {
            let launch = *self.loaded.get::<LaunchFn>(format!("{name}__launch").as_bytes()).ok()?;
            let args_size = *self.loaded.get::<ArgsSizeFn>(format!("{name}__args_size").as_bytes()).ok()?;
            (launch, args_size())
        };
        Some(EmulatedKernel {
            name: name.to_owned(),
            args_size: args_size as usize,
            launch,
            _loaded: Arc::clone(&self.loaded),
        })
    }
}

impl EmulatedKernel {
    /// Size of the struct the kernel takes.
    pub(crate) fn args_size(&self) -> usize {
        self.args_size
    }

    /// Runs every block of the grid, one after another, on this thread.
    ///
    /// # Safety
    ///
    /// That of [`Stream::launch`](crate::Stream::launch), with pointers to memory of this process.
    pub unsafe fn run(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        args: &[u8],
    ) -> Result<(), EmulateError> {
        if args.len() != self.args_size {
            let kernel = self.name.clone();
            return Err(EmulateError::Arguments { kernel, expected: self.args_size, given: args.len() });
        }
        // SAFETY: the trampoline copies `args_size` bytes and reads three numbers each of grid and block; the library is held. What the
        // kernel does with its arguments is the caller's.
        let message =
            unsafe { (self.launch)(args.as_ptr().cast(), grid.as_ptr(), block.as_ptr(), shared_bytes) };
        if message.is_null() {
            return Ok(());
        }
        // SAFETY: a message is a C string that stays until the next launch of this thread.
        let message = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
        Err(EmulateError::Launch { kernel: self.name.clone(), message })
    }
}

/// The C++ compiler of the system.
struct Compiler {
    command: OsString,
    version: String,
}

impl Compiler {
    fn find() -> Result<Self, EmulateError> {
        let command = env::var_os("CXX").filter(|name| !name.is_empty()).unwrap_or_else(|| "c++".into());
        let output = Command::new(&command).arg("--version").output();
        let output = output.map_err(|source| Self::missing(&command, source))?;
        Ok(Self { version: String::from_utf8_lossy(&output.stdout).into_owned(), command })
    }

    fn missing(command: &OsString, source: io::Error) -> EmulateError {
        EmulateError::NoCompiler { compiler: command.to_string_lossy().into_owned(), source }
    }

    /// Compiles under a temporary name in `folder`, then renames: others see the whole file or none.
    fn build(
        &self,
        name: &str,
        source: &str,
        options: &[&str],
        folder: &Path,
        to: &Path,
    ) -> Result<(), EmulateError> {
        let write = |source| EmulateError::Write { path: folder.to_owned(), source };
        let work = tempfile::Builder::new().prefix("build-").tempdir_in(folder).map_err(write)?;
        let (from, made) = (work.path().join("kernels.cpp"), work.path().join("kernels.so"));
        fs::write(&from, source).map_err(write)?;
        if options.contains(&INSTRUMENT) {
            let object = work.path().join("kernels.o");
            self.run(name, options, &["-c"], &from, &object)?;
            self.run(name, &[], &["-shared"], &object, &made)?;
        } else {
            self.run(name, options, &["-shared"], &from, &made)?;
        }
        fs::rename(&made, to).map_err(write)
    }

    fn run(
        &self,
        name: &str,
        options: &[&str],
        step: &[&str],
        from: &Path,
        to: &Path,
    ) -> Result<(), EmulateError> {
        let output =
            Command::new(&self.command).args(options).args(step).arg("-o").arg(to).arg(from).output();
        let output = output.map_err(|source| Self::missing(&self.command, source))?;
        if output.status.success() {
            return Ok(());
        }
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(EmulateError::Compile { name: name.to_owned(), log })
    }
}

/// Where compiled libraries are kept.
pub fn cache_folder() -> Option<PathBuf> {
    crate::cache::user_folder().map(|folder| folder.join("emulated"))
}

fn hash<const N: usize>(parts: [&str; N]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Turns `extern __shared__ T name[];` into a pointer to the block's dynamic memory, on the same line.
fn rewrite_dynamic_shared(text: &str) -> String {
    const DECLARATION: &str = "extern __shared__ ";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(DECLARATION) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let Some((declared, after)) = found[DECLARATION.len()..].split_once("[];") else {
            rest = found;
            break;
        };
        let (ty, name) = declared.trim_end().rsplit_once([' ', '\n']).unwrap_or(("char", declared));
        out.push_str(&format!("{ty}* const {name} = ({ty}*)emulate::dynamic_shared();"));
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod check;
#[cfg(test)]
mod tests;
