//! The layer as loaders see it: its table against the headers, its answers, and other layers above and below.

mod support;

use std::ffi::c_void;
use std::fs;
use std::ptr;

use laxity_model::EngineOrder;
use laxity_opencl::{clGetLayerInfo, clInitLayerWithProperties};
use support::{Place, layer, plain, program, run};

/// The entry points of the headers that put something into a queue, or wait, and that the layer has none in the place
/// of: each with the reason.
const PASSED: &[(&str, &str)] = &[
    ("clEnqueueAcquireD3D10ObjectsKHR", "not on Linux"),
    ("clEnqueueReleaseD3D10ObjectsKHR", "not on Linux"),
    ("clEnqueueAcquireD3D11ObjectsKHR", "not on Linux"),
    ("clEnqueueReleaseD3D11ObjectsKHR", "not on Linux"),
    ("clEnqueueAcquireDX9MediaSurfacesKHR", "not on Linux"),
    ("clEnqueueReleaseDX9MediaSurfacesKHR", "not on Linux"),
];

unsafe extern "C" fn of_the_driver() -> i32 {
    0
}

/// The table that the layer gives a loader which offers `count` entries, all of them the driver's.
fn table(count: usize) -> Vec<*const c_void> {
    let driver: Vec<*const c_void> = vec![of_the_driver as *const c_void; count];
    let (mut count_out, mut table) = (0, ptr::null());
    // SAFETY: as loaders call it. No function of the table is called.
    let status =
        unsafe { clInitLayerWithProperties(count as u32, driver.as_ptr(), &mut count_out, &mut table, ptr::null()) };
    assert_eq!((status, count_out as usize), (0, count));
    // SAFETY: the layer keeps it for ever.
    unsafe { std::slice::from_raw_parts(table, count) }.to_vec()
}

/// The names of `cl_icd_dispatch` in its order.
fn names(header: &str) -> Vec<&str> {
    let body = header.split("typedef struct _cl_icd_dispatch {").nth(1).expect("the table");
    let body = body.split("} cl_icd_dispatch").next().expect("its end");
    let members = body.split(';').map(str::trim).filter(|member| !member.is_empty());
    members
        .filter_map(|member| member.split([' ', '*', '\n']).next_back())
        .filter(|name| name.starts_with("cl"))
        .collect()
}

#[test]
fn every_entry_point_of_the_headers_is_wrapped_or_passed() {
    let Ok(header) = fs::read_to_string("/usr/include/CL/cl_icd.h") else {
        return laxity_testing::skip("no OpenCL headers: run scripts/opencl.sh as root");
    };
    let names = names(&header);
    assert!(names.len() >= 140, "{} names", names.len());
    let table = table(names.len());
    let others = [
        "clFinish",
        "clWaitForEvents",
        "clCreateCommandQueue",
        "clCreateCommandQueueWithProperties",
        "clRetainCommandQueue",
        "clReleaseCommandQueue",
    ];
    for (name, entry) in names.iter().zip(table) {
        let is_ours = entry != of_the_driver as *const c_void;
        let asks_for_functions = name.starts_with("clGetExtensionFunctionAddress");
        let matters = name.starts_with("clEnqueue") || others.contains(name) || asks_for_functions;
        let is_passed = PASSED.iter().any(|(passed, _)| passed == name);
        assert_eq!(is_ours, matters && !is_passed, "{name}");
    }
}

#[test]
fn a_shorter_table_of_an_older_loader_and_a_longer_one_of_a_newer_are_answered_in_their_length() {
    for count in [60, 120, 149, 150, 200] {
        let table = table(count);
        let ours = table.iter().filter(|entry| **entry != of_the_driver as *const c_void).count();
        assert!(ours >= 10, "{ours} of {count} are ours");
        assert!(
            table[149.min(count)..].iter().all(|entry| *entry == of_the_driver as *const c_void),
            "unknown ones pass"
        );
    }
}

#[test]
fn the_layer_says_its_version_and_name_and_refuses_what_it_does_not_know() {
    let mut version = 0_u32;
    let mut size = 0;
    // SAFETY: places of the sizes that are named.
    unsafe {
        assert_eq!(clGetLayerInfo(0x4240, 4, (&raw mut version).cast(), &mut size), 0);
        assert_eq!((version, size), (100, 4));
        assert_eq!(clGetLayerInfo(0x4240, 3, (&raw mut version).cast(), ptr::null_mut()), -30, "too small");
        assert_eq!(clGetLayerInfo(0x4241, 0, ptr::null_mut(), &mut size), 0);
        assert_eq!(size, "Laxity: GPU arbitration".len() + 1);
        assert_eq!(clGetLayerInfo(1, 0, ptr::null_mut(), &mut size), -30);
        let (mut count, mut table) = (0, ptr::null());
        let entries = [ptr::null(); 4];
        let known = [7_u64, 0];
        assert_eq!(clInitLayerWithProperties(4, entries.as_ptr(), &mut count, &mut table, known.as_ptr()), -64);
        assert_eq!(clInitLayerWithProperties(4, ptr::null(), &mut count, &mut table, ptr::null()), -30);
    }
}

#[test]
fn other_layers_may_lie_above_and_below() {
    let Some(semantics) = program("stacked", "semantics.c") else { return };
    let build = |name: &str| {
        let define = format!("-DNAME=\"{name}\"");
        let options = ["-shared", "-fPIC", "-Wno-unused-variable", "-Wno-unused-but-set-variable", &define];
        support::build(&format!("lib{name}.so"), "counting_layer.c", &options).expect("headers are there")
    };
    let (lower, upper) = (build("lower"), build("upper"));
    let alone = run(&mut plain(&semantics));
    let place = Place::new("stacked", EngineOrder::Fifo);
    let mut command = plain(&semantics);
    place.arbitrate(&mut command, &[]);
    let layers = [&lower, &layer(), &upper].map(|path| path.display().to_string()).join(":");
    let stacked = run(command.env("OPENCL_LAYERS", layers));
    assert_eq!(stacked.stdout, alone.stdout);
    let said = String::from_utf8_lossy(&stacked.stderr).into_owned();
    let counted = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("counted {name} ")));
        line.unwrap_or_else(|| panic!("{name} was not loaded: {said}")).parse::<u32>().expect("a number")
    };
    assert_eq!(counted("lower"), counted("upper"), "each launch goes through both");
    assert!(counted("upper") > 200);
    place.assert_attached(1);
}
