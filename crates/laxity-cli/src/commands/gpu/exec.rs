//! `laxity gpu exec`: a program that knows nothing of Laxity, under an arbitration.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use laxity_gpu::{Arbitration, Config, Registry, RegistryError};
use laxity_interpose::settings::{PREFIX, Settings, SettingsError};
use laxity_model::{EngineOrder, GpuArbitration, GpuSync};
use laxity_sys::scheduling;
use laxity_sys::signals::Signals;

use super::layers::{self, Interface};
use super::refused;
use crate::commands::named::live;
use crate::commands::program;
use crate::error::CliError;
use crate::output;

/// Start any CUDA or OpenCL program under an arbitration, unmodified.
///
/// Its kernels and copies wait for the token and the engine locks of a GPU, beside those of other programs, live tasks and soft GPUs under the same arbitration. A layer between program and driver does it: for OpenCL its loader puts it there, for CUDA the dynamic linker (LD_AUDIT); results do not change. Without NAME the programs share the arbitration `programs`, which the first one creates: one GPU, granted to the most urgent. See docs/guides/programs.md for what is guaranteed and what is not.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity gpu exec --priority 50 -- ffmpeg -init_hw_device opencl -i in.mp4 ... out.mp4
  laxity gpu exec --priority 10 -- python3 train.py
  laxity gpu exec --only cuda --suspend -- ./planner
  laxity gpu exec --name car --job-period 33ms --priority deadline -- ./detector
  laxity gpu exec --log run -- ./detector; laxity gpu trace run -o run.lxt

Exit codes: that of the program, 128 and the signal that ended it; 1 it ran without a layer, or a layer refused;
2 bad usage.")]
pub struct Arguments {
    /// The arbitration; it must exist, unless it is left out
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How urgent its requests are: 1 to 99, deadline (of its jobs), or background [default: background]
    #[arg(long, value_name = "PRIORITY")]
    priority: Option<String>,
    /// When its jobs begin and end: sync (it waited for the GPU), or announced
    #[arg(long, value_name = "RULE", conflicts_with = "job_period")]
    job: Option<String>,
    /// Its jobs are periodic, as in 33ms; the end of a period is a deadline
    #[arg(long, value_name = "DURATION")]
    job_period: Option<String>,
    /// Keep a token for each hold of an engine, or for a whole job: hold or job [default: hold]
    #[arg(long, value_name = "RULE")]
    token: Option<String>,
    /// Break copies into chunks of this size, as in "4 MiB", or none [default: the arbitration's]
    #[arg(long, value_name = "SIZE")]
    chunk: Option<String>,
    /// The most operations that share a hold of an engine [default: 16]
    #[arg(long, value_name = "N")]
    batch: Option<String>,
    /// How long they may take together, as predicted [default: 200us]
    #[arg(long, value_name = "DURATION")]
    batch_length: Option<String>,
    /// The same while no other program is under the arbitration; 0ms: no different then [default: 10ms]
    #[arg(long, value_name = "DURATION")]
    alone_length: Option<String>,
    /// Unlock an engine after this time, whether or not its operation is complete; not while the program is stopped [default: 2s]
    #[arg(long, value_name = "DURATION")]
    hold_limit: Option<String>,
    /// Which engines it has: auto, one, or separate [default: auto]
    #[arg(long, value_name = "ENGINES")]
    engines: Option<String>,
    /// The GPU of the arbitration that it uses [default: 0]
    #[arg(long, value_name = "N")]
    gpu: Option<String>,
    /// While it uses an engine, best-effort CPUs may have so much memory traffic, as in "64 MB/s" [default: no limit]
    #[arg(long, value_name = "RATE")]
    bandwidth: Option<String>,
    /// Suspend threads that wait for their operations, where the driver would spin
    #[arg(long)]
    suspend: bool,
    /// Have calls wait until their operation is granted, rather than hold operations back
    #[arg(long)]
    block: bool,
    /// Read these and other programs' settings from a TOML file; the options count more
    #[arg(long, value_name = "FILE")]
    policies: Option<PathBuf>,
    /// Log what it does to a folder, for `laxity gpu trace`
    #[arg(long, value_name = "FOLDER")]
    log: Option<PathBuf>,
    /// The OpenCL layer [default: liblaxity_opencl.so beside this command, or in ../lib]
    #[arg(long, value_name = "FILE")]
    layer: Option<PathBuf>,
    /// The CUDA layer [default: liblaxity_cuda.so beside this command, or in ../lib]
    #[arg(long, value_name = "FILE")]
    cuda_layer: Option<PathBuf>,
    /// Only the layer of this interface: opencl or cuda [default: those that are found]
    #[arg(long, value_name = "INTERFACE")]
    only: Option<Interface>,
    /// It is no failure if the program uses neither CUDA nor OpenCL
    #[arg(long)]
    optional: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// The arbitration of programs that name none.
const DEFAULT_NAME: &str = "programs";

/// Streams of all its programs at a time.
const CLIENTS: u16 = 128;

/// Runs the program to its end.
pub fn run(registry: &Registry, arguments: &Arguments) -> Result<(), CliError> {
    // Before any other thread: they are to keep the signals from this process, too.
    let signals = Signals::requests().map_err(live)?;
    let layers = layers::find(arguments.layer.as_deref(), arguments.cuda_layer.as_deref(), arguments.only)?;
    let Checked { settings, gpus } = settings(arguments)?;
    let (name, arbitration) = arbitration(registry, arguments.name.as_deref())?;
    check_gpus(&gpus, &name, &arbitration)?;
    let reports = tempfile::tempdir().map_err(live)?;
    if let Some(folder) = &arguments.log {
        fs::create_dir_all(folder).map_err(|source| CliError::Write { path: folder.clone(), source })?;
    }
    let mut command = program::command(&arguments.program);
    command.envs(layers::environment(&layers, arguments.job.as_deref() == Some("announced")));
    command.envs(settings.iter().map(|(key, value)| (variable(key), value)));
    command.env(variable("arbitration"), &name).env(variable("folder"), registry.directory());
    command.env(variable("report"), reports.path());
    // In the working directory of the program, which may change it.
    for (key, path) in [("log", &arguments.log), ("policies", &arguments.policies)] {
        if let Some(path) = path {
            command.env(variable(key), std::path::absolute(path).map_err(live)?);
        }
    }
    let status = program::run(&mut command, &signals)?;
    drop(arbitration);
    let shown = program::shown(&command);
    let found = layers::judge(&layers::read(reports.path()), &shown, arguments.optional);
    if status.success() {
        return found;
    }
    if let Err(error) = found {
        output::error(&error);
    }
    program::ended(shown, status)
}

fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_uppercase())
}

/// Settings without a mistake, as far as that can be said without the arbitration.
struct Checked {
    /// Those of the options.
    settings: Vec<(&'static str, String)>,
    /// Each GPU that is named, with where it is.
    gpus: Vec<(String, u16)>,
}

/// Programs may use these GPUs of `arbitration`.
fn check_gpus(gpus: &[(String, u16)], name: &str, arbitration: &Arbitration) -> Result<(), CliError> {
    let count = arbitration.config().gpus;
    match gpus.iter().find(|(_, gpu)| *gpu >= count) {
        None => Ok(()),
        Some((place, gpu)) => {
            let message = format!("{place}: there is no GPU {gpu}: arbitration {name} has {count}, counted from 0");
            Err(CliError::Argument { message })
        }
    }
}

/// The settings of the options and of the file of policies, checked here: a program says it in the middle of its own output, and then
/// has run without arbitration.
fn settings(arguments: &Arguments) -> Result<Checked, CliError> {
    let usage = |error: SettingsError| CliError::Argument { message: error.to_string() };
    let flag = |is_set: bool, value: &str| is_set.then(|| value.to_owned());
    let options = [
        ("priority", arguments.priority.clone()),
        ("job", arguments.job.clone().or_else(|| arguments.job_period.clone())),
        ("token", arguments.token.clone()),
        ("chunk", arguments.chunk.clone()),
        ("batch", arguments.batch.clone()),
        ("batch_length", arguments.batch_length.clone()),
        ("alone_length", arguments.alone_length.clone()),
        ("hold_limit", arguments.hold_limit.clone()),
        ("engines", arguments.engines.clone()),
        ("gpu", arguments.gpu.clone()),
        ("bandwidth", arguments.bandwidth.clone()),
        ("wait", flag(arguments.suspend, "suspend")),
        ("calls", flag(arguments.block, "block")),
    ];
    let given: Vec<_> = options.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let mut checked = Settings::default();
    for (key, value) in &given {
        let place = format!("--{}", key.replace('_', "-"));
        checked.set(key, value, &place).map_err(usage)?;
    }
    // The program has these, too, but for those that the options replace.
    let replaced: Vec<String> = given.iter().map(|(key, _)| variable(key)).collect();
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !replaced.contains(name));
    Settings::read("", environment).map_err(usage)?;
    let mut gpus = vec![("--gpu".to_owned(), checked.gpu)];
    if let Some(path) = &arguments.policies {
        // Which of its programs the one to be started is, and starts, only those know.
        let all = Settings::of_file(path).map_err(usage)?;
        if arguments.gpu.is_none() {
            let place = |program: Option<String>| match program {
                Some(program) => format!("{}: program {program:?}", path.display()),
                None => format!("{}: default", path.display()),
            };
            gpus.extend(all.into_iter().map(|(program, settings)| (place(program), settings.gpu)));
        }
    }
    Ok(Checked { settings: given, gpus })
}

/// The arbitration called `name`, or that of programs that name none, which is created if need be. It is kept until the
/// program has ended.
fn arbitration(registry: &Registry, name: Option<&str>) -> Result<(String, Arbitration), CliError> {
    let wanted = name.unwrap_or(DEFAULT_NAME);
    let found = match registry.attach(wanted) {
        Err(RegistryError::NotFound { .. }) if name.is_none() => {
            let cpus = scheduling::usable_cpus().map_or(1, |cpus| cpus.len());
            // One request in the token's FIFO queue, the holder's: the most urgent of the others is next.
            let order = EngineOrder::Priority;
            let sync = GpuSync { engine_order: order, fifo_length: Some(1), ..GpuSync::DEFAULT };
            let config = Config::new(u16::try_from(cpus).unwrap_or(u16::MAX), 1);
            let clients = CLIENTS;
            registry.create_or_attach(wanted, &Config { arbitration: GpuArbitration::GpuSync(sync), clients, ..config })
        }
        found => found,
    };
    found.map(|arbitration| (wanted.to_owned(), arbitration)).map_err(|error| refused(registry, error))
}
