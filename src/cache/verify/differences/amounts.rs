//! 1000 m is 1 km.

use super::token::Token;

/// Units that are parts of another: what they measure, their names, how many of the least make one.
const UNITS: &[(&str, &[&str], f64)] = &[
    ("length", &["mm", "millimeter", "millimetre"], 1.0),
    ("length", &["cm", "centimeter", "centimetre"], 10.0),
    ("length", &["m", "meter", "metre"], 1_000.0),
    ("length", &["km", "kilometer", "kilometre"], 1_000_000.0),
    ("mass", &["mg", "milligram"], 1.0),
    ("mass", &["g", "gram"], 1_000.0),
    ("mass", &["kg", "kilo", "kilogram"], 1_000_000.0),
    ("time", &["s", "sec", "second"], 1.0),
    ("time", &["min", "minute"], 60.0),
    ("time", &["h", "hr", "hour"], 3_600.0),
    ("time", &["day"], 86_400.0),
    ("time", &["week"], 604_800.0),
    ("volume", &["ml", "milliliter", "millilitre"], 1.0),
    ("volume", &["l", "liter", "litre"], 1_000.0),
];

/// Whether both texts tell amounts with units, and the same ones.
pub(super) fn equal(a: &[Token], b: &[Token]) -> bool {
    match (amounts(a), amounts(b)) {
        (Some(a), Some(b)) => {
            !a.is_empty() && a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| same(*a, *b))
        }
        _ => false,
    }
}

fn same((what, a): (&str, f64), (other, b): (&str, f64)) -> bool {
    what == other && (a - b).abs() <= a.abs() * 1e-9
}

/// The amounts of a text; `None` where a number has no known unit.
fn amounts(tokens: &[Token]) -> Option<Vec<(&'static str, f64)>> {
    let numbers = tokens.iter().enumerate().filter(|(_, token)| token.number());
    numbers
        .map(|(at, number)| {
            let unit = tokens.get(at + 1)?.text.as_str();
            let named = |name: &str| name == unit || unit.strip_suffix('s') == Some(name);
            let (what, _, factor) =
                UNITS.iter().find(|(_, names, _)| names.iter().any(|name| named(name)))?;
            number.text.parse::<f64>().ok().map(|number| (*what, number * factor))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::token::tokens;
    use super::*;

    #[test]
    fn amounts_of_one_measure() {
        for (a, b, same) in [
            ("1000 m", "1 km", true),
            ("is 1.5 kg much", "is 1500 grams much", true),
            ("90 minutes", "1.5 hours", true),
            ("1000 m", "1 kg", false),
            ("1000 m", "2 km", false),
            ("1000 m and 5", "1 km and 5", false),
            ("no number", "none here", false),
        ] {
            assert_eq!(equal(&tokens(a), &tokens(b)), same, "{a}, {b}");
        }
    }
}
