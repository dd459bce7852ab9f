//! Whole chat completions as responses, by way of the canonical form.
//!
//! A stored answer is rendered from that form too, so a hit equals the miss it repeats.

use bytes::Bytes;

use super::super::Inexpressible;
use super::super::reply::CrossFault;
use crate::dialect::openai::reply::{Stamp, parse_whole};
use crate::dialect::responses::reply::{Echo, render_whole};

/// A chat completion as a response. Usage and everything unknown is carried along; what stood in
/// the choice or its message stands beside `output`.
pub fn to_responses(body: &[u8], stamp: &Stamp<'_>, echo: &Echo) -> Result<Bytes, CrossFault> {
    let reply = parse_whole(body)?
        .ok_or_else(|| Inexpressible::new("choices", "are not one finished answer of text and tool calls"))?;
    Ok(render_whole(&reply, stamp, echo))
}
