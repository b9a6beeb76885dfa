//! The `laxity` command as its users meet it: the real binary on real files.

#[cfg(target_os = "linux")]
mod bandwidth;
mod chains;
mod check;
mod check_lines;
#[cfg(target_os = "linux")]
mod exec;
mod export;
mod generate;
#[cfg(target_os = "linux")]
mod gpu;
#[cfg(target_os = "linux")]
mod gpu_cuda;
#[cfg(target_os = "linux")]
mod gpu_follow;
#[cfg(target_os = "linux")]
mod gpu_irq;
mod gpu_programs;
mod gpus;
#[cfg(target_os = "linux")]
mod graph;
#[cfg(target_os = "linux")]
mod graph_live;
#[cfg(target_os = "linux")]
mod graph_run;
#[cfg(target_os = "linux")]
mod graph_scheduled;
#[cfg(target_os = "linux")]
mod graph_trace;
#[cfg(target_os = "linux")]
mod graph_watch;
mod guides;
mod help;
mod hostile;
#[cfg(target_os = "linux")]
mod hostile_cases;
#[cfg(target_os = "linux")]
mod hostile_places;
mod interruption;
mod json;
mod lists;
#[cfg(target_os = "linux")]
mod measure;
mod output_files;
#[cfg(target_os = "linux")]
mod outside;
mod own_code;
mod own_code_ends;
mod own_programs;
#[cfg(target_os = "linux")]
mod programs;
mod readme;
mod replicas;
mod report;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod same_jobs;
#[cfg(target_os = "linux")]
mod sched;
mod simulate;
mod support;
#[cfg(target_os = "linux")]
mod terminal;
mod trace;
mod tune;
#[cfg(target_os = "linux")]
mod usage;
mod validate;
mod why;
