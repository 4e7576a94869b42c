// Elements from plain values. Text only ever becomes text nodes.

const isShown = (child) => child !== null && child !== undefined && child !== false;

/** Sets attributes and listeners of an element and appends children. */
export const fill = (node, props, children) => {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (!isShown(value)) continue;
    if (typeof value === 'function') node.addEventListener(name.replace(/^on/, ''), value);
    else if (name in node && typeof value !== 'string' && !(node instanceof SVGElement)) node[name] = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(Infinity).filter(isShown));
  return node;
};

/** An element with attributes and children; functions become listeners, strings become text. */
export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);

export const replace = (node, ...children) => {
  node.replaceChildren(...children.flat(Infinity).filter(isShown));
  return node;
};

/** Changes a text only where it differs, so that a selection survives. */
export const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

export const byId = (id) => document.getElementById(id);
