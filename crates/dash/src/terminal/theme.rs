//! Colours that can be read on light and on dark.
//!
//! Only colours of the terminal's own palette are used and never a background; neither blue, white nor black, which one half of all
//! terminals cannot show well, and yellow only for a fifth phase. Red means bad. Letters or words repeat whatever a colour shows.

use ratatui::style::{Color, Modifier, Style};

const PALETTE: [Color; 5] = [Color::Cyan, Color::Magenta, Color::Green, Color::LightBlue, Color::Yellow];

/// Whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    is_coloured: bool,
}

impl Theme {
    /// With colours.
    pub fn coloured() -> Self {
        Self { is_coloured: true }
    }

    /// Without: bold, faint and reversed only.
    pub fn plain() -> Self {
        Self { is_coloured: false }
    }

    /// With colours unless `NO_COLOR` is set to something.
    pub fn from_environment() -> Self {
        let is_set = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { is_coloured: !is_set }
    }

    /// The colour of a phase by its place among the phases.
    pub fn phase(self, idx: usize) -> Style {
        self.colour(PALETTE[idx % PALETTE.len()])
    }

    /// For emphasis: curves, the chosen page.
    pub fn accent(self) -> Style {
        self.colour(Color::Cyan)
    }

    /// Good news.
    pub fn good(self) -> Style {
        self.colour(Color::Green).add_modifier(Modifier::BOLD)
    }

    /// Bad news.
    pub fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Important text.
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Text in a frame, which must not be as faint as the frame.
    pub fn title(self) -> Style {
        self.strong().remove_modifier(Modifier::DIM)
    }

    /// Frames, units and other secondary text.
    pub fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// A key that can be pressed, a label on a bar.
    pub fn reversed(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    fn colour(self, colour: Color) -> Style {
        if self.is_coloured { Style::new().fg(colour) } else { Style::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_theme_has_no_colour_at_all() {
        let theme = Theme::plain();
        for style in
            [theme.phase(3), theme.accent(), theme.good(), theme.bad(), theme.strong(), theme.faint()]
        {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
