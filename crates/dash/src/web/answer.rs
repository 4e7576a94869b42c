//! HTTP answers: JSON, and errors as JSON with a message and a hint.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::source::SourceError;

/// An error answer.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

#[derive(Serialize)]
struct Body<'a> {
    error: &'a str,
    hint: Option<&'a str>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}

impl From<SourceError> for Refusal {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Missing { what } => Self::missing(what),
            SourceError::Invalid { message } => Self::bad(message),
            SourceError::Unavailable { message, hint } => {
                Self { status: StatusCode::UNPROCESSABLE_ENTITY, message, hint }
            }
            SourceError::Failed { message } => Self::new(StatusCode::INTERNAL_SERVER_ERROR, message),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = Body { error: &self.message, hint: self.hint.as_deref() };
        (self.status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
    }
}

/// An answer in JSON that must not be cached, because the next one may differ.
pub(super) fn fresh(value: impl Serialize) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], Json(value)).into_response()
}
