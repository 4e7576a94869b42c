//! How much memory is left.

use std::fs;

/// Memory that is left to this process, if the system says so.
pub fn available() -> Option<usize> {
    let system = system_available(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<usize>().ok();
    // A container may have less than the machine.
    let limits = [
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ];
    let left = limits.into_iter().filter_map(|(most, now)| Some(number(most)?.saturating_sub(number(now)?)));
    Some(left.fold(system, usize::min))
}

/// What `/proc/meminfo` calls available.
fn system_available(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_read_from_the_system() {
        let text = "MemTotal:       24689764 kB\nMemFree:         1000 kB\nMemAvailable:   2048 kB\n";
        assert_eq!(system_available(text), Some(2 << 20));
        assert_eq!(system_available("MemTotal: 1 kB\n"), None);
    }
}
