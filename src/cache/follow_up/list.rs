//! Word lists: sections that begin with a line `# name`.

/// The sections of a list, each with its lines.
pub(super) fn sections(list: &'static str) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in list.lines() {
        match (line.strip_prefix("# "), sections.last_mut()) {
            (Some(name), _) => sections.push((name, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    sections
}
