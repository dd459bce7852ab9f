//! Wire forms of a conversation and their canonical form; nothing else.

pub mod openai;
