//! `laxity completions`: what shells can complete.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::error::CliError;
use crate::output::Output;

/// Print completions for a shell.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity completions bash > ~/.local/share/bash-completion/completions/laxity
  laxity completions fish > ~/.config/fish/completions/laxity.fish
  laxity completions zsh > \"${fpath[1]}/_laxity\"")]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    // The generator cannot report a failed write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "laxity", &mut script);
    output.print(String::from_utf8_lossy(&script))
}
