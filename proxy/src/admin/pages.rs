//! The pages of the admin port: a table of paths, each read with `GET` or `HEAD`.

use super::{Watched, metrics};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

const JSON: &str = "application/json";

/// The text format that every scraper reads.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The answer to a request, whose body is not read.
pub(super) fn answer<B>(watched: &Watched, request: &Request<B>) -> Response<Full<Bytes>> {
    let (status, kind, body) = match request.uri().path() {
        _ if !is_read(request.method()) && is_known(request.uri().path()) => {
            let body = error("method_not_allowed", "this page is read with GET or HEAD");
            (StatusCode::METHOD_NOT_ALLOWED, JSON, body)
        }
        "/metrics" => (StatusCode::OK, PROMETHEUS, metrics::render(watched)),
        "/readyz" if watched.is_draining() => {
            (StatusCode::SERVICE_UNAVAILABLE, JSON, "{\"status\":\"draining\"}".to_owned())
        }
        "/healthz" | "/readyz" | "/startupz" => {
            (StatusCode::OK, JSON, "{\"status\":\"ok\"}".to_owned())
        }
        _ => (StatusCode::NOT_FOUND, JSON, error("not_found", "there is no such page")),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

fn is_read(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

fn is_known(path: &str) -> bool {
    ["/metrics", "/healthz", "/readyz", "/startupz"].contains(&path)
}

/// The shape of the data port's errors.
fn error(code: &str, message: &str) -> String {
    serde_json::json!({
        "error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}
    })
    .to_string()
}
