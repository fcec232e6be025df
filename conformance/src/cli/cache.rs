//! `hlo cache`: looks after a folder of compiled programs (`hlo run --cache DIR`).

use std::path::PathBuf;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use hlo_client::{DiskCache, Verdict};
use serde::Serialize;

use super::ui::Ui;
use hlo_system::exit::{Exit, Failure};
use hlo_triage::report::{self, parse_bytes};

/// Options of `hlo cache`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hlo run module.hlo --cache ~/.cache/hlo      compiles, or takes it from there\n  hlo cache ls ~/.cache/hlo\n  hlo cache gc ~/.cache/hlo --limit 500MiB"
)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// List its programs, the least recently used first
    Ls(Folder),
    /// Read every program, and say which are damaged or not ours
    Verify(Folder),
    /// Remove what was not used for longest, beyond a limit
    Gc {
        #[command(flatten)]
        folder: Folder,
        /// What may stay
        #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = parse_bytes)]
        limit: u64,
    },
}

#[derive(Args, Debug)]
struct Folder {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Serialize)]
struct EntryObject {
    key: String,
    bytes: u64,
    unused_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct GarbageObject {
    removed: u64,
    bytes: u64,
}

/// Digits of a key that are shown.
const SHOWN_DIGITS: usize = 16;

impl Folder {
    fn open(&self, limit: Option<u64>) -> Result<DiskCache, Failure> {
        if !self.folder.is_dir() {
            return Err(Failure::usage(format!("{}: is no folder", self.folder.display())));
        }
        Ok(DiskCache::open(&self.folder, limit)?)
    }
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    match &options.what {
        What::Ls(folder) => {
            let entries = folder.open(None)?.entries();
            let total: u64 = entries.iter().map(|e| e.bytes).sum();
            for entry in &entries {
                show(ui, entry, None);
            }
            if !ui.json {
                ui.line(format!("{} programs, {}", entries.len(), report::bytes(total)));
            }
            Ok(Exit::Ok)
        }
        What::Verify(folder) => {
            let verdicts = folder.open(None)?.verify();
            let bad = verdicts.iter().filter(|(_, v)| matches!(v, Verdict::Refused(_))).count();
            for (entry, verdict) in &verdicts {
                show(ui, entry, Some(verdict));
            }
            if !ui.json {
                ui.line(format!("{} programs, {bad} not to be used", verdicts.len()));
            }
            Ok(if bad == 0 { Exit::Ok } else { Exit::Differs })
        }
        What::Gc { folder, limit } => {
            let (removed, bytes) = folder.open(Some(*limit))?.collect_garbage();
            if ui.json {
                ui.object(&GarbageObject { removed, bytes });
            } else {
                ui.line(format!("removed {removed} programs, {}", report::bytes(bytes)));
            }
            Ok(Exit::Ok)
        }
    }
}

fn show(ui: &Ui, entry: &hlo_client::DiskEntry, verdict: Option<&Verdict>) {
    let unused = SystemTime::now().duration_since(entry.used).unwrap_or_default();
    let (name, error) = match verdict {
        Some(Verdict::Whole(info)) => (Some(info.signature.name.clone()), None),
        Some(Verdict::Refused(why)) => (None, Some(why.clone())),
        None => (None, None),
    };
    let key = entry.key.hex();
    if ui.json {
        let ok = verdict.map(|v| matches!(v, Verdict::Whole(_)));
        let object = EntryObject { key, bytes: entry.bytes, unused_s: unused.as_secs(), ok, name, error };
        ui.object(&object);
        return;
    }
    let mut line = format!(
        "{}  {:>10}  unused for {}",
        &key[..SHOWN_DIGITS],
        report::bytes(entry.bytes),
        report::time(unused)
    );
    if let Some(name) = name {
        line += &format!("  {} {name}", ui.good("ok"));
    }
    if let Some(error) = error {
        line += &format!("  {} {error}", ui.bad("refused"));
    }
    ui.line(line);
}
