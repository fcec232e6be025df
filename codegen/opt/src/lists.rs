//! Many short lists in two vectors.

/// A list for each of many.
#[derive(Default)]
pub(crate) struct Lists {
    first: Vec<u32>,
    /// All elements, list after list.
    pub(crate) all: Vec<u32>,
}

impl Lists {
    /// None yet, with room for so many.
    pub(crate) fn begin(n: usize) -> Lists {
        let mut first = Vec::with_capacity(n + 1);
        first.push(0);
        Lists { first, all: Vec::new() }
    }

    /// Ends the list of the next one.
    pub(crate) fn end(&mut self) {
        self.first.push(self.all.len() as u32);
    }

    /// The list of one.
    pub(crate) fn of(&self, i: u32) -> &[u32] {
        &self.all[self.first[i as usize] as usize..self.first[i as usize + 1] as usize]
    }

    /// From pairs (whose, what), in their order.
    pub(crate) fn grouped(n: usize, pairs: &[(u32, u32)]) -> Lists {
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
        Lists { first, all }
    }
}
