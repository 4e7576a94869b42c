//! Maps keys to changes of the view and actions of the screen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::view::{Page, View};

/// Lines that a page key moves.
const PAGE_LINES: usize = 10;

/// The most that the lanes are widened or narrowed, in doublings.
const MAX_ZOOM: i32 = 12;

/// Characters of a filter.
const MAX_FILTER: usize = 200;

/// An action of the screen beyond a change of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAction {
    /// None; the key may have changed the view.
    None,
    /// Quit.
    Quit,
    /// Quit because of Ctrl-C.
    Interrupt,
    /// Replay the run from its start.
    Replay,
    /// Double the speed of the replay.
    Faster,
    /// Halve it.
    Slower,
    /// Leave the replay.
    Present,
}

impl View {
    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> KeyAction {
        if key.kind == KeyEventKind::Release {
            return KeyAction::None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { KeyAction::Interrupt } else { KeyAction::None };
        }
        if self.prompt.is_some() {
            self.type_filter(key.code);
            return KeyAction::None;
        }
        if self.is_help && key.code != KeyCode::Char('q') {
            self.is_help = false;
            return KeyAction::None;
        }
        match key.code {
            KeyCode::Char('q') => return KeyAction::Quit,
            KeyCode::Char('r') => return KeyAction::Replay,
            KeyCode::Char('>' | '.') => return KeyAction::Faster,
            KeyCode::Char('<' | ',') => return KeyAction::Slower,
            KeyCode::Esc if !self.filter.is_empty() => self.filter.clear(),
            KeyCode::Esc => return KeyAction::Present,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('?' | 'h') => self.is_help = true,
            KeyCode::Char('/') => self.prompt = Some(self.filter.clone()),
            KeyCode::Char('+' | '=') => self.zoom = (self.zoom - 1).max(-MAX_ZOOM),
            KeyCode::Char('-' | '_') => self.zoom = (self.zoom + 1).min(MAX_ZOOM),
            KeyCode::Char('0') => (self.zoom, self.pan) = (0, 0),
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(Page::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='4') => self.turn_to(Page::ALL[digit as usize - '1' as usize]),
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll = self.scroll.saturating_add(1),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(PAGE_LINES),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(PAGE_LINES),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = usize::MAX,
            KeyCode::Left => self.pan = self.pan.saturating_add(1),
            KeyCode::Right => self.pan = self.pan.saturating_sub(1),
            _ => {}
        }
        KeyAction::None
    }

    fn turn(&mut self, by: usize) {
        self.turn_to(Page::ALL[(self.page.idx() + by) % Page::ALL.len()]);
    }

    fn type_filter(&mut self, code: KeyCode) {
        let Some(typed) = &mut self.prompt else { return };
        match code {
            KeyCode::Enter => {
                self.filter = std::mem::take(typed).trim().to_owned();
                self.prompt = None;
                self.scroll = 0;
            }
            KeyCode::Esc => self.prompt = None,
            KeyCode::Backspace => {
                typed.pop();
            }
            KeyCode::Char(c) if typed.len() < MAX_FILTER => typed.push(c),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, code: KeyCode) -> KeyAction {
        view.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn pages_turn_by_tab_and_by_number() {
        let mut view = View { scroll: 5, ..View::default() };
        press(&mut view, KeyCode::Tab);
        assert_eq!((view.page, view.scroll), (Page::Lanes, 0));
        press(&mut view, KeyCode::BackTab);
        press(&mut view, KeyCode::BackTab);
        assert_eq!(view.page, Page::Events);
        press(&mut view, KeyCode::Char('3'));
        assert_eq!(view.page, Page::Best);
    }

    #[test]
    fn a_filter_is_typed_applied_and_cleared() {
        let mut view = View::default();
        press(&mut view, KeyCode::Char('/'));
        for c in "keq".chars() {
            assert_eq!(press(&mut view, KeyCode::Char(c)), KeyAction::None, "q is a letter here");
        }
        press(&mut view, KeyCode::Backspace);
        press(&mut view, KeyCode::Enter);
        assert_eq!((view.filter.as_str(), &view.prompt), ("ke", &None));
        assert_eq!(press(&mut view, KeyCode::Esc), KeyAction::None);
        assert!(view.filter.is_empty());
        assert_eq!(press(&mut view, KeyCode::Esc), KeyAction::Present);
    }

    #[test]
    fn a_filter_that_is_given_up_leaves_the_old_one() {
        let mut view = View { filter: "ask".into(), ..View::default() };
        press(&mut view, KeyCode::Char('/'));
        press(&mut view, KeyCode::Char('x'));
        press(&mut view, KeyCode::Esc);
        assert_eq!((view.filter.as_str(), &view.prompt), ("ask", &None));
    }

    #[test]
    fn control_c_leaves_from_everywhere() {
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        let mut view = View { prompt: Some(String::new()), is_help: true, ..View::default() };
        assert_eq!(view.key(control_c), KeyAction::Interrupt);
    }

    #[test]
    fn any_key_closes_the_help_and_does_nothing_else() {
        let mut view = View::default();
        press(&mut view, KeyCode::Char('?'));
        assert!(view.is_help);
        assert_eq!(press(&mut view, KeyCode::Char('r')), KeyAction::None);
        assert!(!view.is_help);
    }
}
