//! What `hlo run` compares results with, and how.

use hlo::{ArrayLiteral, Diagnostic};
use hlo_interp::Devices;

use super::Runner;
use hlo_engines::engine::recorded::{read_results, result_arrays};
use hlo_engines::engine::{Inputs, RunOptions};
use hlo_engines::frontend::Program;
use hlo_system::exit::{Exit, Failure};
use hlo_system::npz::Npz;
use hlo_triage::check::Check;
use hlo_triage::feeds::Feeds;

/// The expectation of results.
pub(super) struct Expected {
    pub(super) from: String,
    /// For each device.
    pub(super) arrays: Vec<Vec<ArrayLiteral>>,
    /// One for each result of a device.
    pub(super) checks: Vec<Check>,
}

impl Runner<'_> {
    /// The expectation: recorded results, or those of the reference.
    pub(super) fn expected(
        &self,
        program: &Program,
        arguments: &[Vec<ArrayLiteral>],
        feeds: &Feeds,
        run: &RunOptions,
    ) -> Result<Result<Option<Expected>, (Exit, Diagnostic)>, Failure> {
        let module = &program.module;
        if let Some(path) = &self.job.expected {
            let checks = match &self.job.case {
                Some(c) if !self.tolerance_given() => {
                    c.info.results.iter().map(|r| r.check.clone()).collect()
                }
                _ => result_arrays(module).iter().map(|s| self.check_for(s.element_type)).collect::<Vec<_>>(),
            };
            let arrays = match &self.job.case {
                Some(c) if self.options.expected.is_none() => {
                    c.expected(self.options.limits.memory_limit, run.devices)?
                }
                _ => {
                    let mut npz = Npz::open(path, self.options.limits.memory_limit)?;
                    read_results(module, &mut npz, run.devices)?
                }
            };
            if let Some(wrong) = arrays.iter().find(|a| a.len() != checks.len()) {
                return Err(Failure::usage(format!(
                    "the case has {} checks for {} results",
                    checks.len(),
                    wrong.len()
                )));
            }
            return Ok(Ok(Some(Expected { from: path.clone(), arrays, checks })));
        }
        if let Some(arrays) = self.recorded_result(program, run.devices) {
            let shapes = result_arrays(module);
            let fit = arrays[0].len() == shapes.len()
                && arrays[0].iter().zip(&shapes).all(|(a, s)| a.shape().same_dims(s));
            if !fit {
                return Err(Failure::usage("the snapshot's result does not fit the program"));
            }
            let checks = shapes.iter().map(|s| self.check_for(s.element_type)).collect();
            return Ok(Ok(Some(Expected { from: "the snapshot's result".into(), arrays, checks })));
        }
        let Some(reference) = self.reference else { return Ok(Ok(None)) };
        let inputs = Inputs { host: feeds.host(run.devices)?, ..Inputs::new(module, arguments)? };
        Ok(reference.run(module, inputs, run).into_results().map(|f| {
            let checks = f.results[0].iter().map(|r| self.check_for(r.buffer.element_type())).collect();
            Some(Expected { from: reference.name().to_owned(), arrays: f.results, checks })
        }))
    }

    /// The result that a snapshot recorded on its own arguments, if the run is on these.
    pub(super) fn recorded_result(
        &self,
        program: &Program,
        devices: Devices,
    ) -> Option<Vec<Vec<ArrayLiteral>>> {
        let own = self.job.inputs.is_none() && self.job.finding.is_none();
        program.recorded.as_ref().filter(|_| own)?.result_on(devices)
    }

    pub(super) fn tolerance_given(&self) -> bool {
        let o = self.options;
        o.exact || o.max_ulp.is_some() || o.abs_error_bound.is_some() || o.rel_error_bound.is_some()
    }

    fn check_for(&self, ty: hlo::ElementType) -> Check {
        let o = self.options;
        let real = ty.is_float() || ty.is_complex();
        if o.exact || !real {
            Check::Exact
        } else if let Some(max_ulp) = o.max_ulp {
            Check::Ulp { max_ulp, min_ulp: 0 }
        } else if o.abs_error_bound.is_some() || o.rel_error_bound.is_some() {
            Check::Close { abs: o.abs_error_bound.unwrap_or(1e-3), rel: o.rel_error_bound.unwrap_or(1e-3) }
        } else {
            Check::default_for(ty)
        }
    }
}
