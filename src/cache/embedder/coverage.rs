//! Which texts is an encoder good for?
//!
//! An English-only model gives unrelated Chinese questions a cosine of up to .99, so what it
//! does not cover must never reach it; yet English questions earn 10 to 20 points more hits
//! from it than from a multilingual one, so they should not stray either.
//!
//! Letters of another script settle it. Among Latin letters the words do: `coverage/words.txt`
//! lists, for English and 32 other languages, frequent words that the others hardly use. A text
//! is English unless it has more words that are foreign (listed elsewhere, or written with an
//! accent) than English ones. Only a text with neither is shown to `whatlang`, which is weak on
//! short texts. Measured, as the share taken for English:
//!
//! | texts | here | whatlang alone, sure by half |
//! |---|---|---|
//! | English questions (7 sets, 44,000) | 99.5 to 100 % | 99.2 to 99.8 % |
//! | questions in German, Spanish, Romanian, Turkish, Vietnamese (1,190 each) | 0 to 2.5 % | 1 to 24 % |
//! | short sentences in those, French, Portuguese, Italian, Dutch, Polish, Indonesian | 0 to 4 % | 1 to 80 % |
//! | the same in 20 smaller languages, mean | 6 % | |
//!
//! Of 799 paraphrased English pairs one is torn apart. (The lists were made from one half of
//! those sentences, from Tatoeba; the figures come from the other half and from `XQuAD`.)

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::config::Covers;

/// A line for each language: its ISO 639-3 code, then words. English comes first.
const WORDS: &str = include_str!("coverage/words.txt");

/// Below this, whatlang's opinion of a text without any listed word does not count.
const SURE: f64 = 0.2;

/// Words of all lists; bit n stands for the n-th list.
static LISTED: LazyLock<HashMap<&str, u64>> = LazyLock::new(|| {
    let mut listed = HashMap::new();
    for (n, line) in WORDS.lines().enumerate() {
        for word in line.split(' ').skip(1) {
            *listed.entry(word).or_insert(0) |= 1 << n;
        }
    }
    listed
});

/// What a text is written in, as finely as its letters and words tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// English.
    English,
    /// Anything else: an ISO 639-3 code among Latin letters, the script's name elsewhere;
    /// `None` where neither is sure.
    Other(Option<&'static str>),
}

impl Language {
    /// The language of a text; `None` when it has no letters: such a text has no meaning that a
    /// model could tell from another's, and no encoder covers it.
    pub fn of(text: &str) -> Option<Self> {
        let mut letters = text.chars().filter(|c| is_letter(*c));
        let (mut any, mut foreign_script) = (false, false);
        for letter in &mut letters {
            any = true;
            if !is_latin(letter) {
                foreign_script = true;
                break;
            }
        }
        if !any {
            return None;
        }
        if foreign_script {
            return Some(Self::Other(script(text)));
        }
        let tally = Tally::of(text);
        let english = if tally.foreign > tally.english {
            false
        } else if tally.english > 0 {
            true
        } else {
            whatlang::detect(text)
                .is_none_or(|info| info.lang() == whatlang::Lang::Eng || info.confidence() <= SURE)
        };
        Some(if english { Self::English } else { Self::Other(tally.language()) })
    }

    /// Whether an encoder with this coverage may embed a text in this language.
    pub fn is_covered_by(self, covers: Covers) -> bool {
        covers == Covers::All || self == Self::English
    }

    /// Whether two texts are surely not in the same language. An answer in another language is
    /// not the same answer.
    pub fn differs_from(self, other: Self) -> bool {
        match (self, other) {
            (Self::Other(Some(a)), Self::Other(Some(b))) => a != b,
            (Self::English, Self::English) | (Self::Other(_), Self::Other(_)) => false,
            _ => true,
        }
    }
}

/// How many words speak for English, how many against, and for which languages.
struct Tally {
    english: u32,
    foreign: u32,
    /// By list.
    languages: [u16; 64],
}

impl Tally {
    fn of(text: &str) -> Self {
        let mut tally = Self { english: 0, foreign: 0, languages: [0; 64] };
        let words = text.split(|c| !is_letter(c) && !is_combining(c)).filter(|word| !word.is_empty());
        for word in words {
            tally.count(&word.to_lowercase());
        }
        tally
    }

    fn count(&mut self, word: &str) {
        let lists = LISTED.get(word).copied().unwrap_or(0);
        if lists & 1 != 0 {
            self.english += 1;
        } else if lists != 0 || !word.is_ascii() {
            self.foreign += 1;
        }
        for (n, votes) in self.languages.iter_mut().enumerate().skip(1) {
            *votes = votes.saturating_add(u16::from(lists & (1 << n) != 0));
        }
    }

    /// The language that two words or more speak for, and more than for any other.
    fn language(&self) -> Option<&'static str> {
        let most = *self.languages.iter().max()?;
        let mut best = self.languages.iter().enumerate().filter(|(_, votes)| **votes == most);
        let (n, _) = best.next()?;
        if most < 2 || best.next().is_some() {
            return None;
        }
        WORDS.lines().nth(n)?.split(' ').next()
    }
}

/// The script of a text's letters that are not Latin. Japanese mixes three; kana tell it.
fn script(text: &str) -> Option<&'static str> {
    let letters: String = text.chars().filter(|c| is_letter(*c) && !is_latin(*c)).collect();
    if letters.chars().any(|c| matches!(c, '\u{3041}'..='\u{30ff}')) {
        return Some("Kana");
    }
    whatlang::detect_script(&letters).map(|script| match script {
        whatlang::Script::Latin => "Full-width",
        other => script_name(other),
    })
}

fn script_name(script: whatlang::Script) -> &'static str {
    // `Script::name` borrows from its argument although every name is static.
    whatlang::Script::all().iter().find(|known| **known == script).map_or("", |known| known.name())
}

/// Letters, without signs that are letters by their history only.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() && !matches!(c, 'µ' | 'ª' | 'º')
}

fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Full-width Latin is left out: English-only tokenizers do not know it.
fn is_latin(c: char) -> bool {
    matches!(c,
        'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}'
        | '\u{2c60}'..='\u{2c7f}' | '\u{a720}'..='\u{a7ff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENGLISH: &[&str] = &[
        "How do I reset my password?",
        "how do i rset my pasword",
        "reset password",
        "kubectl rollout restart deployment",
        "Why does `for x in xs { println!(\"{x}\") }` not compile?",
        "Where can I get a good café au lait in São Paulo?",
        "Is Lionel Messi a genius?",
        "iPhone 15 Pro vs Galaxy S24",
        "VPN error 809",
        "What is naïve Bayes?",
        "whats the wifi pw",
    ];

    const OTHER: &[(&str, &str)] = &[
        ("¿Cómo restablezco mi contraseña si no puedo entrar en mi cuenta?", "spa"),
        ("Donde puedo ver los pedidos que hice ayer", "spa"),
        ("Wie kann ich mein Passwort zurücksetzen?", "deu"),
        ("Wo finde ich meine Rechnung?", "deu"),
        ("Comment puis-je réinitialiser mon mot de passe ?", "fra"),
        ("Où est ma facture", "fra"),
        ("Como posso redefinir minha senha?", "por"),
        ("Quanto tempo demora a entrega?", "por"),
        ("Come posso reimpostare la mia password?", "ita"),
        ("Quanto costa la spedizione?", "ita"),
        ("Hoe kan ik mijn wachtwoord opnieuw instellen?", "nld"),
        ("Waar is mijn bestelling?", "nld"),
        ("Jak zresetować hasło?", "pol"),
        ("Gdzie jest moja paczka", "pol"),
        ("Làm thế nào để đặt lại mật khẩu của tôi?", "vie"),
        ("Bagaimana cara mengatur ulang kata sandi saya?", "ind"),
        ("Di mana pesanan saya", "ind"),
        ("Şifremi nasıl sıfırlayabilirim?", "tur"),
        ("Siparişim nerede?", "tur"),
        ("Hur återställer jag mitt lösenord?", "swe"),
        ("怎么重置密码", "zho"),
        ("帮我写一个 Python script", "zho"),
        ("パスワードをリセットするにはどうすればいいですか", "jpn"),
        ("비밀번호를 어떻게 재설정하나요?", "kor"),
        ("Как сбросить пароль?", "rus"),
        ("كيف أعيد تعيين كلمة المرور؟", "ara"),
        ("मैं अपना पासवर्ड कैसे रीसेट करूँ?", "hin"),
        ("Πώς αλλάζω τον κωδικό μου;", "ell"),
        ("ｈｅｌｌｏ", "full-width"),
    ];

    #[test]
    fn english_stays_english() {
        for text in ENGLISH {
            assert_eq!(Language::of(text), Some(Language::English), "{text}");
        }
    }

    #[test]
    fn other_languages_go_elsewhere() {
        for (text, language) in OTHER {
            let found = Language::of(text).unwrap();
            assert!(!found.is_covered_by(Covers::English), "{language}: {text}");
            assert!(found.is_covered_by(Covers::All), "{language}: {text}");
        }
    }

    #[test]
    fn what_has_no_letters_has_no_language() {
        for text in ["", " \n\t", "42", "3.14 + 2", "👍👎", "?!…", "µ", "١٢٣", "\u{200b}"] {
            assert_eq!(Language::of(text), None, "{text:?}");
        }
    }

    #[test]
    fn surely_different_languages_are_told_apart() {
        let differ = |a: &str, b: &str| Language::of(a).unwrap().differs_from(Language::of(b).unwrap());
        assert!(differ(
            "Wo ist mein Schlüssel und wie bekomme ich ihn?",
            "Dónde está mi llave y cómo la puedo tener"
        ));
        assert!(differ("怎么重置密码", "パスワードの再設定"));
        assert!(differ("Как сбросить пароль?", "怎么重置密码"));
        assert!(differ("How do I reset it?", "怎么重置"));
        assert!(!differ("怎么重置 password", "如何重置密码"));
        assert!(!differ("Wo ist mein Schlüssel?", "Wo habe ich meinen Schlüssel?"));
    }

    #[test]
    fn a_word_speaks_for_english_or_for_others_never_both() {
        for (word, lists) in LISTED.iter() {
            assert!(*lists == 1 || lists & 1 == 0, "{word}");
            assert_eq!(*word, word.to_lowercase());
        }
        assert!(WORDS.lines().count() <= 64);
    }

    proptest! {
        #[test]
        fn never_panics_and_never_differs_from_itself(text in "\\PC*") {
            if let Some(language) = Language::of(&text) {
                prop_assert!(language.is_covered_by(Covers::All));
                prop_assert!(!language.differs_from(language));
            }
        }
    }
}
