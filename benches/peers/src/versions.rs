//! Which versions were measured, from the lock file of this very build.

const LOCK: &str = include_str!("../Cargo.lock");

/// The version of a package that this build holds.
#[must_use]
pub fn of(package: &str) -> Option<&'static str> {
    version_in(LOCK, package)
}

/// These packages with their versions, as a list to print.
#[must_use]
pub fn list<'a>(packages: impl IntoIterator<Item = &'a str>) -> String {
    let named = |package| format!("{package} {}", of(package).unwrap_or("unknown"));
    packages.into_iter().map(named).collect::<Vec<_>>().join(", ")
}

fn version_in<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let mut lines = lock.lines();
    lines.find(|line| quoted(line, "name") == Some(package))?;
    quoted(lines.next()?, "version")
}

fn quoted<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_that_of_the_package_itself() {
        let lock = "[[package]]\nname = \"a-b\"\nversion = \"1.2.3\"\n\n\
                    [[package]]\nname = \"a\"\nversion = \"4.5.6\"\ndependencies = [\n \"a-b\",\n]\n";
        assert_eq!(version_in(lock, "a"), Some("4.5.6"));
        assert_eq!(version_in(lock, "c"), None);
    }

    #[test]
    fn every_peer_is_in_the_lock_file() {
        let awaited = crate::awaited::Peer::ALL.map(crate::awaited::Peer::name);
        for peer in crate::subjects::PEERS.into_iter().chain(awaited) {
            assert!(of(peer).is_some(), "{peer}");
        }
    }
}
