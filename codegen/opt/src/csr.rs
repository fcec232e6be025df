//! Adjacency lists in compressed sparse row (CSR) form.

/// A list of `u32` for each of `n` nodes, in two vectors.
#[derive(Default)]
pub(crate) struct Csr {
    first: Vec<u32>,
    /// All elements, list after list.
    pub(crate) all: Vec<u32>,
}

impl Csr {
    /// No lists yet, with capacity for `n`.
    pub(crate) fn begin(n: usize) -> Csr {
        let mut first = Vec::with_capacity(n + 1);
        first.push(0);
        Csr { first, all: Vec::new() }
    }

    /// Ends the list of the current node.
    pub(crate) fn end(&mut self) {
        self.first.push(self.all.len() as u32);
    }

    /// The list of node `i`.
    pub(crate) fn of(&self, i: u32) -> &[u32] {
        &self.all[self.first[i as usize] as usize..self.first[i as usize + 1] as usize]
    }

    /// From (node, element) pairs; each list keeps their order.
    pub(crate) fn grouped(n: usize, pairs: &[(u32, u32)]) -> Csr {
        let mut first = vec![0u32; n + 1];
        pairs.iter().for_each(|p| first[p.0 as usize + 1] += 1);
        for i in 0..n {
            first[i + 1] += first[i];
        }
        let mut next = first.clone();
        let mut all = vec![0; pairs.len()];
        for &(whose, what) in pairs {
            all[next[whose as usize] as usize] = what;
            next[whose as usize] += 1;
        }
        Csr { first, all }
    }
}
