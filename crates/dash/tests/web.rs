//! The dashboard over a real socket: answers, refusals, and how it follows a live journal.

#[path = "web/client.rs"]
mod client;
#[path = "web/live.rs"]
mod live;
#[path = "web/question.rs"]
mod question;
#[path = "web/security.rs"]
mod security;
#[path = "web/specimen.rs"]
mod specimen;
#[path = "web/token.rs"]
mod token;
