// Requests to the server, and the live stream of a run.

export class ApiError extends Error {
  constructor(message, hint, status) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

export const get = async (path, signal) => {
  let response;
  try {
    response = await fetch(path, { signal, headers: { accept: "application/json" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The dashboard cannot be reached", "is `tidemill dash` still running?", 0);
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(body.error ?? `The answer was ${response.status}`, body.hint, response.status);
  return body;
};

export const runPath = (name, rest = "") => `api/runs/${encodeURIComponent(name)}${rest}`;

// The address of a page.
export const link = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

// Keeps the sections of a run as they change. A hidden page does not listen: browsers allow few connections.
export const follow = (name, hear, hearState) => {
  const sections = {};
  let source = null;
  let retry = 0;
  const stop = () => {
    clearTimeout(retry);
    source?.close();
    source = null;
  };
  const start = () => {
    stop();
    if (document.hidden) return;
    source = new EventSource(runPath(name, "/events"));
    source.onopen = () => hearState("live");
    source.onmessage = (message) => {
      const delta = JSON.parse(message.data);
      Object.assign(sections, delta);
      hear(sections, delta);
    };
    source.onerror = () => {
      if (document.hidden) return;
      stop();
      // The stream does not give the reason; a plain request does.
      get(runPath(name)).then(
        () => hearState("lost"),
        (error) => hearState(error.status ? "refused" : "lost", error),
      );
      retry = setTimeout(start, 2000);
    };
  };
  const shown = () => (document.hidden ? stop() : start());
  document.addEventListener("visibilitychange", shown);
  start();
  return () => {
    document.removeEventListener("visibilitychange", shown);
    stop();
  };
};
