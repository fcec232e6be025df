//! Cases: folders of a program, its inputs and its recorded results.
//!
//! `module.hlo`, `inputs.npz` (`arg0, arg1, ...`), `expected.npz` (`out0, out1, ...`), `case.json`, and
//! perhaps `optimized.hlo` (another form of the same program: same inputs, same results). A case of several
//! devices has `replicas` and `partitions`.

use std::path::{Path, PathBuf};

use hlo::{ArrayLiteral, ArrayShape, ElementType};
use hlo_interp::Devices;
use serde::Deserialize;

use crate::check::Check;
use hlo_engines::engine::array_name;
use hlo_engines::engine::recorded::has_only_results;
use hlo_system::exit::Failure;
use hlo_system::files::{describe, read_beside};
use hlo_system::npz::Npz;

/// The type and dimensions of an array.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct ArrayInfo {
    /// Name of the element type.
    #[serde(rename = "type")]
    pub element_type: String,
    /// Dimensions.
    pub shape: Vec<i64>,
}

impl ArrayInfo {
    fn array_shape(&self) -> Option<ArrayShape> {
        Some(ArrayShape::new(ElementType::from_name(&self.element_type)?, &self.shape))
    }
}

/// A result and how it is checked.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct ResultInfo {
    /// Type and dimensions.
    #[serde(flatten)]
    pub array: ArrayInfo,
    /// The check.
    pub check: Check,
}

/// A `case.json`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct CaseInfo {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Number of replicas.
    #[serde(default = "one")]
    pub replicas: u32,
    /// Number of partitions.
    #[serde(default = "one")]
    pub partitions: u32,
    /// Inputs.
    pub params: Vec<ArrayInfo>,
    /// Results.
    pub results: Vec<ResultInfo>,
}

fn one() -> u32 {
    1
}

/// Which form of a case's program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, clap::ValueEnum)]
pub enum Form {
    /// `module.hlo`.
    Module,
    /// `optimized.hlo`, where there is one.
    Optimized,
    /// Both.
    Both,
}

/// A case on disk.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The folder.
    pub folder: PathBuf,
    /// The contents of `case.json`.
    pub info: CaseInfo,
}

impl Case {
    /// Whether a folder is a case.
    pub fn is_at(folder: &Path) -> bool {
        folder.join("case.json").is_file()
    }

    /// Reads the `case.json` of a folder.
    pub fn open(folder: &Path) -> Result<Case, Failure> {
        let path = folder.join("case.json");
        let text = read_beside(&path)
            .map_err(|e| Failure::usage(format!("{}: cannot be read: {}", path.display(), describe(&e))))?;
        let info =
            serde_json::from_str(&text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        Ok(Case { folder: folder.to_owned(), info })
    }

    /// The program of a form; `None` if the case does not have it.
    pub fn program(&self, optimized: bool) -> Option<PathBuf> {
        let path = self.folder.join(if optimized { "optimized.hlo" } else { "module.hlo" });
        path.is_file().then_some(path)
    }

    /// The devices that it is made for. Errors: none, or too many.
    pub fn devices(&self) -> Result<Devices, Failure> {
        let (replicas, partitions) = (self.info.replicas, self.info.partitions);
        Devices::new(replicas.into(), partitions.into()).ok_or_else(|| {
            let at = self.folder.join("case.json");
            Failure::usage(format!(
                "{}: there are no runs of {replicas} replicas of {partitions} partitions",
                at.display()
            ))
        })
    }

    /// For each device the recorded results.
    pub fn expected(&self, limit: u64, devices: Devices) -> Result<Vec<Vec<ArrayLiteral>>, Failure> {
        let mut npz = Npz::open(self.folder.join("expected.npz"), limit)?;
        let count = devices.count() as usize;
        let all = (0..count).map(|device| self.expected_of(&mut npz, count, device));
        let all = all.collect::<Result<Vec<_>, _>>()?;
        has_only_results(&npz, count, self.info.results.len())?;
        Ok(all)
    }

    fn expected_of(
        &self,
        npz: &mut Npz,
        devices: usize,
        device: usize,
    ) -> Result<Vec<ArrayLiteral>, Failure> {
        let shape = |(i, r): (usize, &ResultInfo)| {
            r.array.array_shape().ok_or_else(|| {
                let at = self.folder.join("case.json");
                Failure::usage(format!(
                    "{}: result {i}: there is no element type {}",
                    at.display(),
                    r.array.element_type
                ))
            })
        };
        let shapes = self.info.results.iter().enumerate().map(shape).collect::<Result<Vec<_>, _>>()?;
        let name = |i| array_name(devices, device, "out", i);
        npz.arrays(shapes.iter().enumerate().map(|(i, shape)| (name(i), shape)))
    }

    /// `inputs.npz`, open.
    pub fn inputs(&self, limit: u64) -> Result<Npz, Failure> {
        Npz::open(self.folder.join("inputs.npz"), limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_corpus_writes() {
        let info: CaseInfo = serde_json::from_str(
            r#"{"name": "n", "source": "s", "note": "x", "replicas": 2, "partitions": 2,
                "params": [{"type": "f32", "shape": [4]}],
                "results": [{"type": "f32", "shape": [8], "check": {"kind": "exact"}}]}"#,
        )
        .unwrap();
        assert_eq!((info.replicas, info.partitions), (2, 2));
        assert_eq!(info.params[0].shape, [4]);
        assert_eq!(info.results[0].check, Check::Exact);
        let single: CaseInfo = serde_json::from_str(r#"{"params": [], "results": []}"#).unwrap();
        assert_eq!(single.replicas, 1);
    }
}
