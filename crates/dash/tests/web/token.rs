//! Nothing but the whole token lets anybody in, wherever it is sent.

use crate::client::{Reply, ask};
use crate::specimen::Place;

const TOKEN: &str = "a-token-of-a-test-0123456789";

/// The ways to send a token, and the status that the right one is answered with.
const WAYS: [(&str, u16); 4] = [("bearer", 200), ("header", 200), ("cookie", 200), ("address", 303)];

fn sent(place: &Place, way: &str, token: &str) -> Reply {
    let address = place.address();
    let host = address.to_string();
    let with = |header: (&str, &str)| ask(address, "GET", "/api/runs", &[("Host", &host), header]);
    match way {
        "bearer" => with(("Authorization", &format!("Bearer {token}"))),
        "header" => with(("X-Tidemill-Token", token)),
        "cookie" => with(("Cookie", &format!("tidemill-{}={token}", address.port()))),
        _ => ask(address, "GET", &format!("/?token={token}"), &[("Host", &host)]),
    }
}

/// Texts that are nearly the token.
fn near_misses() -> Vec<String> {
    let n = TOKEN.len();
    // Every beginning, the empty one among them; every end; both cut off.
    let mut wrong: Vec<String> = (0..n).map(|end| TOKEN[..end].to_owned()).collect();
    wrong.extend((1..n).map(|begin| TOKEN[begin..].to_owned()));
    wrong.push(TOKEN[1..n - 1].to_owned());
    // The same length with one character changed: the first, one in the middle, the last.
    for at in [0, n / 2, n - 1] {
        wrong.push(format!("{}x{}", &TOKEN[..at], &TOKEN[at + 1..]));
    }
    wrong.extend([
        format!("{TOKEN}0"),
        format!("0{TOKEN}"),
        format!("{TOKEN}{TOKEN}"),
        TOKEN.to_uppercase(),
        TOKEN.chars().rev().collect(),
        TOKEN.replace('-', "%2D"),
        format!("'{TOKEN}'"),
    ]);
    wrong
}

#[test]
fn only_the_whole_token_lets_in() {
    let place = Place::with_token(Some(TOKEN));
    for (way, welcome) in WAYS {
        assert_eq!(sent(&place, way, TOKEN).status, welcome, "{way}");
        for wrong in near_misses() {
            let reply = sent(&place, way, &wrong);
            assert_eq!(reply.status, 401, "{way}: {wrong:?}");
            assert_eq!(reply.header("set-cookie"), None, "{way}: {wrong:?}");
        }
    }
}

#[test]
fn a_wrong_token_is_not_made_good_by_another_wrong_one() {
    let place = Place::with_token(Some(TOKEN));
    let (address, host) = (place.address(), place.address().to_string());
    let (first, second) = TOKEN.split_at(TOKEN.len() / 2);
    let halves = [("Host", host.as_str()), ("X-Tidemill-Token", first), ("X-Tidemill-Token", second)];
    assert_eq!(ask(address, "GET", "/api/runs", &halves).status, 401);
    // A wrong one in the address is refused whatever the headers say, and a beginning of the cookie's name is not its name.
    let known = [("Host", host.as_str()), ("X-Tidemill-Token", TOKEN)];
    assert_eq!(ask(address, "GET", "/?token=wrong", &known).status, 401);
    let cookie = format!("tidemill={TOKEN}; tidemill-{}0={TOKEN}", address.port());
    assert_eq!(ask(address, "GET", "/api/runs", &[("Host", &host), ("Cookie", &cookie)]).status, 401);
}
