//! "Did you mean".

/// The candidate nearest to `word` by edit distance (insert, delete, replace, swap neighbours), if it is near
/// enough to be what was meant: at most a third of the word's length away.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 64 {
        return None;
    }
    let limit = word.len().div_ceil(3).max(1);
    candidates
        .into_iter()
        .map(|c| (distance(word.as_bytes(), c.as_bytes()), c))
        .filter(|&(d, _)| d > 0 && d <= limit)
        .min_by_key(|&(d, _)| d)
        .map(|(_, c)| c)
}

fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<usize>>(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        let [before, last, row] = &mut rows;
        row[0] = i;
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_near_and_refuses_the_far() {
        let names = ["add", "and", "multiply", "convolution"];
        assert_eq!(did_you_mean("mutliply", names), Some("multiply"));
        assert_eq!(did_you_mean("convoluton", names), Some("convolution"));
        assert_eq!(did_you_mean("frobnicate", names), None);
    }
}
