//! Is it the same word in another form?
//!
//! Plurals, tenses and spellings of either side of the ocean change no question. A stemmer that
//! cuts words down makes new clashes (caring and cars); so each word keeps all the base forms it
//! may have, and two words are one when they share a form.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A line for each word whose forms its ending does not tell.
const IRREGULAR: &str = include_str!("lexicon/irregular.txt");

static BASES: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut bases: HashMap<_, Vec<_>> = HashMap::new();
    for line in IRREGULAR.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let base = words.next().unwrap_or_default();
        for word in words {
            bases.entry(word).or_default().push(base);
        }
    }
    bases
});

/// Words that end like a plural and are none.
const NO_PLURALS: &[&str] = &["always", "news", "perhaps", "series", "species", "does", "lens"];

/// What a word may be a form of, itself first.
pub(super) type Forms = Vec<String>;

/// The forms that an English word (in small letters) may be an inflection of, itself first.
pub(super) fn bases(word: &str) -> Forms {
    let mut bases = vec![word.to_owned()];
    if let Some(listed) = BASES.get(word) {
        bases.extend(listed.iter().map(|base| (*base).to_owned()));
        return bases;
    }
    if word.len() < 4 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return bases;
    }
    bases.extend(singular(word));
    let endings: Vec<String> = bases.iter().flat_map(|form| without_ending(form)).collect();
    bases.extend(endings);
    let american: Vec<String> = bases.iter().filter_map(|form| in_american(form)).collect();
    bases.extend(american);
    bases
}

fn singular(word: &str) -> Option<String> {
    let rest = word.strip_suffix('s')?;
    if NO_PLURALS.contains(&word) || rest.ends_with(['s', 'u', 'i']) {
        return None;
    }
    if let Some(rest) = rest.strip_suffix("ie") {
        return Some(format!("{rest}y"));
    }
    let sibilant =
        |stem: &str| stem.ends_with(['s', 'x', 'z', 'o']) || stem.ends_with("ch") || stem.ends_with("sh");
    match rest.strip_suffix('e') {
        Some(stem) if sibilant(stem) && !stem.ends_with(['o', 's', 'z']) => Some(stem.to_owned()),
        Some(stem) if stem.ends_with("ss") || stem.ends_with('o') => Some(stem.to_owned()),
        _ => Some(rest.to_owned()),
    }
}

/// What -ing or -ed may have been put to: as it stands, with an e, with one consonant less.
fn without_ending(word: &str) -> Vec<String> {
    let Some(stem) = word.strip_suffix("ing").or_else(|| word.strip_suffix("ed")) else { return Vec::new() };
    if stem.len() < 2 || !stem.contains(['a', 'e', 'i', 'o', 'u', 'y']) {
        return Vec::new();
    }
    let mut stems = vec![stem.to_owned(), format!("{stem}e")];
    if let Some(stem) = stem.strip_suffix('i') {
        stems.push(format!("{stem}y"));
    }
    let mut end = stem.bytes().rev();
    if end.next() == end.next() {
        stems.push(stem[..stem.len() - 1].to_owned());
    }
    stems
}

/// The American spelling of what may be a British one.
fn in_american(word: &str) -> Option<String> {
    let endings = [("isation", "ization"), ("ise", "ize"), ("yse", "yze"), ("our", "or"), ("ogue", "og")];
    endings.into_iter().find_map(|(british, american)| {
        let stem = word.strip_suffix(british).filter(|stem| stem.len() > 2)?;
        Some(format!("{stem}{american}"))
    })
}

/// Whether two words are so long and so near that one is likely a slip of the other: one letter
/// more, less, other or two neighbours in the wrong order, not at the first place.
pub(super) fn is_slip(a: &str, b: &str) -> bool {
    const SHORTEST: usize = 5;
    // Most pairs end here.
    if a.len().min(b.len()) < SHORTEST || a.chars().next() != b.chars().next() {
        return false;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (short, long) = if a.len() <= b.len() { (&a, &b) } else { (&b, &a) };
    if short.len() < SHORTEST || long.len() <= SHORTEST || long.len() - short.len() > 1 {
        return false;
    }
    let same = short.iter().zip(long.iter()).take_while(|(a, b)| a == b).count();
    let (short, long) = (&short[same..], &long[same..]);
    match (short, long) {
        ([], _) => true,
        (_, [_, rest @ ..]) if rest == short => true,
        ([a, b, short @ ..], [c, d, long @ ..]) if short == long && a == d && b == c => true,
        ([_, short @ ..], [_, long @ ..]) => short == long,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        bases(a).iter().any(|form| bases(b).contains(form))
    }

    #[test]
    fn forms_of_one_word() {
        for (a, b) in [
            ("cat", "cats"),
            ("city", "cities"),
            ("box", "boxes"),
            ("class", "classes"),
            ("potato", "potatoes"),
            ("house", "houses"),
            ("size", "sizes"),
            ("make", "making"),
            ("run", "running"),
            ("running", "runs"),
            ("stop", "stopped"),
            ("call", "calling"),
            ("try", "tried"),
            ("file", "filed"),
            ("bought", "buying"),
            ("colour", "color"),
            ("colours", "color"),
            ("organise", "organize"),
            ("organising", "organize"),
            ("travelling", "travel"),
            ("women", "woman"),
        ] {
            assert!(same(a, b), "{a} {b}: {:?} {:?}", bases(a), bases(b));
        }
    }

    #[test]
    fn other_words() {
        for (a, b) in [
            ("car", "care"),
            ("file", "fill"),
            ("new", "news"),
            ("mile", "mill"),
            ("bus", "bu"),
            ("bring", "br"),
            ("hour", "hor"),
            ("not", "note"),
            ("plan", "plane"),
        ] {
            assert!(!same(a, b), "{a} {b}");
        }
    }

    #[test]
    fn slips_of_the_pen() {
        for (a, b) in
            [("password", "pasword"), ("recieve", "receive"), ("brahma", "bramha"), ("address", "adress")]
        {
            assert!(is_slip(a, b) && is_slip(b, a), "{a} {b}");
        }
        for (a, b) in
            [("cat", "car"), ("mending", "vending"), ("import", "export"), ("address", "address me")]
        {
            assert!(!is_slip(a, b), "{a} {b}");
        }
    }
}
