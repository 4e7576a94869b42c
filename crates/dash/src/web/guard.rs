//! Access control: which requests are answered, and the security headers of every answer.
//!
//! A page of another site can make a browser send requests to this server. Three checks prevent that. When the server listens on this machine
//! alone, `Host` must name this machine, so that a foreign name bound to 127.0.0.1 gets nothing (DNS rebinding). Requests that a browser marks as
//! coming from another origin are refused. And where a token is set, nothing is answered without it; other sites cannot make a browser send its cookie.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer::Refusal;
use super::token::Token;

/// Content-security policy: a page may load what this server has, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Decides which requests are answered.
#[derive(Debug)]
pub(super) struct Guard {
    /// Where the server listens.
    pub(super) addr: SocketAddr,
    /// The token that requests must carry.
    pub(super) token: Option<Token>,
}

/// Checks a request, and answers it with the headers of every answer.
pub(super) async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = match guard.verdict(&request) {
        Ok(None) => next.run(request).await,
        Ok(Some(response)) => response,
        Err(refusal) => refusal.into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

impl Guard {
    /// A response that takes the place of the answer, if there is one.
    fn verdict(&self, request: &Request) -> Result<Option<Response>, Refusal> {
        let headers = request.headers();
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "the dashboard only answers GET requests",
            ));
        }
        if self.addr.ip().is_loopback() && !is_of_this_machine(headers) {
            return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, "this is not a name of this machine")
                .hint(format!("open http://{}/", self.addr)));
        }
        if is_from_elsewhere(headers) {
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "requests from pages of another origin are refused",
            ));
        }
        let Some(token) = &self.token else { return Ok(None) };
        let is_api = request.uri().path().starts_with("/api/");
        if let Some(given) = in_address(request.uri()).filter(|_| !is_api) {
            if token.is(given) {
                return Ok(Some(self.welcome(request.uri(), token)));
            }
        } else if given(headers, &self.cookie()).any(|given| token.is(given)) {
            return Ok(None);
        }
        Err(Refusal::new(StatusCode::UNAUTHORIZED, "the token is missing or wrong").hint(
            "open the address that `tidemill dash` printed, or send the header `Authorization: Bearer TOKEN`",
        ))
    }

    /// Stores the token in a cookie and redirects to the same page without it in the URL, where it could be seen and logged.
    fn welcome(&self, uri: &Uri, token: &Token) -> Response {
        let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie(), token.text());
        // One slash at most: two would lead to another host.
        let path = format!("/{}", uri.path().trim_start_matches('/'));
        let headers = [(header::LOCATION, path), (header::SET_COOKIE, cookie)];
        (StatusCode::SEE_OTHER, headers, [(header::CACHE_CONTROL, "no-store")]).into_response()
    }

    /// Cookies ignore ports, so the name has the port.
    fn cookie(&self) -> String {
        format!("tidemill-{}", self.addr.port())
    }
}

/// The token in the URL.
fn in_address(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// The tokens that a request carries in its headers.
fn given<'a>(headers: &'a HeaderMap, cookie: &'a str) -> impl Iterator<Item = &'a str> {
    let text = |name: HeaderName| headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION).filter_map(|value| value.strip_prefix("Bearer "));
    let named = text(HeaderName::from_static("x-tidemill-token"));
    let kept = text(header::COOKIE)
        .flat_map(|value| value.split(';'))
        .filter_map(move |pair| pair.trim().strip_prefix(cookie)?.strip_prefix('='));
    bearer.chain(named).chain(kept)
}

/// Whether the `Host` of a request names this machine. The port may be another one, as through a tunnel.
fn is_of_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether a browser marks a request as coming from another site. Following a link to the page itself is allowed.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(origin) = text("origin") {
        let host = text("host").unwrap_or_default();
        let is_own = ["http://", "https://"].iter().any(|scheme| origin.strip_prefix(scheme) == Some(host));
        if !is_own {
            return true;
        }
    }
    let is_followed =
        text("sec-fetch-mode") == Some("navigate") && text("sec-fetch-dest") == Some("document");
    matches!(text("sec-fetch-site"), Some("cross-site" | "same-site")) && !is_followed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_names_of_this_machine_are_its_names() {
        for host in ["localhost", "LOCALHOST:7700", "127.0.0.1:7700", "127.3.2.1", "[::1]:7700"] {
            assert!(is_of_this_machine(&headers(&[("host", host)])), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example:7700", "127.0.0.1.evil.example", "10.0.0.1:7700", ""]
        {
            assert!(!is_of_this_machine(&headers(&[("host", host)])), "{host}");
        }
        assert!(!is_of_this_machine(&HeaderMap::new()));
    }

    #[test]
    fn other_origins_are_told_from_the_own() {
        let own = [
            ("host", "localhost:7700"),
            ("origin", "http://localhost:7700"),
            ("sec-fetch-site", "same-origin"),
        ];
        assert!(!is_from_elsewhere(&headers(&own)));
        assert!(!is_from_elsewhere(&HeaderMap::new()));
        for origin in
            ["null", "http://localhost:3000", "https://evil.example", "http://localhost:7700.evil.example"]
        {
            assert!(
                is_from_elsewhere(&headers(&[("host", "localhost:7700"), ("origin", origin)])),
                "{origin}"
            );
        }
        assert!(is_from_elsewhere(&headers(&[
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "no-cors")
        ])));
        let link = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert!(!is_from_elsewhere(&headers(&link)));
        let frame =
            [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        assert!(is_from_elsewhere(&headers(&frame)));
    }

    #[test]
    fn tokens_are_found_wherever_they_may_stand() {
        let all = headers(&[
            ("authorization", "Bearer a"),
            ("x-tidemill-token", "b"),
            ("cookie", "other=1; tidemill-7700=c; tidemill-77001=d"),
        ]);
        assert_eq!(given(&all, "tidemill-7700").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(in_address(&"/?x=1&token=abc".parse().unwrap()), Some("abc"));
        assert_eq!(in_address(&"/?xtoken=abc".parse().unwrap()), None);
    }
}
