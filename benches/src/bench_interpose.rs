//! What interposers add to programs: calls and kernels of C programs in OpenCL and, on the soft driver, in CUDA, and a
//! pipeline of OpenCV, with the layer and without in turns. The arbitration is free: no other program wants the GPU.
//!
//! Whole programs are compared, and a turn may take twice as long as the next one for reasons of the machine: a virtual CPU
//! shares its core with another guest, and a driver's threads settle on one CPU or on two. Both sides have such turns, not
//! equally many of them. So a side counts by the lower quartile of its turns; the median is printed beside it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fmt};

use clap::Parser;
use laxity_gpu::{Config, Registry};

/// Measures what the layers add.
#[derive(Parser)]
struct Arguments {
    /// Turns of each side
    #[arg(long, default_value_t = 21)]
    turns: usize,
    /// Frames of the pipeline in a turn
    #[arg(long, default_value_t = 60)]
    frames: usize,
    /// The OpenCL layer [default: beside this program]
    #[arg(long)]
    layer: Option<PathBuf>,
}

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let beside = env::current_exe()?.with_file_name("liblaxity_opencl.so");
    let layer = arguments.layer.clone().unwrap_or(beside).canonicalize()?;
    let place = env::temp_dir().join(format!("laxity-bench-interpose-{}", std::process::id()));
    std::fs::create_dir_all(&place)?;
    let result = measure_cuda(&arguments, &place).and_then(|cuda| measure(&arguments, &layer, &place, &cuda));
    std::fs::remove_dir_all(&place)?;
    result
}

/// What the CUDA layer adds, as words of the last line.
fn measure_cuda(arguments: &Arguments, place: &Path) -> Result<String, Failure> {
    let name = format!("bench-cuda-{}", std::process::id());
    let _arbitration = Registry::default().create(&name, &Config::new(4, 1))?;
    let beside =
        |file: &str| -> Result<PathBuf, Failure> { Ok(env::current_exe()?.with_file_name(file).canonicalize()?) };
    let (layer, driver) = (beside("liblaxity_cuda.so")?, beside("liblaxity_softcuda.so")?);
    let library = place.join("driver");
    std::fs::create_dir_all(&library)?;
    std::os::unix::fs::symlink(driver, library.join("libcuda.so.1"))?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let soft = here.join("../capi/softcuda");
    let compile = |out: &str, source: PathBuf, options: &[&str]| {
        let out = place.join(out);
        let mut compile = Command::new("cc");
        compile.args(["-std=gnu11", "-O2", "-I"]).arg(soft.join("include")).arg("-I").arg(soft.join("tests/c"));
        compile.arg(format!("-DKERNELS_PTX=\"{}\"", soft.join("tests/c/kernels.ptx").display()));
        said(compile.arg("-o").arg(&out).arg(source).args(options)).map(|_| out)
    };
    let kernels = compile("kernels.so", soft.join("tests/c/kernels.c"), &["-shared", "-fPIC"])?;
    let program = compile("cuda_calls", here.join("interpose/cuda_calls.c"), &[])?;
    let mut costs: [Vec<Vec<f64>>; 2] = Default::default();
    for turn in 0..arguments.turns {
        for with in sides(turn) {
            let mut command = Command::new(&program);
            command.env("LD_LIBRARY_PATH", &library).env("LAXITY_SOFTCUDA_KERNELS", &kernels);
            command.env("LAXITY_SOFTCUDA_NAME", &name);
            if with {
                command.env("LD_AUDIT", &layer).env("LD_PRELOAD", &layer).env("LAXITY_GPU_ARBITRATION", &name);
            }
            let row = said(&mut command)?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
            costs[usize::from(with)].push(row);
        }
    }
    let rows = ["CUDA call, ns", "kernel and wait, us", "its launch, us", "each of 100 kernels, us"];
    let added: Vec<f64> = rows.iter().enumerate().map(|(row, what)| compare(what, &costs, row)).collect();
    Ok(format!("cuda_call_ns={:.1} cuda_kernel_us={:.2}", added[0], added[1]))
}

/// Whether a turn is with the layer, in the order of its two sides. The second one finds the machine as the first one left it:
/// either is the first one as often.
fn sides(turn: usize) -> [bool; 2] {
    if turn.is_multiple_of(2) { [false, true] } else { [true, false] }
}

/// Prints a row of both sides, `costs` without the layer and with it. Answers with what the layer adds.
fn compare(what: &str, costs: &[Vec<Vec<f64>>; 2], row: usize) -> f64 {
    let [without, with] = costs.each_ref().map(|turns| Quartiles::of(turns.iter().map(|turn| turn[row]).collect()));
    println!("{what:<26} without {without}   with {with}");
    with.lower - without.lower
}

fn measure(arguments: &Arguments, layer: &Path, place: &Path, cuda: &str) -> Result<(), Failure> {
    let name = format!("bench-{}", std::process::id());
    let _arbitration = Registry::default().create(&name, &Config::new(4, 1))?;
    let side = |command: &mut Command, with: bool| {
        command.env_remove("OPENCL_LAYERS").env("POCL_CACHE_DIR", place);
        if with {
            command.env("OPENCL_LAYERS", layer).env("LAXITY_GPU_ARBITRATION", &name);
        }
    };
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("interpose");
    let calls = place.join("calls");
    let mut compile = Command::new("cc");
    compile.args(["-std=gnu11", "-O2", "-o"]).arg(&calls).arg(sources.join("calls.c")).arg("-lOpenCL");
    said(&mut compile)?;

    let mut costs: [Vec<Vec<f64>>; 2] = Default::default();
    let mut frames: [Vec<f64>; 2] = Default::default();
    let mut digests = Vec::new();
    for turn in 0..arguments.turns {
        for with in sides(turn) {
            let mut command = Command::new(&calls);
            side(&mut command, with);
            costs[usize::from(with)]
                .push(said(&mut command)?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?);
            let mut command = Command::new("/usr/bin/python3");
            command.arg(sources.join("pipeline.py")).arg(arguments.frames.to_string());
            command.env("OPENCV_OPENCL_DEVICE", ":CPU:");
            side(&mut command, with);
            let text = said(&mut command)?;
            let (digest, time) = text.trim().split_once(' ').ok_or("the pipeline prints two words")?;
            digests.push(digest.to_owned());
            frames[usize::from(with)].push(time.parse()?);
        }
    }
    if digests.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err("the pipeline's results differ".into());
    }
    println!("{:<26} lower quartile of {} turns (median)", "", arguments.turns);
    let rows = ["call, ns", "kernel and Finish, us", "each of 100 kernels, us", "read of 4 KiB, us"];
    let added: Vec<f64> = rows.iter().enumerate().map(|(row, what)| compare(what, &costs, row)).collect();
    let [without, with] = frames.map(Quartiles::of);
    println!("{:<26} without {without}   with {with}", "OpenCV pipeline, ms");
    println!(
        "interpose opencl_call_ns={:.1} opencl_kernel_us={:.2} opencl_program_percent={:.2} {cuda}",
        added[0],
        added[1],
        (with.lower / without.lower - 1.0) * 100.0
    );
    Ok(())
}

/// Of some turns of a side.
struct Quartiles {
    lower: f64,
    median: f64,
}

impl Quartiles {
    fn of(mut values: Vec<f64>) -> Quartiles {
        values.sort_by(f64::total_cmp);
        Quartiles { lower: values[values.len() / 4], median: values[values.len() / 2] }
    }
}

impl fmt::Display for Quartiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.2} ({:>9.2})", self.lower, self.median)
    }
}

fn said(command: &mut Command) -> Result<String, Failure> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
