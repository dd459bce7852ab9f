//! Rules that span several settings. Each fault is one line that says what to do.

mod upstream;

use super::{AuthMode, Config, ConfigError, Provider, Remote, Verifier};

/// Related answers in one list at most: it is a caller's screen, and each is a stored answer in full.
const MOST_RELATED: usize = 20;

impl Config {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let mut faults = Vec::new();
        self.validate_listeners(&mut faults);
        self.validate_store(&mut faults);
        self.validate_encoders(&mut faults);
        self.validate_routes(&mut faults);
        self.validate_upstream(&mut faults);
        self.validate_namespaces(&mut faults);
        if faults.is_empty() { Ok(()) } else { Err(ConfigError(faults)) }
    }

    fn validate_listeners(&self, faults: &mut Vec<String>) {
        if self.admin.token.is_none() && !self.admin.listen.ip().is_loopback() {
            faults.push(format!(
                "admin.listen = {:?} can be reached from outside: set admin.token, or listen on 127.0.0.1",
                self.admin.listen.to_string()
            ));
        }
        if self.auth.mode == AuthMode::Open && !self.server.listen.ip().is_loopback() {
            faults.push(format!(
                "server.listen = {:?} can be reached from outside: auth.mode = \"open\" is for loopback, \"keys\" or \
                 \"forward\" are allowed here",
                self.server.listen.to_string()
            ));
        }
        if self.auth.mode == AuthMode::Keys && self.auth.keys.is_empty() {
            faults.push("auth.mode = \"keys\" needs at least one key under auth.keys".to_owned());
        }
        for (name, key) in &self.auth.keys {
            if hex::decode(&key.sha256).map_or(true, |digest| digest.len() != 32) {
                faults.push(format!(
                    "auth.keys.{name}.sha256 is no SHA-256: 64 hexadecimal digits are allowed"
                ));
            }
        }
        for (key, value) in [
            ("server.max_connections", self.server.max_connections),
            ("server.max_json_depth", self.server.max_json_depth),
            ("cache.write_queue", self.cache.write_queue),
            ("embedder.queue", self.embedder.queue),
            ("store.candidates", self.store.candidates),
        ] {
            if value == 0 {
                faults.push(format!("{key} = 0: 1 or more is allowed"));
            }
        }
        for (key, value) in [
            ("store.poll_interval", self.store.poll_interval),
            ("store.sweep_interval", self.store.sweep_interval),
        ] {
            if value.is_zero() {
                faults.push(format!("{key} = \"0s\": more than that is allowed"));
            }
        }
        // serde_json itself refuses what nests deeper than 128.
        if self.server.max_json_depth > 127 {
            faults
                .push(format!("server.max_json_depth = {}: 1 to 127 is allowed", self.server.max_json_depth));
        }
    }

    fn validate_store(&self, faults: &mut Vec<String>) {
        let prefix = &self.store.collection_prefix;
        // Of what Qdrant allows, what needs no escaping anywhere; the rest of a name is ours.
        let sane = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if prefix.is_empty() || prefix.len() > 100 || !prefix.chars().all(sane) {
            faults.push(format!(
                "store.collection_prefix = {prefix:?}: 1 to 100 letters, digits, \"-\", \"_\" or \".\" are allowed"
            ));
        }
    }

    fn validate_encoders(&self, faults: &mut Vec<String>) {
        for name in &self.embedder.models {
            if !self.encoders.contains_key(name) {
                faults.push(format!(
                    "embedder.models names {name:?}, which has no section [encoders.{name:?}]; there are: {}",
                    names(self.encoders.keys())
                ));
            }
        }
        for (name, encoder) in &self.encoders {
            if encoder.window == 0 {
                faults.push(format!("encoders.{name}.window = 0: 1 or more is allowed"));
            }
            if let Some(Verifier { strict, balanced, loose, .. }) = &encoder.verifier
                && !(strict >= balanced && balanced >= loose)
            {
                faults.push(format!(
                    "encoders.{name}.verifier: strict = {}, balanced = {}, loose = {}: none may ask for more than the \
                     one before it",
                    strict.get(),
                    balanced.get(),
                    loose.get()
                ));
            }
        }
    }

    fn validate_routes(&self, faults: &mut Vec<String>) {
        for (alias, model) in &self.models {
            if model.targets.is_empty() {
                faults.push(format!("models.{alias}.targets is empty: at least one target is needed"));
            }
            for target in &model.targets {
                if !self.providers.contains_key(&target.provider) {
                    faults.push(format!(
                        "models.{alias} names the provider {:?}; there are: {}",
                        target.provider,
                        names(self.providers.keys())
                    ));
                }
            }
            if let Some(namespace) = &model.namespace
                && !self.namespaces.contains_key(namespace)
            {
                faults.push(format!(
                    "models.{alias}.namespace = {namespace:?}; there are: {}",
                    names(self.namespaces.keys())
                ));
            }
        }
        for (name, provider) in &self.providers {
            let Some(Remote { url, api_version, responses, .. }) = provider.remote() else { continue };
            if !(url.starts_with("http://") || url.starts_with("https://")) {
                faults.push(format!(
                    "providers.{name}.url = {url:?}: a URL with http:// or https:// is allowed"
                ));
            }
            if *responses && !matches!(provider, Provider::Openai(_)) {
                faults.push(format!("providers.{name}.responses = true: only kind = \"openai\" speaks them"));
            }
            if let (Some(version), false) = (api_version, matches!(provider, Provider::Azure(_))) {
                faults.push(format!(
                    "providers.{name}.api_version = {version:?}: only kind = \"azure\" has one"
                ));
            }
        }
    }

    fn validate_namespaces(&self, faults: &mut Vec<String>) {
        for (name, own) in &self.namespaces {
            if let Some(related) = &own.related
                && related.limit > MOST_RELATED
            {
                faults.push(format!(
                    "namespaces.{name}.related.limit = {}: 0 (off) to {MOST_RELATED} is allowed",
                    related.limit
                ));
            }
        }
        for name in self.namespaces.keys() {
            let Some(namespace) = self.namespace(name) else {
                faults.push(
                    "namespaces.default must set everything that config/default.toml sets there".to_owned(),
                );
                return;
            };
            if namespace.ttl > namespace.max_ttl {
                faults.push(format!(
                    "namespaces.{name}.ttl = \"{}s\" is longer than its max_ttl = \"{}s\"",
                    namespace.ttl.as_secs(),
                    namespace.max_ttl.as_secs()
                ));
            }
            if let Some(name_ignored) = namespace.scope_ignore.iter().find(|field| *field == "messages") {
                faults.push(format!(
                    "namespaces.{name}.scope.ignore names {name_ignored:?}, which would drop instructions and images: \
                     \"history\" leaves out earlier turns"
                ));
            }
            for encoder in namespace.matching.thresholds.keys() {
                if !self.encoders.contains_key(encoder) {
                    faults.push(format!(
                        "namespaces.{name}.thresholds names the encoder {encoder:?}; there are: {}",
                        names(self.encoders.keys())
                    ));
                }
            }
        }
    }
}

fn names<'a>(keys: impl Iterator<Item = &'a String>) -> String {
    keys.map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That each overlay is refused with these words.
    #[track_caller]
    pub(super) fn assert_faults(faults: &[(&str, &[&str])]) {
        for (overlay, words) in faults {
            let message = Config::from_toml(overlay).expect_err(overlay).to_string();
            for word in *words {
                assert!(message.contains(word), "{overlay}\n-> {message}\nlacks {word:?}");
            }
        }
    }

    #[test]
    fn the_defaults_are_valid() {
        let config = Config::from_toml("").unwrap();
        assert!(config.namespace("default").is_some());
    }

    #[test]
    fn a_wrong_value_names_key_value_and_what_is_allowed() {
        assert_faults(&[
            ("[server]\nlisten = \"nowhere\"", &["server.listen", "nowhere"]),
            ("[server]\nlistne = \"127.0.0.1:1\"", &["listne", "listen"]),
            ("[auth]\nmode = \"closed\"", &["auth.mode", "closed", "open", "keys", "forward"]),
            ("[admin]\nlisten = \"0.0.0.0:1\"", &["admin.listen", "0.0.0.0:1", "admin.token"]),
            ("[server]\nlisten = \"0.0.0.0:1\"", &["server.listen", "0.0.0.0:1", "keys"]),
            ("[namespaces.default]\nthresholds = { \"bge-small-en-v1.5\" = 1.5 }", &["1.5", "0 to 1"]),
            (
                "[namespaces.default]\npolicy = \"lax\"",
                &["policy", "lax", "strict", "balanced", "loose", "similarity"],
            ),
            (
                "[encoders.\"bge-small-en-v1.5\".verifier]\nloose = 0.99",
                &["encoders.bge-small-en-v1.5.verifier", "loose = 0.99", "balanced = 0.5"],
            ),
            ("[encoders.\"bge-small-en-v1.5\".verifier]\nstrict = 2", &["verifier.strict", "2", "0 to 1"]),
            ("[namespaces.hr]\nttl = \"60d\"", &["namespaces.hr.ttl", "5184000s", "max_ttl"]),
            ("[namespaces.hr]\nttl = \"soon\"", &["namespaces.hr.ttl", "soon"]),
            (
                "[models.fast]\ntargets = [{ provider = \"nobody\" }]",
                &["models.fast", "nobody", "openai, rules"],
            ),
            ("[models.fast]\ntargets = []", &["models.fast.targets"]),
            ("[auth]\nmode = \"keys\"", &["auth.keys"]),
            ("[auth.keys.a]\nsha256 = \"xyz\"", &["auth.keys.a.sha256", "64 hexadecimal"]),
            ("[embedder]\nmodels = [\"gone\"]", &["embedder.models", "gone", "bge-small-en-v1.5"]),
            (
                "[providers.x]\nkind = \"openai\"\nurl = \"example.org\"",
                &["providers.x.url", "example.org", "https"],
            ),
            ("[providers.x]\nkind = \"openai\"\nurl = \"http://x\"\napi_key = \"sk-1\"", &["env:NAME"]),
            ("[store]\ncandidates = 0", &["store.candidates = 0", "1 or more"]),
            ("[store]\ncollection_prefix = \"a/b\"", &["store.collection_prefix", "a/b", "letters"]),
            ("[store]\nreplication_factor = 0", &["replication_factor"]),
            ("[store]\npoll_interval = \"0s\"", &["store.poll_interval"]),
            (
                "[namespaces.hr]\nscope = { ignore = [\"messages\"] }",
                &["namespaces.hr.scope.ignore", "history"],
            ),
            (
                "[namespaces.hr]\nrelated = { limit = 21, min_similarity = 0.7, text = \"\" }",
                &["namespaces.hr.related.limit = 21", "0 (off) to 20"],
            ),
            ("[namespaces.default]\nrelated = { limit = 50 }", &["namespaces.default.related.limit = 50"]),
        ]);
    }

    #[test]
    fn a_namespace_takes_from_default_what_it_does_not_set() {
        let config =
            Config::from_toml("[namespaces.hr]\nsemantic = false\n[namespaces.default]\nttl = \"1h\"")
                .unwrap();
        let hr = config.namespace("hr").unwrap();
        assert!(!hr.semantic);
        assert_eq!(hr.ttl, std::time::Duration::from_hours(1));
        assert!(config.namespace("other").is_none());
    }
}
