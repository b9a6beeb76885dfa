//! What is shared and by which rules, from options and from a workload file.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use laxity_gpu::Config;
use laxity_model::{EngineOrder, GpuArbitration, GpuSync, Workload, parse_size};
use laxity_sys::scheduling;

use crate::error::CliError;
use crate::input;

/// The options. Omitted ones are the file's, or else GPUSync's defaults.
#[derive(Args)]
pub struct Rules {
    /// GPUs
    #[arg(long, value_name = "N", required_unless_present = "file", conflicts_with = "file")]
    gpus: Option<u16>,
    /// CPUs that the threads which share them run on [default: all that can be used]
    #[arg(long, value_name = "M", conflicts_with = "file")]
    cpus: Option<u16>,
    /// Copy engines of each GPU, 1 or 2 [default: 2]
    #[arg(long, value_name = "N", conflicts_with = "file")]
    copy_engines: Option<u8>,
    /// Take GPUs, CPUs and rules from a workload: its platform and its [gpu_management]
    #[arg(long, value_name = "WORKLOAD")]
    file: Option<PathBuf>,
    /// The cluster of the file, counted from 0, if several have GPUs
    #[arg(long, value_name = "N", requires = "file")]
    cluster: Option<usize>,
    /// Which job gets which GPU: gpusync or k_fmlp [default: the file's, else gpusync]
    #[arg(long, value_name = "NAME", hide_possible_values = true,
          value_parser = PossibleValuesParser::new(["gpusync", "k_fmlp"]))]
    arbitration: Option<String>,
    /// Tokens of each GPU (rho) [default: 1]
    #[arg(long, value_name = "N")]
    tokens: Option<u32>,
    /// The most requests in the queue of a token, its holder's included (f) [default: as many as it takes for all CPUs]
    #[arg(long, value_name = "N")]
    fifo_length: Option<u32>,
    /// The most requests in the queues of all tokens together [default: as there are CPUs]
    #[arg(long, value_name = "N")]
    fifo_requests: Option<u32>,
    /// Which waiting job gets an engine first: fifo or priority [default: fifo]
    #[arg(long, value_name = "ORDER", hide_possible_values = true)]
    engine_order: Option<Order>,
    /// Break copies into chunks of this size, as in "1 MiB"
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    chunk: Option<u64>,
    /// The most threads that can be registered at a time [default: 64]
    #[arg(long, value_name = "N")]
    clients: Option<u16>,
}

/// The order of an engine's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Order {
    Fifo,
    Priority,
}

impl Rules {
    /// What they say together.
    pub fn config(&self) -> Result<Config, CliError> {
        let mut config = match &self.file {
            Some(path) => self.of_file(&input::workload(path)?, &input::name(path))?,
            None => {
                let all = || u16::try_from(scheduling::usable_cpus().map_or(1, |cpus| cpus.len())).unwrap_or(u16::MAX);
                let default = Config::new(self.cpus.unwrap_or_else(all), self.gpus.unwrap_or(0));
                Config { copy_engines: self.copy_engines.unwrap_or(default.copy_engines), ..default }
            }
        };
        config.clients = self.clients.unwrap_or(config.clients);
        let named = |name: &String| GpuArbitration::named(name, config.arbitration);
        let like = self.arbitration.as_ref().and_then(named).unwrap_or(config.arbitration);
        config.arbitration = self.adjusted(like)?;
        Ok(config)
    }

    /// The GPUs of the one cluster that is meant: the CPUs that share them, and how.
    fn of_file(&self, workload: &Workload, file: &str) -> Result<Config, CliError> {
        let refuse = |reason: String| CliError::Argument { message: format!("{file}: {reason}") };
        let platform = &workload.platform;
        let mut with_gpus: Vec<usize> = platform.gpus.iter().map(|gpu| gpu.cluster).collect();
        with_gpus.sort_unstable();
        with_gpus.dedup();
        let cluster = match (self.cluster, with_gpus.as_slice()) {
            (_, []) => return Err(refuse("the platform has no GPU; add a [[platform.gpu]]".to_owned())),
            (None, &[only]) => only,
            (Some(cluster), clusters) if clusters.contains(&cluster) => cluster,
            (_, clusters) => {
                let names: Vec<String> = clusters.iter().map(usize::to_string).collect();
                return Err(refuse(format!("clusters with GPUs are {}; write --cluster N", names.join(", "))));
            }
        };
        let gpus: Vec<_> = platform.gpus.iter().filter(|gpu| gpu.cluster == cluster).collect();
        let (first, cpus) = (gpus[0], platform.clusters.get(cluster).map_or(0, Vec::len));
        if let Some(other) = gpus.iter().find(|gpu| gpu.copy_engines != first.copy_engines) {
            return Err(refuse(format!(
                "GPU {} has {} copy engines and GPU {} has {}; GPUs that are shared together have equally many",
                first.name, first.copy_engines, other.name, other.copy_engines
            )));
        }
        let narrow = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        let config = Config::new(narrow(cpus), narrow(gpus.len()));
        Ok(Config { copy_engines: first.copy_engines, arbitration: workload.gpu_management.arbitration, ..config })
    }

    /// `arbitration` with the parameters that options give.
    fn adjusted(&self, arbitration: GpuArbitration) -> Result<GpuArbitration, CliError> {
        let given = [
            ("--tokens", self.tokens.is_some()),
            ("--fifo-length", self.fifo_length.is_some()),
            ("--fifo-requests", self.fifo_requests.is_some()),
            ("--engine-order", self.engine_order.is_some()),
            ("--chunk", self.chunk.is_some()),
        ];
        let GpuArbitration::GpuSync(sync) = arbitration else {
            return match given.iter().find(|(_, is_given)| *is_given) {
                None => Ok(arbitration),
                Some((option, _)) => {
                    let name = arbitration.name();
                    let message = format!("{option} is a parameter of gpusync, not of {name}; leave one of them out");
                    Err(CliError::Argument { message })
                }
            };
        };
        let order = |order| match order {
            Order::Fifo => EngineOrder::Fifo,
            Order::Priority => EngineOrder::Priority,
        };
        Ok(GpuArbitration::GpuSync(GpuSync {
            tokens: self.tokens.unwrap_or(sync.tokens),
            fifo_length: self.fifo_length.or(sync.fifo_length),
            fifo_requests: self.fifo_requests.or(sync.fifo_requests),
            engine_order: self.engine_order.map_or(sync.engine_order, order),
            chunk: self.chunk.or(sync.chunk),
            ..sync
        }))
    }
}
