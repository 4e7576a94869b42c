//! The messages, and how each is written.
//!
//! The coordinator sends [`Hello`], [`Shard`] and `Bye`; a worker answers [`Welcome`], [`ShardAnswer`] or [`Refusal`], one answer for each
//! message. Every message but `Bye` names its session, a number that the coordinator chooses for each study, so that an answer that is late by a
//! whole study is known as such.

use tidemill_search::{Evaluated, Points, Scores};

use crate::digest::{digest, digest_text};
use crate::frame::{self, FrameError};
use crate::payload::{PayloadReader, PayloadWriter};

/// Something that one side says to the other.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The coordinator names the study.
    Hello(Hello),
    /// The worker has built it and evaluated the probe trials.
    Welcome(Welcome),
    /// The coordinator asks for some rows.
    Shard(Shard),
    /// The worker has evaluated them.
    Answer(ShardAnswer),
    /// The worker cannot do what was asked.
    Refusal(Refusal),
    /// The coordinator needs the worker no more.
    Bye,
}

/// A study, and trials to show that it is understood alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    /// Number of the study among those of the coordinator.
    pub session: u64,
    /// Version of the program.
    pub program: String,
    /// Number of the rules by which trials are evaluated.
    pub semantics: u32,
    /// Everything that decides a result: the text of `study.toml`.
    pub header: String,
    /// Fingerprint of the data.
    pub data: String,
    /// Whether trials have out-of-sample columns.
    pub has_test: bool,
    /// Trials to evaluate at once.
    pub probes: Points,
}

/// A worker is ready.
#[derive(Clone, Debug, PartialEq)]
pub struct Welcome {
    /// Number of the study.
    pub session: u64,
    /// Version of the program.
    pub program: String,
    /// Number of the rules.
    pub semantics: u32,
    /// Host and process.
    pub name: String,
    /// Where it evaluates, in words.
    pub device: String,
    /// Digest of the header that it has built the study from.
    pub header_digest: u64,
    /// Fingerprint of the data that it has loaded.
    pub data: String,
    /// How long the probes took, in microseconds.
    pub took_us: u64,
    /// The results of the probes.
    pub probes: Evaluated,
}

/// Some rows of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Shard {
    /// Number of the study.
    pub session: u64,
    /// Number of the shard.
    pub shard: u64,
    /// Number of the first trial.
    pub first_trial: u64,
    /// What to evaluate.
    pub points: ShardPoints,
}

/// The points of a shard.
#[derive(Clone, Debug, PartialEq)]
pub enum ShardPoints {
    /// All values.
    Given(Points),
    /// So many trials of a sampler that does not learn, which the worker draws itself.
    Drawn {
        /// How many.
        count: u32,
        /// Digest of the points that must come out.
        digest: u64,
    },
}

/// The results of a shard.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardAnswer {
    /// Number of the study.
    pub session: u64,
    /// Number of the shard.
    pub shard: u64,
    /// Digest of the points that were evaluated.
    pub points_digest: u64,
    /// How long the worker had nothing else to do than this shard, in microseconds.
    pub took_us: u64,
    /// Scores and metrics of its rows.
    pub evaluated: Evaluated,
}

/// A worker cannot do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Number of the study, or 0 where no message could be read.
    pub session: u64,
    /// Number of the shard, if it was about one.
    pub shard: Option<u64>,
    /// Why, for the program.
    pub code: RefusalCode,
    /// Why, for people.
    pub text: String,
}

/// Why a worker refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalCode {
    /// What it was sent is no message.
    Malformed,
    /// It is of another version.
    Version,
    /// It cannot build the study.
    Study,
    /// It does not have the data.
    Data,
    /// A shard came before a study.
    NoStudy,
    /// It drew other points than the coordinator.
    OtherPoints,
    /// The evaluation failed.
    Failed,
}

impl RefusalCode {
    const ALL: [Self; 7] = [
        Self::Malformed,
        Self::Version,
        Self::Study,
        Self::Data,
        Self::NoStudy,
        Self::OtherPoints,
        Self::Failed,
    ];
}

/// Digest of points by their bits.
pub fn points_digest(points: &Points) -> u64 {
    digest((0..points.n_params()).map(|param_idx| points.column(param_idx)))
}

/// Digest of results by their bits.
pub fn results_digest(evaluated: &Evaluated) -> u64 {
    digest(result_columns(evaluated))
}

/// Digest of the text of a header.
pub fn header_digest(header: &str) -> u64 {
    digest_text(header)
}

fn result_columns(evaluated: &Evaluated) -> impl Iterator<Item = &[f64]> {
    let scores = (0..evaluated.scores.n_objectives()).map(|objective| evaluated.scores.column(objective));
    scores.chain(evaluated.metrics.iter().map(Vec::as_slice))
}

impl Message {
    /// The frame that carries it.
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = PayloadWriter::default();
        self.write(&mut payload);
        frame::wrap(self.kind(), &payload.bytes)
    }

    /// The message in a frame.
    pub fn decode(frame: &[u8]) -> Result<Self, FrameError> {
        let (kind, payload) = frame::unwrap(frame)?;
        let mut from = PayloadReader::new(kind, payload);
        let message = match kind {
            1 => Self::Hello(Hello {
                session: from.u64()?,
                program: from.text()?,
                semantics: from.u32()?,
                header: from.text()?,
                data: from.text()?,
                has_test: from.flag()?,
                probes: read_points(&mut from)?,
            }),
            2 => Self::Welcome(Welcome {
                session: from.u64()?,
                program: from.text()?,
                semantics: from.u32()?,
                name: from.text()?,
                device: from.text()?,
                header_digest: from.u64()?,
                data: from.text()?,
                took_us: from.u64()?,
                probes: read_evaluated(&mut from)?,
            }),
            3 => Self::Shard(Shard {
                session: from.u64()?,
                shard: from.u64()?,
                first_trial: from.u64()?,
                points: match from.flag()? {
                    false => ShardPoints::Given(read_points(&mut from)?),
                    true => ShardPoints::Drawn { count: from.u32()?, digest: from.u64()? },
                },
            }),
            4 => Self::Answer(ShardAnswer {
                session: from.u64()?,
                shard: from.u64()?,
                points_digest: from.u64()?,
                took_us: from.u64()?,
                evaluated: read_evaluated(&mut from)?,
            }),
            5 => Self::Refusal(Refusal {
                session: from.u64()?,
                shard: from.flag()?.then(|| from.u64()).transpose()?,
                code: {
                    let code = from.u8()?;
                    let code = RefusalCode::ALL.get(usize::from(code)).copied();
                    code.ok_or_else(|| from.malformed("an unknown reason"))?
                },
                text: from.text()?,
            }),
            6 => Self::Bye,
            _ => return Err(from.malformed("there is no such kind")),
        };
        from.end(message)
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => 1,
            Self::Welcome(_) => 2,
            Self::Shard(_) => 3,
            Self::Answer(_) => 4,
            Self::Refusal(_) => 5,
            Self::Bye => 6,
        }
    }

    fn write(&self, to: &mut PayloadWriter) {
        match self {
            Self::Hello(Hello { session, program, semantics, header, data, has_test, probes }) => {
                to.u64(*session);
                to.text(program);
                to.u32(*semantics);
                to.text(header);
                to.text(data);
                to.u8((*has_test).into());
                write_points(to, probes);
            }
            Self::Welcome(welcome) => {
                to.u64(welcome.session);
                to.text(&welcome.program);
                to.u32(welcome.semantics);
                to.text(&welcome.name);
                to.text(&welcome.device);
                to.u64(welcome.header_digest);
                to.text(&welcome.data);
                to.u64(welcome.took_us);
                write_evaluated(to, &welcome.probes);
            }
            Self::Shard(Shard { session, shard, first_trial, points }) => {
                to.u64(*session);
                to.u64(*shard);
                to.u64(*first_trial);
                match points {
                    ShardPoints::Given(points) => {
                        to.u8(0);
                        write_points(to, points);
                    }
                    ShardPoints::Drawn { count, digest } => {
                        to.u8(1);
                        to.u32(*count);
                        to.u64(*digest);
                    }
                }
            }
            Self::Answer(ShardAnswer { session, shard, points_digest, took_us, evaluated }) => {
                to.u64(*session);
                to.u64(*shard);
                to.u64(*points_digest);
                to.u64(*took_us);
                write_evaluated(to, evaluated);
            }
            Self::Refusal(Refusal { session, shard, code, text }) => {
                to.u64(*session);
                to.u8(shard.is_some().into());
                shard.iter().for_each(|shard| to.u64(*shard));
                to.u8(*code as u8);
                to.text(text);
            }
            Self::Bye => {}
        }
    }
}

fn write_points(to: &mut PayloadWriter, points: &Points) {
    to.columns(points.len(), (0..points.n_params()).map(|param_idx| points.column(param_idx)));
}

fn read_points(from: &mut PayloadReader<'_>) -> Result<Points, FrameError> {
    let (n_rows, columns) = from.columns()?;
    Ok(Points::from_columns(n_rows, columns))
}

fn write_evaluated(to: &mut PayloadWriter, evaluated: &Evaluated) {
    to.u32(evaluated.scores.n_objectives() as u32);
    let columns: Vec<&[f64]> = result_columns(evaluated).collect();
    to.columns(evaluated.scores.len(), columns.into_iter());
}

fn read_evaluated(from: &mut PayloadReader<'_>) -> Result<Evaluated, FrameError> {
    let n_objectives = from.u32()? as usize;
    let (n_rows, mut columns) = from.columns()?;
    if n_objectives == 0 || n_objectives > columns.len() {
        return Err(from.malformed("it has no column for each objective"));
    }
    let metrics = columns.split_off(n_objectives);
    Ok(Evaluated { scores: Scores::from_columns(n_rows, columns), metrics })
}

/// Bytes of a row of points and of results, whichever is more; what a frame can hold follows from it.
pub(crate) fn most_rows(n_params: usize, n_results: usize) -> usize {
    (frame::MAX_PAYLOAD / 2 / (8 * n_params.max(n_results).max(1))).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> Vec<Message> {
        let mut points = Points::new(2);
        points.push(&[1.0, f64::NAN]);
        points.push(&[-0.0, 1e300]);
        let evaluated = Evaluated {
            scores: Scores::from_columns(2, vec![vec![0.5, f64::NAN]]),
            metrics: vec![vec![1.0, 2.0], vec![f64::NAN, f64::INFINITY]],
        };
        let (program, header, data) = ("0.1.0".to_owned(), "seed = 1\n".to_owned(), "ab12".to_owned());
        vec![
            Message::Hello(Hello {
                session: 7,
                program: program.clone(),
                semantics: 3,
                header: header.clone(),
                data: data.clone(),
                has_test: true,
                probes: points.clone(),
            }),
            Message::Welcome(Welcome {
                session: 7,
                program,
                semantics: 3,
                name: "host:12".into(),
                device: "the CPU".into(),
                header_digest: header_digest(&header),
                data,
                took_us: 5,
                probes: evaluated.clone(),
            }),
            Message::Shard(Shard {
                session: 7,
                shard: 1,
                first_trial: 64,
                points: ShardPoints::Given(points),
            }),
            Message::Shard(Shard {
                session: 7,
                shard: 2,
                first_trial: 64,
                points: ShardPoints::Drawn { count: 9, digest: 3 },
            }),
            Message::Answer(ShardAnswer { session: 7, shard: 1, points_digest: 4, took_us: 6, evaluated }),
            Message::Refusal(Refusal {
                session: 0,
                shard: Some(4),
                code: RefusalCode::Failed,
                text: "lost ünder way".into(),
            }),
            Message::Bye,
        ]
    }

    #[test]
    fn messages_come_back_bit_for_bit() {
        for message in examples() {
            let frame = message.encode();
            let back = Message::decode(&frame).unwrap();
            // NaN differs from itself, so that the bytes are compared.
            assert_eq!(back.encode(), frame, "{message:?}");
            assert_eq!(format!("{back:?}"), format!("{message:?}"));
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_of_a_payload_is_an_error_or_another_message() {
        for message in examples() {
            let frame = message.encode();
            let (kind, payload) = frame::unwrap(&frame).unwrap();
            for end in 0..payload.len() {
                assert!(Message::decode(&frame::wrap(kind, &payload[..end])).is_err());
            }
            for at in 0..payload.len() {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut changed = payload.to_vec();
                    changed[at] = value;
                    drop(Message::decode(&frame::wrap(kind, &changed)));
                }
            }
        }
    }

    #[test]
    fn a_table_that_announces_more_than_there_is_allocates_nothing() {
        let mut payload = PayloadWriter::default();
        [1_u64, 2, 3].into_iter().for_each(|number| payload.u64(number));
        payload.u8(0);
        payload.u32(u32::MAX);
        payload.u32(u32::MAX);
        let error = Message::decode(&frame::wrap(3, &payload.bytes)).unwrap_err();
        assert_eq!(error, FrameError::Malformed { kind: 3, what: "a table does not fit into it" });
    }
}
