// A fetch that keeps a copy of every exchange, so that raw answers can be checked beside what a client made of them.
export class Recorder {
  constructor() {
    this.whole = [];
    this.fetch = this.fetch.bind(this);
  }

  async fetch(url, options = {}) {
    const response = await fetch(url, options);
    const about = { path: new URL(url).pathname, method: options.method ?? 'GET', status: response.status, headers: response.headers,
                    type: response.headers.get('content-type') ?? '' };
    // Not response.clone(): it would go on reading what the client has aborted.
    const pieces = [];
    const copy = new TransformStream({
      transform: (piece, to) => { pieces.push(piece); to.enqueue(piece); },
      flush: () => { this.whole.push({ ...about, body: Buffer.concat(pieces).toString() }); },
    });
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(copy), { status, statusText, headers });
  }

  // Every exchange that was read to its end since the last call.
  take() {
    return this.whole.splice(0);
  }
}
