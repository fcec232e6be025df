//! Where the lanes of a warp that a branch separated meet again: the immediate post-dominator of the branch
//! (Cooper, Harvey and Kennedy's iteration on the reversed graph of basic blocks).

use crate::ir::{Inst, Op};

/// The branch has no post-dominator but the end of the function.
pub(crate) const NONE: u32 = u32::MAX;

/// Where control goes behind an instruction whose guard holds.
enum Flow<'a> {
    Next,
    Jump(&'a [u32]),
    End,
}

fn flow(op: &Op) -> Flow<'_> {
    if let Op::Bra { target } = op {
        Flow::Jump(std::slice::from_ref(target))
    } else if let Op::BrxIdx { targets, .. } = op {
        Flow::Jump(targets)
    } else if matches!(op, Op::Ret | Op::Exit | Op::Trap) {
        Flow::End
    } else {
        Flow::Next
    }
}

/// For each instruction the index of the instruction where its diverged lanes meet, or [`NONE`].
pub(crate) fn reconvergence(code: &[Inst]) -> Vec<u32> {
    let n = code.len();
    let mut leader = vec![false; n + 1];
    leader[0] = true;
    for (pc, inst) in code.iter().enumerate() {
        let mut mark = |t: u32| leader[(t as usize).min(n)] = true;
        match flow(&inst.op) {
            Flow::Next => {}
            Flow::Jump(targets) => {
                targets.iter().for_each(|&t| mark(t));
                mark(pc as u32 + 1);
            }
            Flow::End => mark(pc as u32 + 1),
        }
    }
    let starts: Vec<usize> = (0..n).filter(|&i| leader[i]).collect();
    let exit = starts.len();
    let mut block_of = vec![exit; n + 1];
    for (b, &start) in starts.iter().enumerate() {
        let end = starts.get(b + 1).copied().unwrap_or(n);
        block_of[start..end].fill(b);
    }
    let successors: Vec<Vec<usize>> = (0..exit)
        .map(|b| {
            let last = starts.get(b + 1).copied().unwrap_or(n) - 1;
            let inst = &code[last];
            let mut next = match flow(&inst.op) {
                Flow::Next => vec![block_of[last + 1]],
                Flow::Jump(targets) => targets.iter().map(|&t| block_of[(t as usize).min(n)]).collect(),
                Flow::End => vec![exit],
            };
            if inst.guard.is_some() {
                next.push(block_of[last + 1]);
            }
            next
        })
        .collect();
    let mut predecessors = vec![Vec::new(); exit + 1];
    for (b, next) in successors.iter().enumerate() {
        for &s in next {
            predecessors[s].push(b);
        }
    }
    // Postorder of the reversed graph from the exit, without recursion.
    let (mut order, mut number) = (Vec::new(), vec![usize::MAX; exit + 1]);
    let (mut seen, mut stack) = (vec![false; exit + 1], vec![(exit, 0)]);
    seen[exit] = true;
    while let Some((b, i)) = stack.pop() {
        if let Some(&p) = predecessors[b].get(i) {
            stack.push((b, i + 1));
            if !seen[p] {
                seen[p] = true;
                stack.push((p, 0));
            }
        } else {
            number[b] = order.len();
            order.push(b);
        }
    }
    let mut ipdom = vec![usize::MAX; exit + 1];
    ipdom[exit] = exit;
    let mut changed = true;
    while changed {
        changed = false;
        for &b in order.iter().rev() {
            if b == exit {
                continue;
            }
            let mut new = usize::MAX;
            for &s in &successors[b] {
                if ipdom[s] == usize::MAX {
                    continue;
                }
                new = if new == usize::MAX { s } else { intersect(&ipdom, &number, s, new) };
            }
            if new != ipdom[b] {
                ipdom[b] = new;
                changed = true;
            }
        }
    }
    let mut out = vec![NONE; n];
    for (b, &meet) in ipdom.iter().enumerate().take(exit) {
        let last = starts.get(b + 1).copied().unwrap_or(n) - 1;
        if meet != usize::MAX && meet != exit {
            out[last] = starts[meet] as u32;
        }
    }
    out
}

fn intersect(ipdom: &[usize], number: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while number[a] < number[b] {
            a = ipdom[a];
        }
        while number[b] < number[a] {
            b = ipdom[b];
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Pred;

    fn bra(target: u32, guarded: bool) -> Inst {
        Inst { op: Op::Bra { target }, guard: guarded.then_some((Pred(0), false)), line: 0 }
    }

    fn nop() -> Inst {
        Inst { op: Op::Nop, guard: None, line: 0 }
    }

    fn ret() -> Inst {
        Inst { op: Op::Ret, guard: None, line: 0 }
    }

    #[test]
    fn diamond_loop_and_early_exit() {
        // 0: @p bra 3; 1: nop; 2: bra 4; 3: nop; 4: ret
        assert_eq!(reconvergence(&[bra(3, true), nop(), bra(4, false), nop(), ret()])[0], 4);
        // 0: nop; 1: @p bra 0; 2: ret
        assert_eq!(reconvergence(&[nop(), bra(0, true), ret()])[1], 2);
        // 0: @p bra 2; 1: ret; 2: ret
        assert_eq!(reconvergence(&[bra(2, true), ret(), ret()])[0], NONE);
        // 0: bra 0, from which no end is reached.
        assert_eq!(reconvergence(&[bra(0, false), ret()])[0], NONE);
    }
}
