//! The buffer assignment as text: the line of events, and for each allocation the values in it with their
//! offsets and lifetimes.

use std::fmt::Write;

use hlo::Module;

use super::order::Event;
use super::values::{Origin, ValueId};
use super::{AllocationKind, Assigned, Slice, live};

/// The report. Times are positions in the line of events at its end: `3..7` is from event 3 to event 6.
pub fn report(module: &Module, assigned: &Assigned) -> String {
    let mut out = String::new();
    let a = &assigned.assignment;
    let sum = |wanted: fn(AllocationKind) -> bool| -> u64 {
        a.allocations.iter().filter(|a| wanted(a.kind)).map(|a| a.bytes).sum()
    };
    let _ = writeln!(out, "Buffers of {}", module.name);
    let rows = [
        ("parameters", sum(|k| matches!(k, AllocationKind::Parameter { .. }))),
        ("of these donated", sum(|k| matches!(k, AllocationKind::Parameter { donated: true, .. }))),
        ("constants", sum(|k| matches!(k, AllocationKind::Constant { .. }))),
        ("results", sum(|k| matches!(k, AllocationKind::Result { .. }))),
        ("temporaries", sum(|k| k == AllocationKind::Arena)),
        ("peak", a.peak_bytes),
        ("lower bound", a.lower_bound_bytes),
    ];
    for (name, bytes) in rows {
        let _ = writeln!(out, "  {name:18} {bytes:>14} bytes");
    }
    let placed = placed(module, assigned);
    for (number, allocation) in a.allocations.iter().enumerate() {
        let _ = writeln!(out, "\n{}, {} bytes", title(assigned, number as u32), allocation.bytes);
        let first = placed.partition_point(|p| (p.allocation as usize) < number);
        for p in placed[first..].iter().take_while(|p| p.allocation as usize == number) {
            let alive = format!("{}..{}", p.from, p.to);
            let _ = writeln!(out, "  {:>12} {:>12}  {alive:>15}  {}", p.offset, p.bytes, p.name);
        }
    }
    let _ = writeln!(out, "\nresults");
    for (leaf, &slice) in a.results.iter().enumerate() {
        let _ = writeln!(out, "  {leaf}: {}", location(assigned, slice));
    }
    let _ = writeln!(out, "\nevents");
    for (position, &event) in assigned.order.events.iter().enumerate() {
        let name = |id: hlo::InstrId| &module.instr(id).name;
        let what = match event {
            Event::Do(id) if assigned.is_name(module, id) => continue,
            Event::Do(id) => format!("{} {}", module.instr(id).opcode, name(id)),
            Event::EnterWhile(id) => format!("while {}", name(id)),
            Event::Decide(id) => format!("while {}: decide", name(id)),
            Event::Repeat(id) => format!("while {}: repeat", name(id)),
            Event::EnterConditional(id) => format!("conditional {}", name(id)),
            Event::LeaveBranch(id, n) => format!("conditional {}: end of branch {n}", name(id)),
            Event::LeaveConditional(id) => format!("conditional {}: end", name(id)),
            Event::EnterCall(id) => format!("call {}", name(id)),
            Event::LeaveCall(id) => format!("call {}: end", name(id)),
            Event::End => "end".to_owned(),
        };
        let loops = "  ".repeat((assigned.order.loops[position] as usize).min(20));
        let _ = writeln!(out, "  {position:>8}  {loops}{what}");
        let Some(when) = event.copies() else { continue };
        for copy in assigned.copies(when) {
            let (from, to) = (location(assigned, copy.from), location(assigned, copy.to));
            let _ = writeln!(out, "            {loops}copy of {} bytes: {from} to {to}", copy.to.bytes);
        }
    }
    out
}

/// Something with a location: a value or scratch memory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Placed {
    /// Its allocation.
    pub allocation: u32,
    /// Its offset in bytes.
    pub offset: u64,
    /// The event that defines it.
    pub from: u32,
    /// The first event after its last use.
    pub to: u32,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its name for people.
    pub name: String,
}

/// Everything with a location, in order of that; events are positions in the line that [`report`] ends with.
pub fn placed(module: &Module, assigned: &Assigned) -> Vec<Placed> {
    let mut all: Vec<Placed> = Vec::new();
    let mut add = |slice: Slice, from: u32, to: u32, name: String| {
        let Slice { allocation, offset, bytes } = slice;
        if bytes > 0 {
            all.push(Placed { allocation, offset, from, to, bytes, name });
        }
    };
    let lives = live::spans(module, &assigned.order, &assigned.values);
    let mut leaf = 0;
    for value in 0..assigned.values.all.len() as ValueId {
        let v = assigned.values.get(value);
        let first = value == 0 || assigned.values.get(value - 1).instr != v.instr;
        leaf = if first { 0 } else { leaf + 1 };
        if assigned.values.resolve(value) != value {
            continue;
        }
        let instr = module.instr(v.instr);
        let part = if instr.shape.as_tuple().is_some() { format!("#{leaf}") } else { String::new() };
        let given = matches!(v.origin, Origin::Parameter(_) | Origin::Constant(_));
        for &(from, to) in &lives[value as usize] {
            let to = if given { assigned.order.events.len() as u32 } else { to.div_ceil(2) };
            add(assigned.slice(value), from / 2, to, format!("{}{part}", instr.name));
        }
    }
    for (position, &event) in assigned.order.events.iter().enumerate() {
        if let Event::Do(id) = event
            && let Some(slice) = assigned.scratch_of(id)
        {
            let position = position as u32;
            add(slice, position, position + 1, format!("scratch of {}", module.instr(id).name));
        }
    }
    all.sort_unstable();
    all
}

/// The purpose of an allocation.
pub fn title(assigned: &Assigned, allocation: u32) -> String {
    match assigned.assignment.allocations.get(allocation as usize).map(|a| a.kind) {
        Some(AllocationKind::Parameter { leaf, donated }) => {
            format!("parameter leaf {leaf}{}", if donated { ", donated" } else { "" })
        }
        Some(AllocationKind::Constant { index }) => format!("constant {index}"),
        Some(AllocationKind::Result { leaf }) => format!("result leaf {leaf}"),
        Some(AllocationKind::Arena) => "temporaries".to_owned(),
        Some(AllocationKind::Frame) => "frame, not counted".to_owned(),
        None => "nothing".to_owned(),
    }
}

fn location(assigned: &Assigned, slice: Slice) -> String {
    let title = title(assigned, slice.allocation);
    if slice.offset == 0 { title } else { format!("{title} + {}", slice.offset) }
}
