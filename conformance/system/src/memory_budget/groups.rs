//! What the control groups of the process leave it of memory: limits of containers.
//!
//! A process is in one group of each hierarchy: of version 2 there is one hierarchy, of version 1 one for
//! memory; a machine may have both. A limit of any group around it holds too. **Invariants:** every group is
//! looked at from the process's own to the root of what is mounted, which in a container may be a group far
//! from the machine's root; what cannot be read limits nothing.

use std::fs;
use std::path::{Path, PathBuf};

use super::number_after;

/// The files of a version.
struct Files {
    limit: &'static str,
    used: &'static str,
    /// In `memory.stat`: what files take that is given back when it is needed.
    reclaimable: &'static str,
}

static V1: Files = Files {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file ",
};
static V2: Files = Files { limit: "memory.max", used: "memory.current", reclaimable: "inactive_file " };

/// The minimum that a group leaves; `root` is where the file systems of the machine are.
pub(super) fn left(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let lines = groups.lines().filter_map(|line| {
        // `hierarchy:controllers:path`
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let files = match controllers {
            "" => &V2,
            _ if controllers.split(',').any(|c| c == "memory") => &V1,
            _ => return None,
        };
        Some((files, path))
    });
    let mounted = mounts.lines().filter_map(Mount::parse).collect::<Vec<_>>();
    lines
        .flat_map(|(files, path)| mounted.iter().filter_map(move |m| m.files_of(files, path)))
        .flat_map(|(files, top, own)| {
            let (top, own) = (root.join(strip(top)), root.join(strip(&own)));
            let folders: Vec<PathBuf> =
                own.ancestors().take_while(|f| f.starts_with(&top)).map(Path::to_owned).collect();
            folders.into_iter().filter_map(|folder| files.left(&folder))
        })
        .min()
}

fn strip(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

impl Files {
    fn left(&self, folder: &Path) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        // `max` is no number; version 1 writes the largest number of pages.
        let limit: u64 = read(self.limit)?.trim().parse().ok().filter(|&n| n < i64::MAX as u64 / 2)?;
        let used: u64 = read(self.used)?.trim().parse().ok()?;
        let files = read("memory.stat").and_then(|text| number_after(&text, self.reclaimable));
        Some(limit.saturating_sub(used.saturating_sub(files.unwrap_or(0))))
    }
}

/// A hierarchy that is mounted.
struct Mount<'a> {
    /// The group that is seen at `at`.
    root: &'a str,
    at: &'a Path,
    v2: bool,
}

impl<'a> Mount<'a> {
    /// A line of `mountinfo`: `id parent device root at options ... - type source options`.
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, at) = (mount.next()?, Path::new(mount.next()?));
        let mut kind = kind.split(' ');
        let v2 = match kind.next()? {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        let memory = kind.nth(1)?.split(',').any(|option| option == "memory");
        (v2 || memory).then_some(Self { root, at, v2 })
    }

    /// If it is a hierarchy with such files: they, where it is mounted, and where the group of a path is in
    /// it.
    fn files_of(&self, files: &'static Files, path: &str) -> Option<(&'static Files, &'a Path, PathBuf)> {
        if self.v2 != std::ptr::eq(files, &V2) {
            return None;
        }
        // A path that is not below what is mounted is of a container that sees its own group there.
        let below = Path::new(path).strip_prefix(self.root).unwrap_or(Path::new(""));
        let plain = below.components().all(|c| matches!(c, std::path::Component::Normal(_)));
        let own = if plain { self.at.join(below) } else { self.at.to_owned() };
        Some((files, self.at, own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files below a folder that stands for the root.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const V2_MOUNT: &str = "24 1 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn a_limit_of_any_group_around_holds() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/a/b/c\n"),
            ("proc/self/mountinfo", V2_MOUNT),
            ("sys/fs/cgroup/a/memory.max", "1000\n"),
            ("sys/fs/cgroup/a/memory.current", "500\n"),
            ("sys/fs/cgroup/a/memory.stat", "anon 300\ninactive_file 200\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.current", "400\n"),
            ("sys/fs/cgroup/a/b/c/memory.max", "5000\n"),
            ("sys/fs/cgroup/a/b/c/memory.current", "400\n"),
        ]);
        assert_eq!(left(root.path()), Some(700));
    }

    #[test]
    fn version_1_has_a_hierarchy_for_memory() {
        let root = tree(&[
            ("proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/a/b\n0::/\n"),
            (
                "proc/self/mountinfo",
                "30 1 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                 31 1 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "4000\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3000\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n"),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "8000\n"),
            ("sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "100\n"),
        ]);
        assert_eq!(left(root.path()), Some(2500));
    }

    /// A container sees its own group as the root of what is mounted, whatever the path of its group on the
    /// machine.
    #[test]
    fn a_container_sees_its_group_as_the_root() {
        for (path, mount) in [
            ("0::/docker/0a\n", "24 1 0:22 /docker/0a /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"),
            ("0::/docker/0a\n", V2_MOUNT),
            ("0::/../../b\n", V2_MOUNT),
        ] {
            let root = tree(&[
                ("proc/self/cgroup", path),
                ("proc/self/mountinfo", mount),
                ("sys/fs/cgroup/memory.max", "1000\n"),
                ("sys/fs/cgroup/memory.current", "100\n"),
            ]);
            assert_eq!(left(root.path()), Some(900), "{path} {mount}");
        }
    }

    #[test]
    fn without_limits_there_is_none() {
        let root = tree(&[("proc/self/cgroup", "0::/\n"), ("proc/self/mountinfo", V2_MOUNT)]);
        assert_eq!(left(root.path()), None);
        assert_eq!(left(Path::new("/nowhere")), None);
    }
}
