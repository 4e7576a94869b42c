// Sections of a single-file page.
import { byId } from './dom.js';

/** Hides a section, and its link in the navigation, when it has nothing to show. */
function setShown(id, shown) {
  byId(id).hidden = !shown;
  for (const link of document.querySelectorAll(`nav a[href="#${id}"]`)) link.hidden = !shown;
}
