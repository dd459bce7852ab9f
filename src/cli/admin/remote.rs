//! The way to a running service's admin API.

use std::time::Duration;

use clap::Args;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use crate::cli::Failure;

/// Where the admin API is.
#[derive(Debug, Args)]
pub(super) struct Remote {
    /// The admin listener.
    #[arg(long, value_name = "URL", env = "REFRAIN_ADMIN_URL", default_value = "http://127.0.0.1:8081")]
    admin: String,
    /// The admin token.
    #[arg(long, value_name = "TOKEN", env = "REFRAIN_ADMIN_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl Remote {
    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send(client()?.get(self.url(path))).await
    }

    pub(super) async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Result<Value, Failure> {
        let mut request = client()?.post(self.url(path)).header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body.to_string())).await
    }

    pub(super) async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.send(client()?.delete(self.url(path))).await
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.admin.trim_end_matches('/'))
    }

    async fn send(&self, mut request: RequestBuilder) -> Result<Value, Failure> {
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let reply = request.send().await.map_err(|_| {
            format!("no Refrain answers at {}: is it running, and is --admin right?", self.admin)
        })?;
        let status = reply.status();
        let body = reply.bytes().await?;
        let value: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if status.is_success() {
            return Ok(value);
        }
        let message = value["error"]["message"].as_str().unwrap_or("no reason given");
        Err(format!("{} answered {}: {message}", self.admin, status.as_u16()).into())
    }
}

fn client() -> Result<Client, Failure> {
    // The first to install one wins; all of ours are the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(Client::builder().no_proxy().timeout(Duration::from_mins(1)).build()?)
}

/// For one part of a path or query.
pub(super) fn percent_encoded(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
