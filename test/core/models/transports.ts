/** The ways by which a request of our own client goes out. */
export const transports = ["Node's HTTP", 'fetch'] as const
export type Transport = (typeof transports)[number]

/** Sends the requests of a block of tests this way: where `fetch` is not Node's own, it is used. */
export function overTransport(transport: Transport): void {
  const nodes = globalThis.fetch
  beforeAll(() => {
    if (transport === 'fetch') globalThis.fetch = (input, init) => nodes(input, init)
  })
  afterAll(() => {
    globalThis.fetch = nodes
  })
}
