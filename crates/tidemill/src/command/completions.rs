//! `tidemill completions` and `tidemill man`: what a shell and `man` know of the commands.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::ExitCode;

/// Print the script that completes commands and flags in a shell.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill completions bash > ~/.local/share/bash-completion/completions/tidemill
  tidemill completions zsh > ~/.zfunc/_tidemill
  tidemill completions fish > ~/.config/fish/completions/tidemill.fish
  tidemill completions powershell >> $PROFILE")]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "bash|zsh|fish|powershell|elvish", hide_possible_values = true)]
    shell: Shell,
}

/// Print the manual page of the program or of a command.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill man > tidemill.1
  tidemill man study best | man -l -
  tidemill man --out ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The command.
    command: Vec<String>,
    /// Write the pages of all commands to this folder.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// Prints the script for a shell.
pub fn run(args: &CompletionsArgs, mut program: Command) -> Result<ExitCode> {
    // Written to memory first, because the generator panics where a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "tidemill", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a manual page, or writes all of them.
pub fn man(args: &ManArgs, mut program: Command) -> Result<ExitCode> {
    if let Some(dir) = &args.out {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        clap_mangen::generate_to(program, dir)
            .with_context(|| format!("cannot write to {}", dir.display()))?;
        eprintln!("pages: {}", dir.display());
        return Ok(ExitCode::SUCCESS);
    }
    program.build();
    let mut command = &program;
    for name in &args.command {
        match command.find_subcommand(name) {
            Some(found) => command = found,
            None => bail!("there is no command `{name}`\n  hint: `tidemill --help` lists the commands"),
        }
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    std::io::stdout().lock().write_all(&page)?;
    Ok(ExitCode::SUCCESS)
}
