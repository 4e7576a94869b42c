//! NVRTC, the compiler, found and loaded at run time.
//!
//! It is loaded here and not through cudarc because a wheel from PyPI carries only `libnvrtc.so.13`, in a folder no loader
//! searches, and because its helper library has to be loaded first from the same folder.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

use crate::cache::Cache;
use crate::error::GpuError;
use crate::module::Source;
use crate::site;

/// Which NVRTC was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NvrtcInfo {
    /// Its version, for example `13.0`.
    pub version: String,
    /// The file it was loaded from, as far as that is known.
    pub file: PathBuf,
    /// Numbers of the architectures it compiles for, ascending, for example 90.
    pub architectures: Vec<u32>,
}

type Program = *mut c_void;
type OfProgram<T> = unsafe extern "C" fn(Program, *mut T) -> c_int;

/// A compiler that was found and loaded.
pub struct Nvrtc {
    pub(crate) info: NvrtcInfo,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut Program) -> c_int,
    log_size: OfProgram<usize>,
    log: OfProgram<c_char>,
    cubin_size: OfProgram<usize>,
    cubin: OfProgram<c_char>,
    ptx_size: OfProgram<usize>,
    ptx: OfProgram<c_char>,
    /// Holds the code of the functions above.
    _library: Library,
    /// What NVRTC itself loads by name.
    _builtins: Option<Library>,
}

const CURE: &str = "pip install nvidia-cuda-nvrtc (nvidia-cuda-nvrtc-cu12 for drivers before 13), then name the folder of \
                    libnvrtc in TIDEMILL_NVRTC or LD_LIBRARY_PATH";

/// The least architecture that kernels are written for, compute capability 6.0.
pub const LEAST_ARCHITECTURE: u32 = 60;
/// The first architecture that NVRTC 13 compiles for, compute capability 7.5.
const LEAST_OF_NVRTC_13: u32 = 75;

/// The number of an architecture, 61 of `sm_61`.
pub(crate) fn number_of(architecture: &str) -> Option<u32> {
    architecture.strip_prefix("sm_")?.parse().ok()
}

/// A compute capability from the number of an architecture: 6.1 from 61.
pub fn capability(architecture: u32) -> String {
    format!("{}.{}", architecture / 10, architecture % 10)
}

/// What keeps kernels from being compiled for a device of this name and architecture: its age, or this NVRTC, if there is one.
pub(crate) fn obstacle(device: &str, architecture: &str, nvrtc: Option<&NvrtcInfo>) -> Option<GpuError> {
    let number = number_of(architecture)?;
    let what = format!("{device} has compute capability {}", capability(number));
    if number < LEAST_ARCHITECTURE {
        return Some(GpuError::Unavailable {
            what: format!("{what}; the least that can be used is {}", capability(LEAST_ARCHITECTURE)),
            cure:
                "take a card of the Pascal generation (2016) or later, or the CPU: its results are the same"
                    .into(),
        });
    }
    let NvrtcInfo { version, architectures, .. } = nvrtc?;
    if target(architectures, architecture).is_some() {
        return None;
    }
    let cure = if number < LEAST_OF_NVRTC_13 {
        "install NVRTC 12.9, the last one for it: pip install 'nvidia-cuda-nvrtc-cu12==12.9.*', and name its folder in TIDEMILL_NVRTC"
    } else {
        "install a newer NVRTC: pip install nvidia-cuda-nvrtc"
    };
    let what = format!("{what}, for which NVRTC {version} does not compile");
    Some(GpuError::Unavailable { what, cure: cure.into() })
}

/// The compiler, loaded once.
pub(crate) fn nvrtc() -> Result<&'static Nvrtc, GpuError> {
    static NVRTC: OnceLock<Result<Nvrtc, GpuError>> = OnceLock::new();
    NVRTC.get_or_init(Nvrtc::find).as_ref().map_err(Clone::clone)
}

/// Compiles a source for an architecture, `sm_90` (machine code) or `compute_90` (PTX). Needs NVRTC, but no GPU.
pub fn compile(source: &Source, architecture: &str) -> Result<Vec<u8>, GpuError> {
    nvrtc()?.compile(source, architecture)
}

/// The same for a device of this architecture, kept on disk.
pub(crate) fn compile_cached(
    cache: &Cache,
    source: &Source,
    architecture: &str,
) -> Result<Vec<u8>, GpuError> {
    let nvrtc = nvrtc()?;
    if let Some(obstacle) = obstacle("the device", architecture, Some(&nvrtc.info)) {
        return Err(obstacle);
    }
    let architecture =
        target(&nvrtc.info.architectures, architecture).ok_or_else(|| GpuError::Unavailable {
            what: format!("NVRTC {} does not compile for {architecture}", nvrtc.info.version),
            cure: CURE.into(),
        })?;
    nvrtc.compile_in(cache, source, &architecture)
}

/// What the cache has of a source compiled with these options by this version, or what `make` makes of it. All that decides the result
/// is in the key; the architecture is one of the options.
fn kept(
    cache: &Cache,
    source: &Source,
    options: &[String],
    version: &str,
    make: impl FnOnce(&[String]) -> Result<Vec<u8>, GpuError>,
) -> Result<Vec<u8>, GpuError> {
    let parts = [source.name.as_str(), &source.text, &options.join(" "), version];
    cache.get_or(&parts, || make(options))
}

/// What to compile for on a device: its architecture, or PTX of the nearest older one for the driver to finish. `known` is
/// ascending.
fn target(known: &[u32], architecture: &str) -> Option<String> {
    let number = number_of(architecture)?;
    let nearest = known.iter().rev().find(|&&known| known <= number)?;
    Some(if *nearest == number { architecture.into() } else { format!("compute_{nearest}") })
}

/// No contraction of a multiplication and an addition: results have the bits of the host's. Functions without a mark are
/// device functions, because kernel text is spliced from pieces that the host compiler reads too.
fn options(architecture: &str) -> Vec<String> {
    vec![
        "--fmad=false".into(),
        format!("--gpu-architecture={architecture}"),
        "--std=c++17".into(),
        "-default-device".into(),
    ]
}

impl Nvrtc {
    /// The one in this folder, whatever others there are. [`compile()`] takes the one that programs use.
    pub fn in_folder(folder: &Path) -> Result<Self, GpuError> {
        Self::look_in(folder).unwrap_or_else(|| {
            Err(GpuError::Unavailable {
                what: format!("{} holds no NVRTC that can be loaded", folder.display()),
                cure: CURE.into(),
            })
        })
    }

    /// Which one it is.
    pub fn info(&self) -> &NvrtcInfo {
        &self.info
    }

    fn find() -> Result<Self, GpuError> {
        if let Some(folder) = std::env::var_os("TIDEMILL_NVRTC").filter(|folder| !folder.is_empty()) {
            let folder = PathBuf::from(folder);
            return Self::look_in(&folder).ok_or_else(|| GpuError::Unavailable {
                what: format!(
                    "TIDEMILL_NVRTC names {}, which holds no NVRTC that can be loaded",
                    folder.display()
                ),
                cure: CURE.into(),
            })?;
        }
        if let Some(found) = site::of_packages().iter().find_map(|folder| Self::look_in(folder)) {
            return found;
        }
        let names = [
            "libnvrtc.so",
            "libnvrtc.so.13",
            "libnvrtc.so.12",
            "libnvrtc.so.11.2",
            "nvrtc64_130_0.dll",
            "nvrtc64_120_0.dll",
            "nvrtc64_112_0.dll",
        ];
        for name in names {
            // SAFETY: NVRTC's initialisers only prepare NVRTC.
            if let Ok(library) = unsafe { Library::new(name) } {
                return Self::from_library(library, None, PathBuf::from(name));
            }
        }
        if let Some(found) = site::of_toolkit().iter().find_map(|folder| Self::look_in(folder)) {
            return found;
        }
        Err(GpuError::Unavailable {
            what: "the CUDA compiler library NVRTC was not found".into(),
            cure: site::cure_in_python().unwrap_or(CURE).into(),
        })
    }

    /// The NVRTC in a folder, its helper loaded first.
    fn look_in(folder: &Path) -> Option<Result<Self, GpuError>> {
        let mut files: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
        files.sort();
        let named = |path: &&PathBuf, wanted: &[&str]| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            !name.contains(".alt") && wanted.iter().any(|start| name.starts_with(start))
        };
        let builtins = files.iter().find(|path| named(path, &["libnvrtc-builtins.so", "nvrtc-builtins64"]));
        // SAFETY: as in `find`.
        let builtins = builtins.and_then(|path| unsafe { Library::new(path) }.ok());
        let file = files.iter().rfind(|path| named(path, &["libnvrtc.so", "nvrtc64_"]))?;
        // SAFETY: as in `find`.
        let library = unsafe { Library::new(file) }.ok()?;
        Some(Self::from_library(library, builtins, file.clone()))
    }

    fn from_library(library: Library, builtins: Option<Library>, file: PathBuf) -> Result<Self, GpuError> {
        fn symbol<T: Copy>(library: &Library, name: &str, file: &Path) -> Result<T, GpuError> {
            // SAFETY: T is the type NVRTC documents for the function of this name; the library is kept with it.
            unsafe { library.get::<T>(name.as_bytes()) }.map(|symbol| *symbol).map_err(|_| {
                GpuError::Unavailable {
                    what: format!("{} has no {name}; it is too old", file.display()),
                    cure: CURE.into(),
                }
            })
        }
        type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
        type Fill = unsafe extern "C" fn(*mut c_int) -> c_int;
        let (mut major, mut minor, mut n) = (0, 0, 0);
        // SAFETY: the function writes two numbers.
        unsafe { symbol::<Version>(&library, "nvrtcVersion", &file)?(&mut major, &mut minor) };
        // SAFETY: the function writes one number.
        unsafe { symbol::<Fill>(&library, "nvrtcGetNumSupportedArchs", &file)?(&mut n) };
        let mut architectures = vec![0; n.max(0) as usize];
        // SAFETY: the function writes as many numbers as the one above said.
        unsafe { symbol::<Fill>(&library, "nvrtcGetSupportedArchs", &file)?(architectures.as_mut_ptr()) };
        let mut architectures: Vec<u32> = architectures.into_iter().map(|number| number as u32).collect();
        architectures.sort_unstable();
        Ok(Self {
            info: NvrtcInfo { version: format!("{major}.{minor}"), file: loaded_file(&file), architectures },
            error_string: symbol(&library, "nvrtcGetErrorString", &file)?,
            create: symbol(&library, "nvrtcCreateProgram", &file)?,
            compile: symbol(&library, "nvrtcCompileProgram", &file)?,
            destroy: symbol(&library, "nvrtcDestroyProgram", &file)?,
            log_size: symbol(&library, "nvrtcGetProgramLogSize", &file)?,
            log: symbol(&library, "nvrtcGetProgramLog", &file)?,
            cubin_size: symbol(&library, "nvrtcGetCUBINSize", &file)?,
            cubin: symbol(&library, "nvrtcGetCUBIN", &file)?,
            ptx_size: symbol(&library, "nvrtcGetPTXSize", &file)?,
            ptx: symbol(&library, "nvrtcGetPTX", &file)?,
            _library: library,
            _builtins: builtins,
        })
    }

    /// Compiles a source for an architecture, `sm_90` (machine code) or `compute_90` (PTX).
    pub fn compile(&self, source: &Source, architecture: &str) -> Result<Vec<u8>, GpuError> {
        self.compile_with(source, architecture, &options(architecture))
    }

    /// The same, kept in [`kernel_folder`](crate::kernel_folder): what was compiled before is not compiled again.
    pub fn compile_kept(&self, source: &Source, architecture: &str) -> Result<Vec<u8>, GpuError> {
        self.compile_in(&Cache::of_user(), source, architecture)
    }

    fn compile_in(&self, cache: &Cache, source: &Source, architecture: &str) -> Result<Vec<u8>, GpuError> {
        kept(cache, source, &options(architecture), &self.info.version, |options| {
            self.compile_with(source, architecture, options)
        })
    }

    fn compile_with(
        &self,
        source: &Source,
        architecture: &str,
        options: &[String],
    ) -> Result<Vec<u8>, GpuError> {
        let options: Vec<CString> = options.iter().cloned().map(c_string).collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let (text, name) = (c_string(source.text.clone())?, c_string(source.name.clone())?);
        let mut program = std::ptr::null_mut();
        // SAFETY: the strings outlive the program; there are no headers.
        let code = unsafe {
            (self.create)(&mut program, text.as_ptr(), name.as_ptr(), 0, std::ptr::null(), std::ptr::null())
        };
        self.check("nvrtcCreateProgram", code)?;
        let program = OwnedProgram { nvrtc: self, program };
        // SAFETY: the program is alive, and so are the options.
        let code = unsafe { (self.compile)(program.program, pointers.len() as c_int, pointers.as_ptr()) };
        match code {
            0 => {}
            // A source that does not compile; an option it does not know, for example the architecture.
            5 | 6 => {
                let mut log = program.bytes(self.log_size, self.log)?;
                log.retain(|&byte| byte != 0);
                let log = String::from_utf8_lossy(&log).trim_end().to_string();
                let log =
                    if log.is_empty() { format!("{} ({architecture})", self.message(code)) } else { log };
                return Err(GpuError::Compile { name: source.name.clone(), log });
            }
            7 => {
                return Err(GpuError::Unavailable {
                    what: format!("NVRTC at {} lacks its helper libnvrtc-builtins", self.info.file.display()),
                    cure: CURE.into(),
                });
            }
            code => self.check("nvrtcCompileProgram", code)?,
        }
        if architecture.starts_with("compute_") {
            program.bytes(self.ptx_size, self.ptx)
        } else {
            program.bytes(self.cubin_size, self.cubin)
        }
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), GpuError> {
        if code == 0 { Ok(()) } else { Err(GpuError::Driver { call, code, message: self.message(code) }) }
    }

    fn message(&self, code: c_int) -> String {
        // SAFETY: NVRTC returns a constant string for any code.
        unsafe { CStr::from_ptr((self.error_string)(code)) }.to_string_lossy().into_owned()
    }
}

/// A program that is destroyed at the end.
struct OwnedProgram<'a> {
    nvrtc: &'a Nvrtc,
    program: Program,
}

impl OwnedProgram<'_> {
    fn bytes(&self, size_of: OfProgram<usize>, read: OfProgram<c_char>) -> Result<Vec<u8>, GpuError> {
        let mut size = 0;
        // SAFETY: the program is alive; the function writes one number.
        self.nvrtc.check("nvrtc size query", unsafe { size_of(self.program, &mut size) })?;
        let mut bytes = vec![0u8; size];
        // SAFETY: the program is alive; the function writes the bytes it has just announced.
        self.nvrtc.check("nvrtc read", unsafe { read(self.program, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for OwnedProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: created by `create`, destroyed once.
        unsafe { (self.nvrtc.destroy)(&mut self.program) };
    }
}

fn c_string(text: String) -> Result<CString, GpuError> {
    CString::new(text).map_err(|_| GpuError::misuse("a source, name or option holds a NUL"))
}

/// The full path of a library found by its name, where the system tells.
fn loaded_file(name: &Path) -> PathBuf {
    if name.is_absolute() {
        return name.into();
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let found = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .find(|path| path.contains("/libnvrtc.so"));
    found.map_or_else(|| name.into(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_device_gets_the_text_of_the_nearest_older_one() {
        let known = [75, 80, 86, 90, 100];
        assert_eq!(target(&known, "sm_90").as_deref(), Some("sm_90"));
        assert_eq!(target(&known, "sm_89").as_deref(), Some("compute_86"));
        assert_eq!(target(&known, "sm_120").as_deref(), Some("compute_100"));
        assert_eq!(target(&known, "sm_61"), None);
        assert_eq!(target(&known, "host"), None);
    }

    #[test]
    fn what_is_on_disk_is_not_compiled_again() {
        if nvrtc().is_err() {
            tidemill_skip::skipped("NVRTC was not found");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let source = Source::new("one.cu", "extern \"C\" __global__ void one(int* out) { *out = 1; }");
        let code = compile_cached(&cache, &source, "sm_90").unwrap();
        assert_eq!(code, compile_cached(&cache, &source, "sm_90").unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        // Other text, other name, other architecture: other entries.
        let text = Source::new("one.cu", format!("{} // x", source.text));
        let name = Source::new("two.cu", source.text.as_str());
        compile_cached(&cache, &text, "sm_90").unwrap();
        compile_cached(&cache, &name, "sm_90").unwrap();
        compile_cached(&cache, &source, "sm_80").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    #[test]
    fn whatever_decides_the_code_decides_the_entry() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let source = Source::new("one.cu", "extern \"C\" __global__ void one(int* out) { *out = 1; }");
        let usual = options("sm_90");
        let mut n_made = 0;
        // The code says what it was made with, so that an entry of something else would show.
        let mut get = |source: &Source, options: &[String], version: &str| {
            let wanted = format!("{} {} {options:?} {version}", source.name, source.text);
            let code = kept(&cache, source, options, version, |with| {
                assert_eq!(with, options, "what is in the key is what the compiler gets");
                n_made += 1;
                Ok(wanted.clone().into_bytes())
            });
            assert_eq!(String::from_utf8(code.unwrap()).unwrap(), wanted);
            n_made
        };
        assert_eq!(get(&source, &usual, "13.0"), 1);
        assert_eq!(get(&source, &usual, "13.0"), 1, "the second time it is there");
        let mut n_wanted = 1;
        let mut is_new = |source: &Source, options: &[String], version: &str, what: &str| {
            n_wanted += 1;
            assert_eq!(get(source, options, version), n_wanted, "another {what} is another entry");
            assert_eq!(get(source, options, version), n_wanted, "{what}");
        };
        for at in 0..usual.len() {
            let mut without = usual.clone();
            let option = without.remove(at);
            is_new(&source, &without, "13.0", &format!("set of options, without {option}"));
            let mut changed = usual.clone();
            changed[at] += "x";
            is_new(&source, &changed, "13.0", &option);
        }
        let more = [&usual[..], &["--maxrregcount=64".into()]].concat();
        is_new(&source, &more, "13.0", "set of options, with one more");
        for architecture in ["sm_80", "compute_90"] {
            is_new(&source, &options(architecture), "13.0", architecture);
        }
        is_new(&source, &usual, "12.9", "version");
        is_new(&Source::new("two.cu", source.text.as_str()), &usual, "13.0", "name");
        is_new(&Source::new("one.cu", format!("{} ", source.text)), &usual, "13.0", "text");
    }

    #[test]
    fn a_folder_without_nvrtc_holds_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Nvrtc::look_in(folder.path()).is_none());
        assert!(Nvrtc::look_in(&folder.path().join("missing")).is_none());
        std::fs::write(folder.path().join("libnvrtc.so.13"), "no library").unwrap();
        assert!(Nvrtc::look_in(folder.path()).is_none());
        assert!(matches!(Nvrtc::in_folder(folder.path()), Err(GpuError::Unavailable { .. })));
    }

    #[test]
    fn a_device_that_is_too_old_for_kernels_or_for_the_compiler_is_told_apart() {
        let known_12 = [50, 52, 60, 61, 70, 75, 80, 90, 120];
        let known_13 = [75, 80, 90, 120];
        let said = |architecture: &str, version: &str, known: &[u32]| {
            let nvrtc =
                NvrtcInfo { version: version.into(), file: PathBuf::new(), architectures: known.into() };
            obstacle("a card", architecture, Some(&nvrtc)).map(|error| error.to_string())
        };
        for old in ["sm_35", "sm_50", "sm_52", "sm_53"] {
            let text = said(old, "12.9", &known_12).unwrap();
            assert!(text.contains("the least that can be used is 6.0") && text.contains("CPU"), "{text}");
        }
        for pascal_or_volta in ["sm_60", "sm_61", "sm_62", "sm_70", "sm_72"] {
            assert_eq!(said(pascal_or_volta, "12.9", &known_12), None);
            let text = said(pascal_or_volta, "13.0", &known_13).unwrap();
            assert!(text.contains("NVRTC 13.0") && text.contains("cu12==12.9"), "{text}");
        }
        assert!(said("sm_61", "13.0", &known_13).unwrap().contains("capability 6.1"));
        for newer in ["sm_75", "sm_89", "sm_90", "sm_121"] {
            assert_eq!(said(newer, "13.0", &known_13), None, "{newer}");
        }
        assert!(said("sm_75", "11.0", &[80]).unwrap().contains("newer NVRTC"));
        // Without a compiler the age can still be told.
        assert!(obstacle("a card", "sm_52", None).is_some() && obstacle("a card", "sm_61", None).is_none());
    }
}
