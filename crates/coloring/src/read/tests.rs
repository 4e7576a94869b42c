use std::io::Write;

use super::*;

fn parse(text: &str) -> Result<Instance, ColoringError> {
    parse_graph(Path::new("graphs/some.col"), text.as_bytes())
}

fn refused(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn a_dimacs_file_is_read_and_its_header_is_not_trusted() {
    let instance = parse("c hello\np edge 4 6\ne 1 2\ne 2 1\ne 2 3\nn 1 5\n\ne 3 1\r\n").unwrap();
    assert_eq!((instance.n, instance.edges()), (4, &[(0, 1), (0, 2), (1, 2)][..]));
    assert_eq!(instance.name, "some");
    assert_eq!(instance.remarks, ["the header says 6 edges, the file has 3", "1 of 4 lines repeat an edge"]);
    let instance = parse("p col 2 1\ne 1 5\n").unwrap();
    assert_eq!(instance.n, 5);
    assert_eq!(instance.remarks, ["the header says 2 vertices, but the edges name 5; there are 5"]);
}

#[test]
fn lists_of_edges_are_told_from_dimacs_and_say_how_they_count() {
    let instance = parse("# a triangle\n0 1\n1,2\n2\t0\n").unwrap();
    assert_eq!((instance.n, instance.base, instance.edges().len()), (3, 0, 3));
    assert_eq!(instance.remarks, ["vertices are numbered from 0, because line 2 names one"]);
    let instance = parse("% a triangle\n1 2 0.5\n2 3 0.5\n3 1 1\n").unwrap();
    assert_eq!((instance.n, instance.base, instance.edges().len()), (3, 1, 3));
    assert!(instance.remarks.contains(&"the third number of a line is not used".to_owned()));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line_and_a_cure() {
    let of = "graphs/some.col, line 2: ";
    for (text, problem) in [
        ("p edge 3 1\ne 2 2\n", "vertex 2 is joined to itself"),
        ("p edge 3 1\ne 2\n", "a vertex is missing"),
        ("p edge 3 1\ne 2 x\n", "`x` is not a vertex"),
        ("p edge 3 1\ne 2 -1\n", "`-1` is not a vertex"),
        ("p edge 3 1\nq 1 2\n", "a line that begins with `q`"),
        ("p edge 3 1\np edge 3 1\n", "a second header, after that of line 1"),
        ("p edge 3 1\ne 1 99999999999\n", "vertex 99999999999, but a graph has at most 1048576"),
        ("1 2\n3 four\n", "`four` is not a vertex"),
        ("1 2\n3 3\n", "vertex 3 is joined to itself"),
    ] {
        let message = refused(text);
        assert!(message.starts_with(&format!("{of}{problem}")), "{text:?}: {message}");
        assert!(message.contains("\n  hint: "), "{message}");
    }
    assert!(refused("").contains("the file holds no graph"));
    assert!(refused("p edge 900000000 1\n").contains("line 1: 900000000 vertices, but a graph has at most"));
}

#[test]
fn compressed_files_are_recognised_by_their_content() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("queen.col");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"p edge 3 2\ne 1 2\ne 2 3\n").unwrap();
    let bytes = encoder.finish().unwrap();
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(read_graph(&path).unwrap().edges(), [(0, 1), (1, 2)]);
    std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
    let message = read_graph(&path).unwrap_err().to_string();
    assert!(message.contains("queen.col: not readable as gzip after "), "{message}");
    assert!(message.contains("hint: the file is damaged or incomplete"), "{message}");
    // One that stands for far more than memory holds is not cut to a smaller graph.
    assert_eq!(unpacked(&path, &bytes, 1000).unwrap().len(), 23);
    let message = unpacked(&path, &bytes, 23).unwrap_err().to_string();
    assert!(message.contains("it unpacks to 23 bytes or more\n  hint: "), "{message}");
}

#[test]
fn lines_may_end_in_any_of_three_ways() {
    let text = "p edge 3 3\ne 1 2\ne 2 3\ne 1 3\n";
    for end in ["\n", "\r\n", "\r"] {
        let instance = parse(&text.replace('\n', end)).unwrap();
        assert_eq!((instance.edges().len(), &instance.remarks[..]), (3, &[][..]), "{end:?}");
    }
    let message = refused("p edge 3 3\re 1 2\re 2 2\r");
    assert!(message.starts_with("graphs/some.col, line 3: vertex 2 is joined to itself"), "{message}");
}

#[test]
fn a_number_that_is_too_large_and_a_heading_are_called_so() {
    let message = refused("p edge 3 3\ne 1 99999999999999999999999\n");
    assert!(message.ends_with("hint: the number is too large for any graph"), "{message}");
    let message = refused("source,target\n1,2\n");
    assert!(message.contains("line 1: a line that begins with `source`"), "{message}");
    assert!(message.contains("two numbers per line, no heading"), "{message}");
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(0_u8..=255, 0..200)) {
        let _ = parse_graph(Path::new("any"), &bytes);
    }

    #[test]
    fn lines_that_look_like_a_graph_never_make_it_panic(text in "([pecn#]? ?[0-9]{0,5} ?[0-9]{0,5}\n){0,20}") {
        if let Ok(instance) = parse_graph(Path::new("any"), text.as_bytes()) {
            let again = parse_graph(Path::new("any"), instance.dimacs().as_bytes()).unwrap();
            proptest::prop_assert_eq!((instance.n, instance.edges()), (again.n, again.edges()));
        }
    }
}
