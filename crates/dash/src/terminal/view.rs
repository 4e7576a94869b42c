//! The state of the view: page, filter, scroll position.

/// A page of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// A bit of everything.
    #[default]
    Overview,
    /// Where the time goes: lanes and phases.
    Lanes,
    /// What was found: convergence and the best.
    Best,
    /// What happened: events, fall-backs, warnings, actions.
    Events,
}

impl Page {
    /// All pages in their order.
    pub const ALL: [Self; 4] = [Self::Overview, Self::Lanes, Self::Best, Self::Events];

    /// Name shown in the tab.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Lanes => "Lanes",
            Self::Best => "Best",
            Self::Events => "Events",
        }
    }

    /// Its place, from 0.
    pub fn idx(self) -> usize {
        Self::ALL.iter().position(|page| *page == self).unwrap_or(0)
    }
}

/// The state of the screen, apart from the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// The page that is shown.
    pub page: Page,
    /// Lines by which lists are scrolled.
    pub scroll: usize,
    /// Steps to the left by which the lanes are moved, a quarter of their width each.
    pub pan: u32,
    /// Doublings of the time that the lanes show; negative shows less.
    pub zoom: i32,
    /// Whether the screen is paused.
    pub is_paused: bool,
    /// Whether the help is shown.
    pub is_help: bool,
    /// Parts of names of phases, separated by commas; empty shows all.
    pub filter: String,
    /// A filter that is being typed.
    pub prompt: Option<String>,
}

impl View {
    /// Whether the filter lets a phase through.
    pub fn shows(&self, phase: &str) -> bool {
        let filter = self.prompt.as_ref().unwrap_or(&self.filter);
        if filter.is_empty() {
            return true;
        }
        let mut terms = filter.split(',').map(str::trim).filter(|term| !term.is_empty()).peekable();
        terms.peek().is_none() || terms.any(|term| phase.contains(term))
    }

    /// Shows a page from its beginning.
    pub fn turn_to(&mut self, page: Page) {
        self.page = page;
        self.scroll = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_takes_parts_of_names_and_an_empty_one_all() {
        let mut view = View::default();
        assert!(view.shows("kernel"));
        view.filter = "ker, ask".into();
        assert!(view.shows("kernel") && view.shows("ask") && !view.shows("tell"));
        // What is being typed acts at once.
        view.prompt = Some("tel".into());
        assert!(view.shows("tell") && !view.shows("kernel"));
    }
}
