//! A name for a complaint that nobody has seen before.
//!
//! The log must say that a provider speaks of something new, and whether it is the same new thing
//! as yesterday; it must not hold what the provider says, which may quote the caller.

use std::fmt;

use sha2::{Digest, Sha256};

/// The first six bytes of a SHA-256, shown as hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 6]);

impl Fingerprint {
    /// The fingerprint of a text without its digits, which are limits, counts and ids: the same
    /// complaint about other numbers has the same fingerprint.
    pub(super) fn of<'a>(status: u16, parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hash = Sha256::new_with_prefix(status.to_be_bytes());
        for part in parts {
            for run in part.split(|c: char| c.is_ascii_digit()) {
                hash.update(run);
            }
            hash.update([0]);
        }
        let hash: [u8; 32] = hash.finalize().into();
        let mut first = [0; 6];
        first.copy_from_slice(&hash[..6]);
        Self(first)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_make_no_difference_and_everything_else_does() {
        let print = |status, text| Fingerprint::of(status, [text, "kaputt"]);
        assert_eq!(print(400, "limit 10 of org-7"), print(400, "limit 2000 of org-12"));
        assert_ne!(print(400, "limit 10"), print(400, "quota 10"));
        assert_ne!(print(400, "limit 10"), print(500, "limit 10"));
        assert_ne!(Fingerprint::of(400, ["ab", "c"]), Fingerprint::of(400, ["a", "bc"]));
    }

    #[test]
    fn shows_as_twelve_hex_digits() {
        let shown = Fingerprint::of(400, ["x"]).to_string();
        assert_eq!(shown.len(), 12);
        assert!(shown.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
