//! Which instance of a graph serves which launch: a state machine over plain data, without a device.
//!
//! A line of steps under a key is executed step by step at first, as often as [`Policy::direct_runs`] says: a
//! program that runs once is not worth a graph. Then it becomes an instance. Later launches under the key
//! change the steps that differ (addresses of other buffers) and launch the instance; where the driver
//! refuses a change, the instance is made anew. A key whose instances are refused again and again is executed
//! step by step from then on. At most [`Policy::instances`] instances are kept: the one not used for longest
//! goes.
//!
//! **Invariants:** every launch executes exactly its steps, in their order, whatever is cached; an instance
//! is launched only where every step of it is that of the launch.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// What the driver said to a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Updated {
    /// The instance has the change.
    Accepted,
    /// It cannot be changed in this way; it is as it was before.
    Refused,
}

/// What graphs are made with.
pub trait GraphApi {
    /// A step.
    type Step: Clone;
    /// An instance.
    type Instance;
    /// A failure.
    type Error;

    /// Makes an instance of steps in their order.
    fn instantiate(&mut self, steps: &[Self::Step]) -> Result<Self::Instance, Self::Error>;
    /// Changes the step of an index.
    fn update(
        &mut self,
        instance: &mut Self::Instance,
        index: usize,
        step: &Self::Step,
    ) -> Result<Updated, Self::Error>;
    /// Executes an instance.
    fn launch(&mut self, instance: &mut Self::Instance) -> Result<(), Self::Error>;
    /// Executes steps without an instance.
    fn execute(&mut self, steps: &[Self::Step]) -> Result<(), Self::Error>;
    /// Whether two steps do the same.
    fn same(a: &Self::Step, b: &Self::Step) -> bool;
}

/// When graphs are made and given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Runs under a key without a graph, at first.
    pub direct_runs: u32,
    /// Fewer steps than this are never a graph.
    pub least_steps: usize,
    /// Instances that are kept, at most.
    pub instances: usize,
    /// Refused changes of a key until it is executed without a graph.
    pub refusals: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { direct_runs: 1, least_steps: 2, instances: 32, refusals: 8 }
    }
}

/// The action of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Run {
    /// The steps were executed without a graph.
    Direct,
    /// An instance was made and launched.
    Instantiated,
    /// An instance was launched, with the number of steps that were changed.
    Launched(usize),
    /// A change was refused: the instance was made anew and launched.
    Replaced,
}

struct Entry<A: GraphApi> {
    steps: Vec<A::Step>,
    instance: Option<A::Instance>,
    runs: u32,
    refusals: u32,
    last_use: u64,
}

/// Instances by key.
pub struct Cache<K, A: GraphApi> {
    policy: Policy,
    entries: FxHashMap<K, Entry<A>>,
    clock: u64,
}

impl<K: Clone + Eq + Hash, A: GraphApi> Cache<K, A> {
    /// Nothing cached.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Cache { policy, entries: FxHashMap::default(), clock: 0 }
    }

    /// The number of instances.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.entries.values().filter(|e| e.instance.is_some()).count()
    }

    /// Forgets a key with its instance.
    pub fn forget(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Executes the steps of a key, by an instance where that is worth it.
    ///
    /// # Errors
    /// Those of the graphs. The key is forgotten then.
    pub fn run(&mut self, api: &mut A, key: &K, steps: &[A::Step]) -> Result<Run, A::Error> {
        let done = self.step(api, key, steps);
        if done.is_err() {
            self.entries.remove(key);
        }
        done
    }

    fn step(&mut self, api: &mut A, key: &K, steps: &[A::Step]) -> Result<Run, A::Error> {
        self.clock += 1;
        let (policy, clock) = (self.policy, self.clock);
        let entry = self.entries.entry(key.clone()).or_insert_with(|| Entry {
            steps: Vec::new(),
            instance: None,
            runs: 0,
            refusals: 0,
            last_use: clock,
        });
        entry.last_use = clock;
        let is_direct = entry.runs < policy.direct_runs
            || steps.len() < policy.least_steps
            || entry.refusals > policy.refusals
            || policy.instances == 0;
        entry.runs = entry.runs.saturating_add(1);
        if is_direct {
            // An instance that is given up goes.
            entry.instance = None;
            api.execute(steps)?;
            return Ok(Run::Direct);
        }
        let mut run = Run::Instantiated;
        if let Some(instance) = &mut entry.instance {
            run = Run::Replaced;
            if entry.steps.len() == steps.len() {
                let mut changed = 0;
                let mut is_refused = false;
                for (index, step) in steps.iter().enumerate() {
                    if A::same(&entry.steps[index], step) {
                        continue;
                    }
                    if api.update(instance, index, step)? == Updated::Refused {
                        is_refused = true;
                        break;
                    }
                    entry.steps[index] = step.clone();
                    changed += 1;
                }
                if !is_refused {
                    api.launch(instance)?;
                    return Ok(Run::Launched(changed));
                }
            }
            entry.refusals += 1;
        }
        // The old instance goes first: its memory is the new one's.
        entry.instance = None;
        let mut instance = api.instantiate(steps)?;
        entry.steps = steps.to_vec();
        api.launch(&mut instance)?;
        entry.instance = Some(instance);
        self.evict(key);
        Ok(run)
    }

    /// Drops instances that were not used for longest, until there are as many as may be.
    fn evict(&mut self, keep: &K) {
        while self.instances() > self.policy.instances {
            let others = self.entries.iter().filter(|(k, e)| *k != keep && e.instance.is_some());
            let oldest = others.min_by_key(|(_, e)| e.last_use).map(|(k, _)| k.clone());
            let Some(oldest) = oldest else { return };
            self.entries.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step: kernel and address.
    type Pair = (&'static str, u64);

    /// Graphs that record what is done. Instances are numbers; `nodes` are their steps.
    #[derive(Default)]
    struct Recording {
        log: Vec<String>,
        instances: Vec<Vec<Pair>>,
        /// What was executed, step by step.
        executed: Vec<Pair>,
        refuse: bool,
        fail: bool,
    }

    impl GraphApi for Recording {
        type Step = Pair;
        type Instance = usize;
        type Error = &'static str;

        fn instantiate(&mut self, steps: &[Pair]) -> Result<usize, &'static str> {
            self.log.push("instantiate".to_owned());
            self.instances.push(steps.to_vec());
            Ok(self.instances.len() - 1)
        }

        fn update(
            &mut self,
            instance: &mut usize,
            index: usize,
            step: &Pair,
        ) -> Result<Updated, &'static str> {
            self.log.push(format!("update {index}"));
            // As the driver: the kernel of a node stays.
            if self.refuse || self.instances[*instance][index].0 != step.0 {
                return Ok(Updated::Refused);
            }
            self.instances[*instance][index] = *step;
            Ok(Updated::Accepted)
        }

        fn launch(&mut self, instance: &mut usize) -> Result<(), &'static str> {
            if self.fail {
                return Err("the device is broken");
            }
            self.log.push(format!("launch {instance}"));
            let steps = self.instances[*instance].clone();
            self.executed.extend(steps);
            Ok(())
        }

        fn execute(&mut self, steps: &[Pair]) -> Result<(), &'static str> {
            self.log.push("execute".to_owned());
            self.executed.extend(steps);
            Ok(())
        }

        fn same(a: &Pair, b: &Pair) -> bool {
            a == b
        }
    }

    fn cache(policy: Policy) -> (Cache<u32, Recording>, Recording) {
        (Cache::new(policy), Recording::default())
    }

    #[test]
    fn the_second_run_makes_an_instance_and_the_third_uses_it() {
        let (mut cache, mut api) = cache(Policy::default());
        let steps = [("a", 1), ("b", 2)];
        let runs: Vec<Run> = (0..4).map(|_| cache.run(&mut api, &7, &steps).unwrap()).collect();
        assert_eq!(runs, [Run::Direct, Run::Instantiated, Run::Launched(0), Run::Launched(0)]);
        assert_eq!(api.log, ["execute", "instantiate", "launch 0", "launch 0", "launch 0"]);
        assert_eq!(api.executed, steps.repeat(4));
    }

    #[test]
    fn other_addresses_change_the_nodes_that_have_them() {
        let (mut cache, mut api) = cache(Policy { direct_runs: 0, ..Policy::default() });
        cache.run(&mut api, &7, &[("a", 1), ("b", 2), ("c", 3)]).unwrap();
        assert_eq!(cache.run(&mut api, &7, &[("a", 1), ("b", 9), ("c", 3)]), Ok(Run::Launched(1)));
        assert_eq!(api.log[2..], ["update 1", "launch 0"]);
        // The next run compares with what the instance has now.
        assert_eq!(cache.run(&mut api, &7, &[("a", 1), ("b", 9), ("c", 3)]), Ok(Run::Launched(0)));
        assert_eq!(api.executed[6..], [("a", 1), ("b", 9), ("c", 3)]);
    }

    #[test]
    fn a_refused_change_makes_the_instance_anew() {
        let (mut cache, mut api) = cache(Policy { direct_runs: 0, ..Policy::default() });
        cache.run(&mut api, &7, &[("a", 1), ("b", 2)]).unwrap();
        // The first change is accepted, the second is of another kernel: nothing of the half-changed instance
        // is launched.
        assert_eq!(cache.run(&mut api, &7, &[("a", 5), ("z", 2)]), Ok(Run::Replaced));
        assert_eq!(api.log[2..], ["update 0", "update 1", "instantiate", "launch 1"]);
        assert_eq!(cache.run(&mut api, &7, &[("a", 5), ("z", 2)]), Ok(Run::Launched(0)));
        // Other numbers of steps are no change at all.
        assert_eq!(cache.run(&mut api, &7, &[("a", 5), ("z", 2), ("c", 1)]), Ok(Run::Replaced));
        assert_eq!(api.executed[2..], [("a", 5), ("z", 2), ("a", 5), ("z", 2), ("a", 5), ("z", 2), ("c", 1)]);
        assert_eq!(cache.instances(), 1);
    }

    #[test]
    fn a_key_that_is_refused_again_and_again_runs_without_a_graph() {
        let (mut cache, mut api) = cache(Policy { direct_runs: 0, refusals: 2, ..Policy::default() });
        api.refuse = true;
        let runs: Vec<Run> =
            (0..6).map(|i| cache.run(&mut api, &7, &[("a", i), ("b", i)]).unwrap()).collect();
        let [first, rest @ ..] = &runs[..] else { panic!() };
        assert_eq!(*first, Run::Instantiated);
        assert_eq!(rest, [Run::Replaced, Run::Replaced, Run::Replaced, Run::Direct, Run::Direct]);
        assert_eq!(cache.instances(), 0);
        let want: Vec<Pair> = (0..6).flat_map(|i| [("a", i), ("b", i)]).collect();
        assert_eq!(api.executed, want);
    }

    #[test]
    fn few_steps_are_no_graph_and_old_instances_go() {
        let (mut cache, mut api) = cache(Policy { direct_runs: 0, instances: 2, ..Policy::default() });
        assert_eq!(cache.run(&mut api, &0, &[("a", 1)]), Ok(Run::Direct));
        let steps = [("a", 1), ("b", 2)];
        for key in [1, 2, 1, 3] {
            cache.run(&mut api, &key, &steps).unwrap();
        }
        assert_eq!(cache.instances(), 2);
        assert_eq!(cache.run(&mut api, &1, &steps), Ok(Run::Launched(0)));
        assert_eq!(cache.run(&mut api, &2, &steps), Ok(Run::Instantiated));
    }

    #[test]
    fn a_failure_forgets_the_key() {
        let (mut cache, mut api) = cache(Policy { direct_runs: 0, ..Policy::default() });
        let steps = [("a", 1), ("b", 2)];
        cache.run(&mut api, &7, &steps).unwrap();
        api.fail = true;
        assert_eq!(cache.run(&mut api, &7, &steps), Err("the device is broken"));
        assert_eq!(cache.instances(), 0);
    }
}
