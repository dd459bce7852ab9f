use axum::http::HeaderValue;
use axum::http::request::{Parts, Request};

use super::*;
use crate::config::Config;

const ALICE: &str = "sk-canary-alice";
const BOB: &str = "sk-canary-bob";

fn auth(overlay: &str) -> Result<Auth, AuthConfigError> {
    Auth::try_new(&Config::from_toml(overlay).unwrap().auth)
}

fn digest(key: &str) -> String {
    hex::encode(Sha256::digest(key))
}

fn keys() -> Auth {
    let (alice, bob) = (digest(ALICE), digest(BOB).to_uppercase());
    auth(&format!(
        "[auth]\nmode = \"keys\"\n[auth.keys.alice]\nsha256 = \"{alice}\"\n[auth.keys.bob]\nsha256 = \"{bob}\""
    ))
    .unwrap()
}

fn forward() -> Auth {
    auth("[auth]\nmode = \"forward\"").unwrap()
}

fn headers(sent: &[(&'static str, &[u8])]) -> HeaderMap {
    let value = |value: &[u8]| HeaderValue::from_bytes(value).unwrap();
    let mut headers = HeaderMap::new();
    for (name, sent) in sent {
        headers.append(*name, value(sent));
    }
    headers
}

fn bearer(key: &str) -> HeaderMap {
    headers(&[("authorization", format!("Bearer {key}").as_bytes())])
}

#[test]
fn open_lets_anyone_in_as_one_tenant() {
    let open = auth("").unwrap();
    for headers in
        [HeaderMap::new(), bearer(ALICE), headers(&[("authorization", b"\xff"), ("api-key", b"x")])]
    {
        let caller = open.caller(&headers).unwrap();
        assert_eq!((caller.tenant, &*caller.name), (Tenant::anonymous(), "anonymous"));
        assert!(caller.credential.is_none());
    }
}

#[test]
fn keys_know_their_holders_apart() {
    let keys = keys();
    let alice = keys.caller(&bearer(ALICE)).unwrap();
    let bob = keys.caller(&headers(&[("x-api-key", BOB.as_bytes())])).unwrap();
    assert_eq!((&*alice.name, &*bob.name), ("alice", "bob"));
    assert_ne!(alice.tenant, bob.tenant);
    assert_ne!(alice.tenant, Tenant::anonymous());
    assert!(alice.credential.is_none(), "it is no provider's business");
}

#[test]
fn keys_refuse_everybody_else() {
    let keys = keys();
    for key in ["sk-canary-alicf", "sk-canary-alic", "sk-canary-alice2", "alice", &digest(ALICE)] {
        assert_eq!(keys.caller(&bearer(key)).unwrap_err(), AuthError::Unknown, "{key}");
    }
    assert_eq!(keys.caller(&HeaderMap::new()).unwrap_err(), AuthError::Missing);
}

#[test]
fn forward_makes_the_credential_the_tenant_and_passes_it_on() {
    let forward = forward();
    let caller = forward.caller(&bearer(ALICE)).unwrap();
    assert_eq!(caller.tenant, Tenant::of_credential(ALICE));
    assert_eq!(caller.credential.unwrap().expose(), ALICE);
    assert_eq!(forward.caller(&HeaderMap::new()).unwrap_err(), AuthError::Missing);
}

#[test]
fn every_place_and_spelling_of_the_credential_is_the_same_caller() {
    let forward = forward();
    let alice = ALICE.as_bytes();
    let wanted = Tenant::of_credential(ALICE);
    for headers in [
        headers(&[("authorization", b"bearer sk-canary-alice")]),
        headers(&[("authorization", b"BEARER   sk-canary-alice ")]),
        headers(&[("x-api-key", alice)]),
        headers(&[("api-key", alice)]),
        headers(&[("authorization", b"Bearer sk-canary-alice"), ("x-api-key", alice), ("api-key", alice)]),
    ] {
        assert_eq!(forward.caller(&headers).unwrap().tenant, wanted, "{headers:?}");
    }
}

#[test]
fn doubtful_credentials_are_refused_with_a_reason() {
    let long = [b'a'; credential::LONGEST + 1];
    for (sent, wanted) in [
        (&[("authorization", &b"Bearer a"[..]), ("x-api-key", b"b")][..], AuthError::Conflicting),
        (&[("x-api-key", b"a"), ("x-api-key", b"b")], AuthError::Conflicting),
        (&[("authorization", b"Bearer")], AuthError::Empty),
        (&[("authorization", b"Bearer   ")], AuthError::Empty),
        (&[("authorization", b"")], AuthError::Empty),
        (&[("x-api-key", b"")], AuthError::Empty),
        (&[("x-api-key", b"a"), ("api-key", b"")], AuthError::Empty),
        (&[("authorization", b"Basic YTpi")], AuthError::NotBearer),
        (&[("authorization", b"sk-canary-alice")], AuthError::NotBearer),
        (&[("x-api-key", b"caf\xc3\xa9")], AuthError::NotText),
        (&[("authorization", b"Bearer \xff")], AuthError::NotText),
        (&[("api-key", &long)], AuthError::TooLong),
    ] {
        for auth in [forward(), keys()] {
            assert_eq!(auth.caller(&headers(sent)).unwrap_err(), wanted, "{sent:?}");
        }
    }
}

#[test]
fn a_wrong_or_doubled_key_stops_the_start() {
    let mut config = Config::from_toml("").unwrap().auth;
    config.mode = AuthMode::Keys;
    config.keys.insert("a".to_owned(), config::AuthKey { sha256: "xyz".to_owned() });
    assert!(Auth::try_new(&config).unwrap_err().to_string().contains("auth.keys.a.sha256"));
    for name in ["a", "b"] {
        config.keys.insert(name.to_owned(), config::AuthKey { sha256: digest(ALICE) });
    }
    assert!(Auth::try_new(&config).unwrap_err().to_string().contains("auth.keys.a and auth.keys.b"));
}

#[test]
fn debug_shows_no_secret() {
    let auth = forward();
    let caller = auth.caller(&bearer(ALICE)).unwrap();
    let shown = format!("{auth:?} {caller:?} {:?} {:?}", keys(), admin_with_token());
    assert!(!shown.contains("canary") && !shown.contains(&digest(ALICE)), "{shown}");
    assert!(shown.contains("alice"), "{shown}");
}

fn admin(file: &std::path::Path) -> Result<AdminAuth, AdminAuthError> {
    let overlay = format!("[admin]\ntoken = \"file:{}\"", file.display());
    AdminAuth::try_new(&Config::from_toml(&overlay).unwrap().admin)
}

fn admin_with_token() -> AdminAuth {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "canary-token\n").unwrap();
    admin(&file).unwrap()
}

fn admin_on_loopback() -> AdminAuth {
    AdminAuth::try_new(&Config::from_toml("").unwrap().admin).unwrap()
}

fn request(uri: &str, sent: &[(&'static str, &[u8])]) -> Parts {
    let mut parts = Request::builder().uri(uri).body(()).unwrap().into_parts().0;
    parts.headers = headers(sent);
    parts
}

#[test]
fn the_admin_token_opens_and_nothing_else_does() {
    let admin = admin_with_token();
    let check = |sent: &[(&'static str, &[u8])]| admin.check(&request("/stats", sent));
    assert_eq!(check(&[("authorization", b"Bearer canary-token"), ("host", b"refrain.example")]), Ok(()));
    for (sent, wanted) in [
        (&[][..], AuthError::Missing),
        (&[("host", &b"localhost"[..])], AuthError::Missing),
        (&[("authorization", b"Bearer canary-tokem")], AuthError::Unknown),
        (&[("authorization", b"Bearer canary-toke")], AuthError::Unknown),
        (&[("authorization", b"Bearer ")], AuthError::Empty),
        (
            &[("authorization", b"Bearer canary-token"), ("authorization", b"Bearer x")],
            AuthError::Conflicting,
        ),
    ] {
        assert_eq!(check(sent), Err(GuardError::Token(wanted)), "{sent:?}");
    }
}

#[test]
fn without_a_token_this_machines_names_are_served() {
    let admin = admin_on_loopback();
    for (uri, sent) in [
        ("/", &[("host", &b"127.0.0.1:8081"[..])][..]),
        ("/", &[("host", b"LOCALHOST")]),
        ("/", &[("host", b"127.8.9.10:1")]),
        ("/", &[("host", b"[::1]:8081")]),
        ("http://localhost:8081/", &[]),
        ("http://localhost:8081/", &[("host", b"localhost:8081")]),
        ("/", &[("host", b"localhost:8081"), ("origin", b"http://localhost:8081")]),
        ("/", &[("host", b"localhost:8081"), ("sec-fetch-site", b"same-origin")]),
        ("/", &[("host", b"localhost:8081"), ("sec-fetch-site", b"none")]),
    ] {
        assert_eq!(admin.check(&request(uri, sent)), Ok(()), "{uri} {sent:?}");
    }
}

#[test]
fn without_a_token_rebound_names_are_refused() {
    let admin = admin_on_loopback();
    for (uri, sent) in [
        ("/", &[][..]),
        ("/", &[("host", &b"evil.example"[..])]),
        ("/", &[("host", b"evil.example:8081")]),
        ("/", &[("host", b"localhost.evil.example")]),
        ("/", &[("host", b"127.0.0.1.evil.example")]),
        ("/", &[("host", b"localhost@evil.example")]),
        ("/", &[("host", b"10.0.0.1")]),
        ("/", &[("host", b"0.0.0.0:8081")]),
        ("/", &[("host", b"")]),
        ("/", &[("host", b"\xff")]),
        ("/", &[("host", b"localhost"), ("host", b"evil.example")]),
        ("http://evil.example/", &[]),
        ("http://localhost/", &[("host", b"evil.example")]),
    ] {
        assert_eq!(admin.check(&request(uri, sent)), Err(GuardError::Host), "{uri} {sent:?}");
    }
}

#[test]
fn without_a_token_other_pages_are_refused() {
    let admin = admin_on_loopback();
    let host = ("host", &b"localhost:8081"[..]);
    for (name, value) in [
        ("origin", &b"https://evil.example"[..]),
        ("origin", b"null"),
        ("origin", b"http://localhost:3000"),
        ("origin", b"https://localhost:8081"),
        ("origin", b"\xff"),
        ("origin", b""),
        ("sec-fetch-site", b"cross-site"),
        ("sec-fetch-site", b"same-site"),
    ] {
        assert_eq!(admin.check(&request("/", &[host, (name, value)])), Err(GuardError::Origin), "{value:?}");
    }
}

#[test]
fn a_token_that_is_not_there_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    assert!(matches!(admin(&file), Err(AdminAuthError::NoToken(_))));
    std::fs::write(&file, " \n").unwrap();
    assert!(matches!(admin(&file), Err(AdminAuthError::NoToken(_))));
    assert!(matches!(admin(folder.path()), Err(AdminAuthError::Unreadable { .. })));
    let mut exposed = Config::from_toml("").unwrap().admin;
    exposed.listen = "0.0.0.0:8081".parse().unwrap();
    assert!(matches!(AdminAuth::try_new(&exposed), Err(AdminAuthError::Exposed(_))));
}
