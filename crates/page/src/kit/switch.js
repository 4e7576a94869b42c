// The button of a single-file page that switches between light and dark.
import { byId } from './dom.js';

const isDark = () => document.documentElement.dataset.theme === 'dark';
const showSwitch = () => byId('theme').setAttribute('aria-label', isDark() ? 'Use light colours' : 'Use dark colours');
addEventListener('themechange', showSwitch);
byId('theme').addEventListener('click', () => window.tidemillTheme(isDark() ? 'light' : 'dark'));
showSwitch();
