//! `hlo client-bench`: what it costs to call the runtime (docs/client.md), beside PJRT plugins.

use std::time::{Duration, Instant};

use clap::Args;
use hlo::{ArrayLiteral, Literal};
use hlo_client::chain::{ChainInput, ChainOperation, ChainOutput, ChainStep};
use hlo_client::handles::Handles;
use hlo_client::{CacheMode, Client, ClientOptions, CompileOptions, ExecuteOptions};
use hlo_pjrt_host::{Client as PluginClient, Dispatch, Plugin};
use serde::Serialize;

use super::ui::Ui;
use hlo_system::exit::{Exit, Failure};
use hlo_system::scratch::Scratch;

/// Options of `hlo client-bench`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  hlo client-bench\n  hlo client-bench --plugin pjrt_c_api_cpu_plugin.so     beside XLA:CPU's plugin, in turns\n\nSmall numbers: build with --release, and leave the machine alone."
)]
pub(crate) struct Options {
    /// A PJRT plugin to measure beside it; may be given again
    #[arg(long, value_name = "PLUGIN.so")]
    plugin: Vec<String>,
    /// Executions in a round
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    executions: u32,
    /// Steps of a chain, each of which takes what the one before it left
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    steps: u32,
    /// Rounds, of which the best and the median are said
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
}

const ADD: &str =
    "HloModule add\nENTRY e { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }";

/// Times of rounds, each divided by what a round does.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn add(&mut self, time: Duration, count: u32) {
        self.0.push(time.as_secs_f64() * 1e9 / f64::from(count));
    }

    /// The best and the median.
    fn said(&mut self) -> (f64, f64) {
        self.0.sort_by(f64::total_cmp);
        match self.0.first() {
            Some(best) => (*best, self.0[self.0.len() / 2]),
            None => (0.0, 0.0),
        }
    }
}

#[derive(Serialize)]
struct Object<'a> {
    runtime: &'a str,
    what: &'a str,
    best_ns: f64,
    median_ns: f64,
}

fn say(ui: &Ui, runtime: &str, what: &str, mut times: Times) {
    let (best_ns, median_ns) = times.said();
    if ui.json {
        ui.object(&Object { runtime, what, best_ns, median_ns });
    } else {
        ui.line(format!("{what:<34} {best_ns:>12.0} {median_ns:>12.0}  {runtime}"));
    }
}

fn scalar(value: f32) -> ArrayLiteral {
    let array = ArrayLiteral::new([].as_slice().into(), hlo::Buffer::F32(vec![value]));
    array.expect("invariant: a scalar has one element")
}

/// The measurements of one runtime.
trait Runtime {
    fn name(&self) -> String;
    /// Executes the addition that many times, and waits each time.
    fn dispatch(&mut self, executions: u32) -> Result<(), Failure>;
    /// Adds that many times to what was there before.
    fn chain(&mut self) -> Result<(), Failure>;
}

struct Ours<'h> {
    executable: hlo_client::Executable,
    arguments: [hlo_client::Buffer; 2],
    handles: &'h Handles,
    chain: hlo_client::chain::Chain<'h>,
}

impl<'h> Ours<'h> {
    fn new(client: &Client, handles: &'h Handles, steps: u32) -> Result<Self, Failure> {
        let program = client.parse(ADD)?;
        let executable = client.compile(&program, &CompileOptions::default())?;
        let arguments = [client.buffer(&scalar(1.0))?, client.buffer(&scalar(2.0))?];
        let one = handles.allocate(&Literal::Array(scalar(1.0)))?;
        let program = handles.compile(&program, &CompileOptions::default())?;
        let mut plan = vec![ChainStep { operation: ChainOperation::Data(one), outputs: Vec::new() }];
        for step in 0..steps as usize {
            let input = |step| ChainInput { step, output: 0 };
            let operation = ChainOperation::Execute { program, inputs: vec![input(step), input(0)] };
            plan.push(ChainStep { operation, outputs: Vec::new() });
        }
        plan[steps as usize].outputs.push(ChainOutput { output: 0, result: 0 });
        Ok(Self { executable, arguments, handles, chain: handles.chain(&plan)? })
    }
}

impl Runtime for Ours<'_> {
    fn name(&self) -> String {
        "hlo".to_owned()
    }

    fn dispatch(&mut self, executions: u32) -> Result<(), Failure> {
        let options = ExecuteOptions::default();
        let mut results = Vec::with_capacity(1);
        for _ in 0..executions {
            results.clear();
            self.executable.execute_into(
                &[&self.arguments[0], &self.arguments[1]],
                &options,
                &mut results,
            )?;
        }
        Ok(())
    }

    fn chain(&mut self) -> Result<(), Failure> {
        for handle in self.chain.run(&ExecuteOptions::default())? {
            self.handles.release(handle)?;
        }
        Ok(())
    }
}

struct Theirs<'p> {
    name: String,
    dispatch: Dispatch<'p>,
    steps: u32,
}

/// A plugin's error as a failure.
fn of_plugin(failure: hlo_pjrt_host::Failure) -> Failure {
    Failure::usage(format!("--plugin: {}", failure.message))
}

impl Runtime for Theirs<'_> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn dispatch(&mut self, executions: u32) -> Result<(), Failure> {
        (0..executions).try_for_each(|_| self.dispatch.run(1)).map_err(of_plugin)
    }

    fn chain(&mut self) -> Result<(), Failure> {
        self.dispatch.run(self.steps as usize).map_err(of_plugin)
    }
}

/// The time of compiling: the first time, from the cache in memory, and from a folder by a new client.
fn cache(options: &Options, ui: &Ui) -> Result<(), Failure> {
    let folder = Scratch::new().map_err(|e| Failure::usage(format!("there is no temporary folder: {e}")))?;
    let client = |folder: Option<&std::path::Path>| {
        Client::cpu(ClientOptions { cache_directory: folder.map(Into::into), ..ClientOptions::default() })
    };
    let [mut cold, mut warm, mut loaded] = [(); 3].map(|()| Times::default());
    let keeping = client(Some(folder.path()))?;
    let program = keeping.parse(ADD)?;
    keeping.compile(&program, &CompileOptions::default())?;
    for _ in 0..options.rounds {
        let start = Instant::now();
        keeping.compile(&program, &CompileOptions { mode: CacheMode::Off, ..CompileOptions::default() })?;
        cold.add(start.elapsed(), 1);
        let start = Instant::now();
        keeping.compile(&program, &CompileOptions::default())?;
        warm.add(start.elapsed(), 1);
        let another = client(Some(folder.path()))?;
        let start = Instant::now();
        another.compile(&program, &CompileOptions::default())?;
        loaded.add(start.elapsed(), 1);
    }
    say(ui, "hlo", "compile", cold);
    say(ui, "hlo", "compile, found in memory", warm);
    say(ui, "hlo", "compile, found on disk", loaded);
    Ok(())
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let client = Client::cpu(ClientOptions::default())?;
    let handles = Handles::new(&client, 0, 1);
    let mut executables = Vec::new();
    for path in &options.plugin {
        let plugin = Plugin::load(path).map_err(of_plugin)?;
        let theirs = PluginClient::new(plugin).map_err(of_plugin)?;
        let platform = theirs.platform();
        let name =
            format!("{path} ({} {})", platform.name, platform.version.lines().next().unwrap_or_default());
        let module = client.parse(ADD)?;
        executables.push((name, theirs.compile_hlo(module.module(), false).map_err(of_plugin)?));
    }
    let mut runtimes: Vec<Box<dyn Runtime + '_>> =
        vec![Box::new(Ours::new(&client, &handles, options.steps)?)];
    for (name, executable) in &executables {
        let dispatch = Dispatch::new(executable, &[&scalar(1.0), &scalar(2.0)]).map_err(of_plugin)?;
        runtimes.push(Box::new(Theirs { name: name.clone(), dispatch, steps: options.steps }));
    }
    if !ui.json {
        ui.line(format!("{:<34} {:>12} {:>12}", "nanoseconds of one", "best", "median"));
    }
    // Interleaved, so that other load of the machine affects all alike.
    let mut times: Vec<(Times, Times)> = runtimes.iter().map(|_| Default::default()).collect();
    for _ in 0..options.rounds {
        for (runtime, (dispatch, chain)) in runtimes.iter_mut().zip(&mut times) {
            let start = Instant::now();
            runtime.dispatch(options.executions)?;
            dispatch.add(start.elapsed(), options.executions);
            let start = Instant::now();
            runtime.chain()?;
            chain.add(start.elapsed(), options.steps);
        }
    }
    for (runtime, (dispatch, chain)) in runtimes.iter().zip(times) {
        say(ui, &runtime.name(), "addition of scalars", dispatch);
        say(ui, &runtime.name(), "step of a chain of additions", chain);
    }
    cache(options, ui)?;
    Ok(Exit::Ok)
}
