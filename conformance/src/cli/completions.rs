//! `hlo completions`: completions for a shell.

use clap::Args;

use super::ui::Ui;
use hlo_system::exit::{Exit, Failure};

/// Options of `hlo completions`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hlo completions bash > ~/.local/share/bash-completion/completions/hlo\n  hlo completions fish > ~/.config/fish/completions/hlo.fish"
)]
pub(crate) struct Options {
    /// Which shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut super::command(), "hlo", &mut script);
    ui.raw(&String::from_utf8_lossy(&script));
    Ok(Exit::Ok)
}
