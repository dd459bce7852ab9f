//! What is to be taken to the letter: addresses, paths, flags, identifiers.
//!
//! To an embedding model `--soft` and `--hard` are nearly one; to a shell they are not.

use std::collections::BTreeSet;

use super::Difference;
use super::align::Alignment;
use super::read::Kind;
use super::rest::Rest;
use super::token::Token;

/// Whether one literal stands for another, or only one of two else equal texts has one.
pub(super) fn difference(alignment: &Alignment<'_>) -> Option<Difference> {
    let alone = |tokens: &[Token], of: &[Option<usize>]| {
        tokens.iter().zip(of).any(|(token, partner)| partner.is_none() && token.kind == Kind::Literal)
    };
    let rest = Rest::beside(alignment, |token| token.kind == Kind::Literal);
    let differ = match (alone(alignment.a, &alignment.of_a), alone(alignment.b, &alignment.of_b)) {
        (true, true) => rest.is_akin(),
        (true, false) | (false, true) => rest.is_same(),
        (false, false) => false,
    };
    differ.then_some(Difference::Code)
}

/// Whether two texts hold the same literals, however often and in whatever order.
pub(super) fn same_literals(a: &[Token], b: &[Token]) -> bool {
    let literals = |tokens: &'_ [Token]| -> BTreeSet<String> {
        tokens.iter().filter(|token| token.kind == Kind::Literal).map(|token| token.text.clone()).collect()
    };
    literals(a) == literals(b)
}

/// Endings that make `name.ending` the name of a site.
const SITES: &[&str] = &[
    "com", "org", "net", "io", "dev", "cn", "edu", "gov", "co", "ai", "app", "in", "uk", "de", "fr", "eu",
    "info", "me", "tv", "biz", "us", "jp", "ru", "br", "ca", "au",
];

/// The literal that a run of characters between spaces is, without what punctuates it.
pub(super) fn literal(chunk: &[char]) -> Option<String> {
    let opens = |c: &&char| matches!(c, '(' | '[' | '{' | '"' | '\'' | '<' | '*');
    let closes =
        |c: &&char| matches!(c, '.' | ',' | ';' | ':' | '?' | '!' | ')' | ']' | '}' | '"' | '\'' | '>' | '*');
    let before = chunk.iter().take_while(opens).count();
    let call = chunk.windows(2).any(|pair| pair == ['(', ')']);
    let after = chunk[before..].iter().rev().take_while(closes).count();
    let inner = &chunk[before..chunk.len() - after];
    if inner.len() < 2 || !inner.iter().any(|c| c.is_alphabetic()) {
        return None;
    }
    let text: String = inner.iter().collect();
    if is_address(&text) || is_mail(&text) {
        let text = text.to_lowercase();
        let text = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
        let text = text.strip_prefix("www.").unwrap_or(text);
        return Some(text.trim_end_matches('/').to_owned());
    }
    if is_path(&text) || is_flag(&text) {
        return Some(text);
    }
    if is_identifier(&text) || call {
        return Some(text.trim_end_matches(['(', ')']).to_lowercase());
    }
    None
}

fn is_address(text: &str) -> bool {
    if text.contains("://") || text.starts_with("www.") {
        return true;
    }
    let host = text.split(['/', '?']).next().unwrap_or_default();
    let Some((name, ending)) = host.rsplit_once('.') else { return false };
    name.len() > 1
        && SITES.contains(&ending.to_lowercase().as_str())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        && !name.ends_with('.')
}

fn is_mail(text: &str) -> bool {
    text.split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && host.contains('.') && !host.contains('@'))
}

/// Absolute and relative paths, and names of files such as `.env` or `main.rs`.
fn is_path(text: &str) -> bool {
    let rooted = ["./", "../", "~/", "C:\\", "D:\\"].iter().any(|root| text.starts_with(root))
        || text.strip_prefix('/').is_some_and(|path| path.contains(['/', '.']));
    let file = text.rsplit_once('.').is_some_and(|(name, ending)| {
        (1..=5).contains(&ending.len())
            && ending.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && ending.bytes().any(|b| b.is_ascii_lowercase())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'/' | b'.'))
            && FILES.contains(&ending)
    });
    rooted || file
}

/// Endings that make `name.ending` the name of a file.
const FILES: &[&str] = &[
    "c", "conf", "cpp", "css", "csv", "dll", "doc", "docx", "env", "exe", "gif", "go", "gz", "h", "html",
    "ini", "iso", "jar", "java", "jpeg", "jpg", "js", "json", "log", "md", "mp3", "mp4", "msi", "pdf", "php",
    "png", "ppt", "pptx", "py", "rar", "rb", "rs", "sh", "so", "sql", "svg", "tar", "toml", "ts", "tsx",
    "txt", "wav", "xls", "xlsx", "xml", "yaml", "yml", "zip",
];

/// `--force`, `-x`.
fn is_flag(text: &str) -> bool {
    let Some(name) = text.strip_prefix('-') else { return false };
    let name = name.strip_prefix('-').unwrap_or(name);
    let long = text.starts_with("--") || name.len() <= 3;
    long && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '=' | '_'))
}

/// `snake_case`, `a::b`, `obj->field`.
fn is_identifier(text: &str) -> bool {
    let plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '-' | '>' | '<' | '&' | '$'));
    plain && (has_inner(text, "_") || has_inner(text, "::") || has_inner(text, "->"))
}

fn has_inner(text: &str, mark: &str) -> bool {
    text.match_indices(mark).any(|(at, _)| {
        let side = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        side(text[..at].chars().next_back()) && side(text[at + mark.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunk: &str) -> Option<String> {
        literal(&chunk.chars().collect::<Vec<_>>())
    }

    #[test]
    fn literals_without_what_punctuates_them() {
        for (chunk, text) in [
            ("https://www.Example.com/a/?", "example.com/a"),
            ("(example.org),", "example.org"),
            ("Ann@Example.com.", "ann@example.com"),
            ("--force", "--force"),
            ("-X", "-X"),
            ("/etc/hosts?", "/etc/hosts"),
            ("\"config.yaml\"", "config.yaml"),
            (".env", ".env"),
            ("user_id", "user_id"),
            ("Vec::push()", "vec::push"),
            ("main()", "main"),
        ] {
            assert_eq!(read(chunk).as_deref(), Some(text), "{chunk}");
        }
    }

    #[test]
    fn words_are_no_literals() {
        for chunk in [
            "and/or",
            "e.g.",
            "3.5",
            "well-known",
            "-",
            "--",
            "U.S.",
            "end.Next",
            "24/7",
            "a",
            "don't",
            "C++",
        ] {
            assert_eq!(read(chunk), None, "{chunk}");
        }
    }
}
