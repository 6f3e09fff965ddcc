// The server, as the page asks it. Every call can be cancelled by a signal.

const says = (sentence) => new Error(`The server says: ${sentence}.`);

async function refused(response) {
  const said = await response.json().catch(() => ({}));
  return says(said.error ?? `status ${response.status}`);
}

function lost(error) {
  if (error.name === "AbortError") throw error;
  throw new Error("The server does not answer. Start it again, then reload this page.");
}

export async function get(address) {
  const response = await fetch(address).catch(lost);
  if (!response.ok) throw await refused(response);
  return response.json();
}

function post(address, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return fetch(address, { method: "POST", headers, body: JSON.stringify(body), signal }).catch(lost);
}

export async function look(body, signal) {
  const response = await post("api/look", body, signal);
  if (!response.ok) throw await refused(response);
  return response.json();
}

// Calls `each` with every line of the stream as soon as it is there.
export async function sample(body, signal, each) {
  const response = await post("api/sample", body, signal);
  if (!response.ok) throw await refused(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch(lost);
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const said = JSON.parse(line);
      if (said.error) throw says(said.error);
      each(said);
    }
  }
}
