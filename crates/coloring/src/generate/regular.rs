//! Graphs without chance.

/// Fields `row * side + column` of a board, joined if a queen gets from one to the other.
pub(super) fn queen(side: usize) -> Vec<(u32, u32)> {
    pairs(side, |(row, column), (other_row, other_column)| {
        row == other_row || column == other_column || row.abs_diff(other_row) == column.abs_diff(other_column)
    })
}

/// Cells of the cyclic Latin square, joined if they share a row, a column or a symbol.
pub(super) fn latin(side: usize) -> Vec<(u32, u32)> {
    pairs(side, |(row, column), (other_row, other_column)| {
        row == other_row
            || column == other_column
            || (row + column) % side == (other_row + other_column) % side
    })
}

fn pairs(side: usize, is_edge: impl Fn((usize, usize), (usize, usize)) -> bool) -> Vec<(u32, u32)> {
    let place = |field: usize| (field / side, field % side);
    let mut edges = Vec::new();
    for b in 0..side * side {
        edges.extend((0..b).filter(|a| is_edge(place(*a), place(b))).map(|a| (a as u32, b as u32)));
    }
    edges
}
