// The checkpoints of a `MemorySaver` as a text, and back.
export const toText = (_, value) =>
  value instanceof Uint8Array ? { bytes: Buffer.from(value).toString('latin1') } : value
export const fromText = (_, value) =>
  typeof value?.bytes === 'string' ? new Uint8Array(Buffer.from(value.bytes, 'latin1')) : value
