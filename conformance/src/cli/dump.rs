//! XLA's flags for dumps (`xla/debug_options_flags.cc`), for every command that compiles.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser};
use regex_lite::Regex;

use crate::dumps::Dumps;
use hlo_system::exit::Failure;

/// XLA's dump flags. Each switch takes `=true` and `=false` too, as XLA's do.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DumpOptions {
    /// Write what XLA dumps, with its file names: the program before and after optimization, buffers, LLVM
    /// code
    #[arg(id = "xla_dump_to", long = "xla_dump_to", value_name = "DIR", hide_short_help = true)]
    to: Option<PathBuf>,
    /// Dump HLO text, which is the default
    #[arg(id = "xla_dump_hlo_as_text", long = "xla_dump_hlo_as_text", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        requires = "xla_dump_to", hide_short_help = true)]
    text: Option<bool>,
    /// Dump `HloProto`s
    #[arg(id = "xla_dump_hlo_as_proto", long = "xla_dump_hlo_as_proto", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        requires = "xla_dump_to", hide_short_help = true)]
    proto: Option<bool>,
    /// Dump graphs for Graphviz
    #[arg(id = "xla_dump_hlo_as_dot", long = "xla_dump_hlo_as_dot", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        requires = "xla_dump_to", hide_short_help = true)]
    dot: Option<bool>,
    /// Dump pages, those of `hlo viz`
    #[arg(id = "xla_dump_hlo_as_html", long = "xla_dump_hlo_as_html", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        requires = "xla_dump_to", hide_short_help = true)]
    html: Option<bool>,
    /// Dump arguments and result of each run, with the program
    #[arg(id = "xla_dump_hlo_snapshots", long = "xla_dump_hlo_snapshots", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        requires = "xla_dump_to", hide_short_help = true)]
    snapshots: Option<bool>,
    /// Write large constants out; here the default
    #[arg(id = "xla_dump_large_constants", long = "xla_dump_large_constants", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
        requires = "xla_dump_to", hide_short_help = true)]
    large_constants: Option<bool>,
    /// Dump only modules whose name matches
    #[arg(id = "xla_dump_hlo_module_re", long = "xla_dump_hlo_module_re", value_name = "REGEX", requires = "xla_dump_to", hide_short_help = true, value_parser = regex)]
    modules: Option<Regex>,
    /// Dump after passes whose name matches
    #[arg(id = "xla_dump_hlo_pass_re", long = "xla_dump_hlo_pass_re", value_name = "REGEX", requires = "xla_dump_to", hide_short_help = true, value_parser = regex)]
    passes: Option<Regex>,
}

/// Reads a regular expression. An empty one says nothing, as in XLA.
fn regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|e| e.to_string())
}

impl DumpOptions {
    /// The dumps, if any.
    pub(crate) fn dumps(&self) -> Option<Dumps> {
        let folder = self.to.clone()?;
        let on = |flag: Option<bool>| flag == Some(true);
        let others = on(self.proto) || on(self.dot) || on(self.html) || on(self.snapshots);
        // An empty expression is as good as none.
        let given = |r: &Option<Regex>| r.clone().filter(|r| !r.as_str().is_empty());
        Some(Dumps {
            folder,
            text: self.text.unwrap_or(!others),
            proto: on(self.proto),
            dot: on(self.dot),
            html: on(self.html),
            snapshots: on(self.snapshots),
            elide: self.large_constants == Some(false),
            modules: given(&self.modules),
            passes: given(&self.passes),
        })
    }
}

/// The flags alone, for a program whose other flags are not read by clap.
#[derive(Parser, Debug)]
#[command(name = "run_hlo_module", disable_help_flag = true)]
struct Alone {
    #[command(flatten)]
    dump: DumpOptions,
}

/// Whether a dump flag of this name is known, and if so whether it is a switch.
pub(crate) fn flag(name: &str) -> Option<bool> {
    let command = Alone::command();
    let arg = command.get_arguments().find(|a| a.get_long() == Some(name))?;
    Some(arg.is_require_equals_set())
}

/// The dumps of flags written `--NAME=VALUE`. Errors: a value that makes no sense.
pub(crate) fn of_flags(flags: &[String]) -> Result<Option<Dumps>, Failure> {
    let parsed =
        Alone::try_parse_from(std::iter::once("run_hlo_module").chain(flags.iter().map(String::as_str)));
    let parsed =
        parsed.map_err(|e| Failure::usage(e.to_string().trim_start_matches("error: ").to_owned()))?;
    Ok(parsed.dump.dumps())
}
