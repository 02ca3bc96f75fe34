/** The transports of our client. */
export const transports = ["Node's HTTP", 'fetch'] as const
export type Transport = (typeof transports)[number]

/** Sends the requests of a block of tests this way. A replaced `fetch` is used instead of Node's. */
export function overTransport(transport: Transport): void {
  const nodes = globalThis.fetch
  beforeAll(() => {
    if (transport === 'fetch') globalThis.fetch = (input, init) => nodes(input, init)
  })
  afterAll(() => {
    globalThis.fetch = nodes
  })
}
