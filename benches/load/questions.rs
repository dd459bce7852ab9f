//! What is asked, as bytes on the wire.

/// Questions that have answers before anything is measured.
pub(crate) const STORED: [&str; 16] = [
    "How do I reset my password?",
    "Where do I send the receipts of my business trip?",
    "Why does my laptop not connect to the network?",
    "Who approves a request for vacation?",
    "How long does it take until a new computer arrives?",
    "What are the opening hours of the canteen?",
    "Can I print from my own phone in the office?",
    "Whom do I tell about a suspicious mail?",
    "How is overtime paid at the weekend?",
    "Is there a doctor in the building?",
    "Where can I park my bicycle?",
    "How do I invite a visitor from another company?",
    "What must I do when I lose my badge?",
    "Which insurance covers my way to work?",
    "How do I book a meeting room with a camera?",
    "May I take my dog to the office?",
];

/// The `number`-th way to spell the stored questions: letters of long words change case, so that no
/// text comes twice and none could come from the memo of vectors, and the meaning stays. Short words
/// do not, nor does the end of a long one: WHO and IT are names.
pub(crate) fn spelt(number: u64) -> String {
    let stored = STORED.len() as u64;
    let (place, spelling) = (number % stored, number / stored + 1);
    let text = STORED.iter().cycle().nth(usize::try_from(place).unwrap_or(0)).unwrap_or(&STORED[0]);
    let mut letters = 0;
    let mut spell = |c: char| {
        let flip = spelling >> (letters % 64) & 1 == 1;
        letters += 1;
        if flip { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
    };
    let mut word = |word: &str| match word.len() {
        0..5 => word.to_owned(),
        length => word[..length - 2].chars().map(&mut spell).chain(word[length - 2..].chars()).collect(),
    };
    text.split(' ').map(&mut word).collect::<Vec<_>>().join(" ")
}

/// A question that nobody has asked. Its number alone would make it another question.
pub(crate) fn unheard(number: u64) -> String {
    const TOPICS: [&str; 7] =
        ["parking", "pensions", "visitors", "overtime", "insurance", "badges", "printers"];
    let topic = TOPICS.iter().cycle().nth(usize::try_from(number % 7).unwrap_or(0)).unwrap_or(&TOPICS[0]);
    format!("What does paragraph {} of our rules on {topic} say?", 100_000 + number)
}

/// A chat request.
pub(crate) fn chat(question: &str, stream: bool) -> String {
    let stream = if stream { r#""stream": true, "# } else { "" };
    format!(r#"{{"model": "bench", {stream}"messages": [{{"role": "user", "content": "{question}"}}]}}"#)
}

/// A POST of JSON. `headers` are whole lines.
pub(crate) fn post(request: &mut Vec<u8>, path: &str, headers: &str, body: &str) {
    use std::io::Write as _;
    let length = body.len();
    let written = write!(
        request,
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         {headers}content-length: {length}\r\n\r\n{body}"
    );
    written.expect("memory takes all that is written");
}
