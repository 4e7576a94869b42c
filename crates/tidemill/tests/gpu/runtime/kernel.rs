use super::rig::{
    AddArgs, LAYOUTS, PlaneArgs, SumArgs, add, host_compiles, kernel, launch, on_every_device, source,
};
use tidemill_gpu::{GpuError, Launch, Source, StructLayout, compile, probe};

#[test]
fn a_kernel_gives_the_bits_of_the_host() {
    on_every_device(|device| {
        // Numbers for which a fused operation would round otherwise.
        let x: Vec<f64> = (0..1000).map(|i| 1.0 + f64::from(i) * 1e-9).collect();
        let y: Vec<f64> = (0..1000).map(|i| -1.0 - f64::from(i) * 1e-9).collect();
        let slope = 1.0 + 1e-8;
        let (dx, dy) = (device.alloc_from(&x).unwrap(), device.alloc_from(&y).unwrap());
        let out = device.alloc::<f64>(1000).unwrap();
        let args = PlaneArgs { x: dx.ptr(), y: dy.ptr(), out: out.ptr(), slope, n: 1000, unused: 0 };
        let stream = device.stream().unwrap();
        launch(&stream, &kernel(device, "plane"), Launch::blocks(8, 128), &args).unwrap();
        stream.synchronize().unwrap();
        let expected: Vec<u64> = x.iter().zip(&y).map(|(x, y)| (x * slope + y).to_bits()).collect();
        let fused: Vec<u64> = x.iter().zip(&y).map(|(x, y)| x.mul_add(slope, *y).to_bits()).collect();
        assert!(expected != fused, "the numbers must tell the two apart");
        let got: Vec<u64> = out.to_vec().unwrap().iter().map(|x| x.to_bits()).collect();
        let wrong = got.iter().zip(&expected).position(|(got, expected)| got != expected);
        assert_eq!(wrong, None, "the first element that differs");
    });
}

#[test]
fn dynamic_shared_memory_is_as_large_as_asked_for() {
    on_every_device(|device| {
        let data: Vec<u64> = (0..4096).collect();
        let (data, sums) = (device.alloc_from(&data).unwrap(), device.alloc::<u64>(4).unwrap());
        let args = SumArgs { data: data.ptr(), sums: sums.ptr(), n: 4096, unused: 0 };
        let stream = device.stream().unwrap();
        let sum = kernel(device, "sum");
        // Also more than the 48 KiB that every launch may have.
        for shared in [8 * 1024, 90 * 1024] {
            stream.fill(&sums, 0, 4, 0).unwrap();
            launch(&stream, &sum, Launch::blocks(4, 1024).shared(shared), &args).unwrap();
            stream.synchronize().unwrap();
            let expected: Vec<u64> = (0..4).map(|b| (b * 1024..(b + 1) * 1024).sum()).collect();
            assert_eq!(sums.to_vec().unwrap(), expected);
        }
        let too_much = Launch::blocks(4, 1024).shared(device.info().shared_bytes + 8);
        let error = launch(&stream, &sum, too_much, &args).unwrap_err();
        assert!(matches!(&error, GpuError::Launch { kernel, .. } if kernel == "sum"), "{error}");
        stream.synchronize().unwrap();
    });
}

#[test]
fn arguments_of_another_size_are_refused() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let error = launch(&stream, &kernel(device, "add"), Launch::blocks(1, 1), &[0u64; 4]).unwrap_err();
        let expected =
            GpuError::ArgumentSize { kernel: "add".into(), expected: size_of::<AddArgs>(), given: 32 };
        assert_eq!(error, expected);
    });
}

#[test]
fn a_struct_that_differs_from_its_twin_is_refused_by_name() {
    let add = LAYOUTS[0];
    assert_eq!((add.name, add.size), ("AddArgs", 24));
    let swapped = StructLayout { fields: &[("data", 8), ("amount", 0), ("n", 16)], ..add };
    let longer = StructLayout { size: 32, ..add };
    let unknown = StructLayout { fields: &[("data", 0), ("step", 8)], ..add };
    let differences = [
        (
            swapped,
            ["field AddArgs.data is at byte 8 on the host", "field AddArgs.amount is at byte 0 on the host"],
        ),
        (longer, ["struct AddArgs has 32 bytes on the host", "AddArgs"]),
        (unknown, ["AddArgs", "step"]),
    ];
    for (layout, named) in differences {
        let other = source().comparing("", &[&[layout]]);
        let check = |error: GpuError| match error {
            GpuError::Compile { log, .. } => assert!(named.iter().all(|name| log.contains(name)), "{log}"),
            other => panic!("{other}"),
        };
        on_every_device(|device| check(device.load(&other).unwrap_err()));
        // NVRTC needs no GPU.
        match compile(&other, "sm_90") {
            Err(error @ GpuError::Unavailable { .. }) => {
                tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_NVRTC", error);
            }
            result => check(result.unwrap_err()),
        }
    }
}

#[test]
fn impossible_shapes_are_refused() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let buffer = device.alloc::<u64>(1).unwrap();
        let args = AddArgs { data: buffer.ptr(), amount: 1, n: 1, unused: 0 };
        let add = kernel(device, "add");
        for (grid, block) in [([0, 1, 1], [1, 1, 1]), ([1, 1, 1], [0, 1, 1]), ([1, 1, 1], [32, 33, 1])] {
            let error = launch(&stream, &add, Launch { grid, block, shared_bytes: 0 }, &args).unwrap_err();
            assert!(matches!(error, GpuError::Launch { .. }), "{error}");
        }
        let tall = Launch { grid: [1, 70_000, 1], block: [1, 1, 1], shared_bytes: 0 };
        assert!(matches!(launch(&stream, &add, tall, &args), Err(GpuError::Launch { .. })));
        stream.synchronize().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [0]);
    });
}

#[test]
fn a_missing_kernel_and_a_bad_source_are_named() {
    on_every_device(|device| {
        let module = device.load(&source()).unwrap();
        let error = module.kernel("nothing").unwrap_err();
        assert_eq!(error, GpuError::NoKernel { module: "runtime tests".into(), kernel: "nothing".into() });
        let bad = Source::splice(
            "bad source",
            &[("folder/bad.cu", "struct A { u32 n; };\nKERNEL(k, A) { oops; }\n")],
        );
        match device.load(&bad).unwrap_err() {
            GpuError::Compile { name, log } => {
                assert_eq!(name, "bad source");
                assert!(log.contains("folder/bad.cu") && log.contains("oops"), "{log}");
            }
            other => panic!("{other}"),
        }
    });
}

#[test]
fn a_source_is_loaded_once() {
    on_every_device(|device| {
        for _ in 0..100 {
            device.load(&source()).unwrap().kernel("add").unwrap();
        }
        let buffer = device.alloc_from(&[5u64; 300]).unwrap();
        let stream = device.stream().unwrap();
        add(&stream, &buffer, 6).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [11; 300]);
    });
}

/// Names a folder to a process of its own, whose compiler writes down that it was called.
#[cfg(unix)]
const DIR: &str = "TIDEMILL_TEST_COMPILER_DIR";

#[cfg(unix)]
fn n_calls(dir: &std::path::Path) -> usize {
    std::fs::read_to_string(dir.join("calls")).map_or(0, |calls| calls.lines().count())
}

/// Not a test of its own: what the other process does. Without the variable there is nothing to do.
#[cfg(unix)]
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR).map(std::path::PathBuf::from) else { return };
    let device = tidemill_gpu::Device::host(tidemill_gpu::HostOptions::default());
    device.load(&source()).unwrap();
    let n_first = n_calls(&dir);
    assert!(n_first > 0, "the compiler was asked");
    for _ in 0..20 {
        device.load(&source()).unwrap();
    }
    assert_eq!(n_calls(&dir), n_first, "what is loaded is found in memory");
    let other = Source::splice("other", &[("other.cu", "struct A { u32 n; };\nKERNEL(other, A) { }\n")]);
    device.load(&other).unwrap();
    assert!(n_calls(&dir) > n_first, "another source is not");
}

#[cfg(unix)]
#[test]
fn a_loaded_source_is_found_without_asking_the_compiler() {
    use std::os::unix::fs::PermissionsExt;
    if !host_compiles() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (script, calls) = (dir.path().join("compiler"), dir.path().join("calls"));
    let real = std::env::var("CXX").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "c++".into());
    let text = format!("#!/bin/sh\necho called >> '{}'\nexec {real} \"$@\"\n", calls.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "runtime::kernel::child", "--nocapture"])
        .env(DIR, dir.path())
        .env("CXX", &script)
        .env("TIDEMILL_CACHE", dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(n_calls(dir.path()) > 0, "the child ran");
}

#[test]
fn kernels_compile_without_a_device() {
    // Needs NVRTC, which needs no GPU.
    let report = probe();
    match &report.nvrtc {
        Ok(found) => {
            assert!(found.version.contains('.'));
            let code = compile(&source(), "sm_90").unwrap();
            assert_eq!(&code[..4], b"\x7fELF");
            let text = String::from_utf8(compile(&source(), "compute_90").unwrap()).unwrap();
            assert!(text.contains(".entry plane") && !text.contains("fma.rn.f64"), "no contraction");
            let bad = Source::new("bad.cu", "extern \"C\" __global__ void f() { oops; }");
            match compile(&bad, "sm_90").unwrap_err() {
                GpuError::Compile { name, log } => {
                    assert!(name == "bad.cu" && log.contains("bad.cu(1)") && log.contains("oops"), "{log}");
                }
                other => panic!("{other}"),
            }
            assert!(matches!(compile(&source(), "sm_1"), Err(GpuError::Compile { .. })));
        }
        Err(error) => {
            assert!(matches!(error, GpuError::Unavailable { .. }), "{error}");
            assert_eq!(compile(&source(), "sm_90").unwrap_err(), *error);
            assert!(report.problems().contains(&error));
        }
    }
}

#[test]
fn a_missing_device_is_an_error_with_a_cure() {
    let report = probe();
    let n_devices = report.devices.as_ref().map_or(0, |devices| devices.len());
    let error = tidemill_gpu::Device::cuda(n_devices).unwrap_err();
    match error {
        GpuError::Unavailable { what, cure } => assert!(!what.is_empty() && !cure.is_empty()),
        other => panic!("{other}"),
    }
    assert_eq!(report.problems().is_empty(), report.devices.is_ok() && report.nvrtc.is_ok());
}
