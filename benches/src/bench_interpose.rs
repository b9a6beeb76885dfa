//! What interposers add to programs: calls and kernels of C programs in OpenCL and, on the soft driver, in CUDA, and a
//! pipeline of OpenCV, with the layer and without in turns. The arbitration is free: no other program wants the GPU.
//!
//! Two processes of a program, one with the layer and one without, are measured for some milliseconds each by turns: a virtual
//! CPU shares its core with other guests, and what they do changes more from second to second than a layer costs. A layer
//! adds the median of the mean differences in two neighbouring turns, in which either is first once, and of that the median over several
//! pairs, as a process keeps how its memory lies and which CPUs its driver's threads settled on.
//!
//! The last line is of one CPU. On several it is Linux that decides how long a launch takes: whether a driver's thread wakes
//! beside its caller or on a CPU of its own makes a difference of 15 us, for either side (decision 167).

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{env, fmt};

use clap::Parser;
use laxity_gpu::{Config, Registry};
use laxity_sys::scheduling;

/// Measures what the layers add.
#[derive(Parser)]
struct Arguments {
    /// Pairs of processes of the OpenCL program; four times as many of the pipeline, and three times as many of the CUDA program
    #[arg(long, default_value_t = 9)]
    pairs: usize,
    /// Turns of each process; half as many of the pipeline
    #[arg(long, default_value_t = 20)]
    turns: usize,
    /// Frames of the pipeline in a turn
    #[arg(long, default_value_t = 8)]
    frames: usize,
    /// The OpenCL layer [default: beside this program]
    #[arg(long)]
    layer: Option<PathBuf>,
}

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let beside = |file: &str| Ok::<_, Failure>(env::current_exe()?.with_file_name(file));
    let layer = arguments.layer.clone().map_or_else(|| beside("liblaxity_opencl.so"), Ok)?.canonicalize()?;
    let cuda_layer = beside("liblaxity_cuda.so")?.canonicalize()?;
    let place = env::temp_dir().join(format!("laxity-bench-interpose-{}", std::process::id()));
    let arbitration = format!("bench-{}", std::process::id());
    let _arbitration = Registry::default().create(&arbitration, &Config::new(4, 1))?;
    std::fs::create_dir_all(&place)?;
    let bench = Bench { arguments, layer, cuda_layer, place, arbitration };
    let result = bench.prepare(&beside("liblaxity_softcuda.so")?.canonicalize()?).and_then(|()| bench.run());
    std::fs::remove_dir_all(&bench.place)?;
    result
}

/// What is measured, and with what.
struct Bench {
    arguments: Arguments,
    layer: PathBuf,
    cuda_layer: PathBuf,
    /// A folder for programs.
    place: PathBuf,
    /// A name, of the soft GPU, too.
    arbitration: String,
}

const INTERPOSE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/interpose");
const SOFT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../capi/softcuda");

impl Bench {
    /// Compiles the programs, and has `driver` found as CUDA's.
    fn prepare(&self, driver: &Path) -> Result<(), Failure> {
        let library = self.place.join("driver");
        std::fs::create_dir_all(&library)?;
        std::os::unix::fs::symlink(driver, library.join("libcuda.so.1"))?;
        let ptx = format!("-DKERNELS_PTX=\"{SOFT}/tests/c/kernels.ptx\"");
        let compile = |out: &str, source: String, options: &[&str]| {
            let mut compile = Command::new("cc");
            compile.args(["-std=gnu11", "-O2", "-I"]).arg(format!("{SOFT}/include")).arg("-I");
            compile
                .arg(format!("{SOFT}/tests/c"))
                .arg(&ptx)
                .arg("-o")
                .arg(self.place.join(out))
                .arg(source)
                .args(options);
            succeeds(&mut compile)
        };
        compile("kernels.so", format!("{SOFT}/tests/c/kernels.c"), &["-shared", "-fPIC"])?;
        compile("cuda_calls", format!("{INTERPOSE}/cuda_calls.c"), &[])?;
        compile("calls", format!("{INTERPOSE}/calls.c"), &["-lOpenCL"])
    }

    /// Measures on all CPUs and on one, and prints.
    fn run(&self) -> Result<(), Failure> {
        let all = scheduling::usable_cpus()?;
        let one = all[all.len() - 1..].to_vec();
        println!("on all {} CPUs", all.len());
        self.rows()?;
        println!("on one CPU");
        scheduling::keep_on(&one)?;
        let [cuda, opencl, pipeline] = self.rows()?;
        println!(
            "interpose opencl_call_ns={:.1} opencl_kernel_us={:.2} opencl_program_percent={:.2} cuda_call_ns={:.1} \
             cuda_kernel_us={:.2}",
            opencl[0].added,
            opencl[1].added,
            pipeline[0].added / pipeline[0].without * 100.0,
            cuda[0].added,
            cuda[1].added
        );
        Ok(())
    }

    /// Measures on the CPUs that this thread may use.
    fn rows(&self) -> Result<[Vec<Row>; 3], Failure> {
        let cuda = |with| {
            let mut command = Command::new(self.place.join("cuda_calls"));
            command.env("LD_LIBRARY_PATH", self.place.join("driver"));
            command.env("LAXITY_SOFTCUDA_KERNELS", self.place.join("kernels.so"));
            command.env("LAXITY_SOFTCUDA_NAME", &self.arbitration);
            if with {
                command.env("LD_AUDIT", &self.cuda_layer).env("LD_PRELOAD", &self.cuda_layer);
                command.env("LAXITY_GPU_ARBITRATION", &self.arbitration);
            }
            command
        };
        let opencl = |mut command: Command, with| {
            command.env_remove("OPENCL_LAYERS").env("POCL_CACHE_DIR", &self.place);
            if with {
                command.env("OPENCL_LAYERS", &self.layer).env("LAXITY_GPU_ARBITRATION", &self.arbitration);
            }
            command
        };
        let calls = |with| opencl(Command::new(self.place.join("calls")), with);
        let pipeline = |with| {
            let mut command = Command::new("/usr/bin/python3");
            command.arg(format!("{INTERPOSE}/pipeline.py")).env("OPENCV_OPENCL_DEVICE", ":CPU:");
            opencl(command, with)
        };
        let rows = ["CUDA call, ns", "kernel and wait, us", "its launch, us", "each of 100 kernels, us"];
        let Arguments { pairs, turns, frames, .. } = self.arguments;
        // The more two processes of a program differ from one another, the more pairs.
        let cuda = self.compare(3 * pairs, turns, "1", &rows, cuda)?;
        let rows = ["OpenCL call, ns", "kernel and Finish, us", "each of 100 kernels, us", "read of 4 KiB, us"];
        let calls = self.compare(pairs, turns, "1", &rows, calls)?;
        let pipeline =
            self.compare(4 * pairs, turns.div_ceil(2), &frames.to_string(), &["OpenCV frame, ms"], pipeline)?;
        Ok([cuda, calls, pipeline])
    }

    /// Runs pairs of a program, without the layer and with it, by turns, and prints what they tell. Each answers `ask` with as
    /// many numbers as there are names, perhaps behind a digest, which is the same of both.
    fn compare(
        &self,
        pairs: usize,
        turns: usize,
        ask: &str,
        names: &[&str],
        program: impl Fn(bool) -> Command,
    ) -> Result<Vec<Row>, Failure> {
        let turns = turns.next_multiple_of(2).max(2);
        let mut of_pairs: Vec<Vec<[f64; 3]>> = vec![Vec::new(); names.len()];
        for _ in 0..pairs {
            let mut sides = [Asked::start(program(false))?, Asked::start(program(true))?];
            let mut of_turns: Vec<Vec<[f64; 2]>> = vec![Vec::new(); names.len()];
            for turn in 0..=turns {
                let mut answers = [Answer::default(), Answer::default()];
                // The second one finds the machine as the first one left it: either is the first one as often.
                for side in if turn.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
                    answers[side] = sides[side].ask(ask, names.len())?;
                }
                let [without, with] = answers;
                if without.digest != with.digest {
                    return Err("the results differ".into());
                }
                // In the first turn caches and pools are filled.
                if turn > 0 {
                    let both = without.numbers.into_iter().zip(with.numbers);
                    of_turns.iter_mut().zip(both).for_each(|(turns, (without, with))| turns.push([without, with]));
                }
            }
            sides.into_iter().try_for_each(Asked::end)?;
            for (pairs, turns) in of_pairs.iter_mut().zip(&of_turns) {
                let of = |value: fn(&[f64; 2]) -> f64| at(turns.iter().map(value).collect(), 0.5);
                let added = |two: &[[f64; 2]]| two.iter().map(|[without, with]| with - without).sum::<f64>() / 2.0;
                let added = at(turns.chunks_exact(2).map(added).collect(), 0.5);
                pairs.push([of(|turn| turn[0]), of(|turn| turn[1]), added]);
            }
        }
        let row = |pairs: &Vec<[f64; 3]>| {
            let of = |which: usize, part: f64| at(pairs.iter().map(|pair| pair[which]).collect(), part);
            Row { without: of(0, 0.5), with: of(1, 0.5), added: of(2, 0.5), quartiles: [of(2, 0.25), of(2, 0.75)] }
        };
        let rows: Vec<Row> = of_pairs.iter().map(row).collect();
        names.iter().zip(&rows).for_each(|(name, row)| println!("  {name:<24} {row}"));
        Ok(rows)
    }
}

/// One number that a program tells of itself.
struct Row {
    /// Medians over pairs of the medians of their turns.
    without: f64,
    with: f64,
    /// What the layer adds.
    added: f64,
    quartiles: [f64; 2],
}

/// A process that measures as often as it is asked to.
struct Asked {
    child: Child,
    asks: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

#[derive(Default)]
struct Answer {
    digest: Option<String>,
    numbers: Vec<f64>,
}

impl Asked {
    fn start(mut command: Command) -> Result<Asked, Failure> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(asks), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("both are pipes".into());
        };
        Ok(Asked { child, asks, answers: BufReader::new(answers).lines() })
    }

    fn ask(&mut self, ask: &str, rows: usize) -> Result<Answer, Failure> {
        writeln!(self.asks, "{ask}")?;
        let line = self.answers.next().ok_or("the program ended early")??;
        let words: Vec<&str> = line.split_whitespace().collect();
        let (digest, numbers) = words.split_at_checked(words.len().saturating_sub(rows)).ok_or("too few numbers")?;
        let numbers = numbers.iter().map(|word| word.parse()).collect::<Result<_, _>>()?;
        Ok(Answer { digest: digest.first().map(|&word| word.to_owned()), numbers })
    }

    fn end(self) -> Result<(), Failure> {
        let Asked { mut child, asks, .. } = self;
        drop(asks);
        let status = child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the program: {status}").into()) }
    }
}

/// The value below which that part of them is.
fn at(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(part * (values.len() - 1) as f64).round() as usize]
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { without, with, added, quartiles: [lower, upper] } = self;
        write!(f, "without {without:>8.2}   with {with:>8.2}   adds {added:>7.2} ({lower:.2} to {upper:.2})")
    }
}

fn succeeds(command: &mut Command) -> Result<(), Failure> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}
