//! Who sits at the keyboard, for the audit trail. No proof: whoever can flip a switch can also write
//! another name.

/// The name of the user of the operating system, if it can be found; behind sudo the one before.
pub(super) fn name() -> Option<String> {
    let variables = ["SUDO_USER", "USER", "LOGNAME", "USERNAME"];
    let named = variables.into_iter().find_map(|variable| sound(&std::env::var(variable).ok()?));
    named.or_else(account)
}

fn sound(name: &str) -> Option<String> {
    Some(name.trim()).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The name of the account that owns this process: containers often set no variable.
#[cfg(unix)]
fn account() -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let id = std::fs::metadata("/proc/self").ok()?.uid();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    Some(named(&accounts, id).unwrap_or_else(|| format!("user {id}")))
}

#[cfg(not(unix))]
fn account() -> Option<String> {
    None
}

/// The name of an account in the text of passwd(5).
#[cfg(unix)]
fn named(accounts: &str, id: u32) -> Option<String> {
    let id = id.to_string();
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| sound(name)).flatten()
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_number() {
        let accounts = "root:x:0:0:root:/root:/bin/bash\n\nbroken\nops:x:1000:1000::/home/ops:/bin/sh\n";
        assert_eq!(named(accounts, 1000).as_deref(), Some("ops"));
        assert_eq!(named(accounts, 0).as_deref(), Some("root"));
        assert_eq!(named(accounts, 100), None);
    }

    #[test]
    fn a_variable_that_holds_nothing_is_no_name() {
        assert_eq!(sound(" ops\n").as_deref(), Some("ops"));
        assert_eq!(sound("  "), None);
    }
}
