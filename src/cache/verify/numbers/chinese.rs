//! Numbers written in Chinese characters, as far as they surely are numbers.
//!
//! The characters also stand in words that count nothing (一起, 万一, 千万别): a lone 一 or unit
//! counts only where the sign before it says so, as in 第一 and 周一.

/// The value of a digit's character.
fn digit(c: char) -> Option<u64> {
    Some(match c {
        '零' | '〇' => 0,
        '一' => 1,
        '二' | '两' | '兩' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        _ => return None,
    })
}

/// The value of a unit's character.
fn unit(c: char) -> Option<u64> {
    Some(match c {
        '十' => 10,
        '百' => 100,
        '千' => 1_000,
        '万' | '萬' => 10_000,
        '亿' | '億' => 100_000_000,
        _ => return None,
    })
}

/// Whether this multiplies a number before it, as in 3万.
pub(super) fn is_unit(c: char) -> bool {
    unit(c).is_some()
}

/// The number that begins at `at`, in digits, and where it ends.
pub(super) fn number(chars: &[char], at: usize) -> Option<(String, usize)> {
    let is_numeral = |c: char| digit(c).is_some() || is_unit(c);
    let length = chars[at..].iter().take_while(|c| is_numeral(**c)).count();
    let run = &chars[at..at + length];
    let before = at.checked_sub(1).map(|n| chars[n]);
    let counts = match run {
        [] | ['万', '一'] | ['零' | '〇' | '百' | '千' | '万' | '萬' | '亿' | '億'] => false,
        ['一'] => matches!(before, Some('第' | '周' | '期' | '拜' | '初')),
        _ => true,
    };
    counts.then(|| (value(run).unwrap_or_else(|| run.iter().collect()), at + length))
}

/// A run of numerals in digits: read off one by one (二〇二四), or by units (二十五). `None` when
/// it is neither, or may be read in two ways (一百二 is 120 to most).
fn value(run: &[char]) -> Option<String> {
    if let Some(digits) = run.iter().map(|c| digit(*c)).collect::<Option<Vec<_>>>() {
        return Some(digits.iter().map(u64::to_string).collect());
    }
    // What is summed up: beyond 亿, beyond 万, below it; and the digit that waits for its unit.
    let (mut beyond_yi, mut beyond_wan, mut section, mut pending) = (0_u64, 0_u64, 0_u64, None);
    let (mut last_unit, mut zero) = (u64::MAX, false);
    for c in run {
        match (digit(*c), unit(*c)) {
            (Some(_), _) if pending.is_some() => return None,
            (Some(0), _) => zero = true,
            (Some(digit), _) => pending = Some(digit),
            (None, unit) => {
                let unit = unit?;
                match unit {
                    ..10_000 => {
                        let factor = pending.take().or((unit == 10).then_some(1))?;
                        if unit >= last_unit {
                            return None;
                        }
                        section += factor * unit;
                    }
                    10_000 => {
                        beyond_wan = positive(section + pending.take().unwrap_or(0), beyond_wan)? * unit;
                        section = 0;
                    }
                    _ => {
                        let below = beyond_wan + section + pending.take().unwrap_or(0);
                        beyond_yi = positive(below, beyond_yi)? * unit;
                        (beyond_wan, section) = (0, 0);
                    }
                }
                (last_unit, zero) = (unit, false);
            }
        }
    }
    let surely_ones = zero || last_unit == 10;
    if pending.map_or(zero, |_| !surely_ones) {
        return None;
    }
    Some((beyond_yi + beyond_wan + section + pending.unwrap_or(0)).to_string())
}

/// `part`, if it is something and stands where nothing stood before.
fn positive(part: u64, before: u64) -> Option<u64> {
    (part > 0 && before == 0).then_some(part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Option<String> {
        let chars: Vec<char> = text.chars().collect();
        number(&chars, 0).map(|(number, _)| number)
    }

    #[test]
    fn reads_numerals() {
        for (text, number) in [
            ("三", "3"),
            ("两", "2"),
            ("十", "10"),
            ("十二", "12"),
            ("二十五", "25"),
            ("一百零三", "103"),
            ("三千五百", "3500"),
            ("二〇二四", "2024"),
            ("一万二千", "12000"),
            ("三亿五千万", "350000000"),
        ] {
            assert_eq!(read(text).as_deref(), Some(number), "{text}");
        }
    }

    #[test]
    fn words_are_no_numbers() {
        for text in ["一起", "万一", "百度", "一"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(number(&['第', '一'], 1), Some(("1".into(), 2)));
    }

    #[test]
    fn what_makes_no_sense_or_two_stays_as_written() {
        for text in ["二三十", "一百二", "三万五", "十百", "百千", "二十零", "一亿亿", &"亿".repeat(100)]
        {
            assert_eq!(read(text).as_deref(), Some(text));
        }
    }

    /// The number in characters, as a book would write it.
    fn write(n: u64) -> String {
        for (unit, name) in [(100_000_000, "亿"), (10_000, "万"), (1_000, "千"), (100, "百"), (10, "十")]
        {
            if n >= unit {
                let rest = n % unit;
                let zero = if rest > 0 && rest < unit / 10 { "零" } else { "" };
                let rest = if rest > 0 { write(rest) } else { String::new() };
                return format!("{}{name}{zero}{rest}", write(n / unit));
            }
        }
        ["零", "一", "二", "三", "四", "五", "六", "七", "八", "九"][usize::try_from(n).unwrap()].into()
    }

    proptest! {
        #[test]
        fn reads_what_a_book_writes(n in 10_u64..1_000_000_000_000) {
            prop_assert_eq!(read(&write(n)), Some(n.to_string()));
        }

        #[test]
        fn takes_any_run_and_nothing_more(run in "[零〇一二两三四五六七八九十百千万亿]{1,12}") {
            let chars: Vec<char> = format!("{run}个").chars().collect();
            if let Some((_, end)) = number(&chars, 0) {
                prop_assert_eq!(end, chars.len() - 1);
            }
        }
    }
}
