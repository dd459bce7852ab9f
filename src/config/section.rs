//! A section of the config: plain data that refuses what it does not know.

macro_rules! section {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(missing_docs, reason = "config/default.toml says what each setting means")]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)* }
    };
}

pub(super) use section;
