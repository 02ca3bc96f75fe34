// The checkpoints of a `MemorySaver` as a text, and back.
export const toText = (_, value) =>
  value instanceof Uint8Array ? { bytes: Buffer.from(value).toString('latin1') } : value
export const fromText = (_, value) =>
  typeof value?.bytes === 'string' ? new Uint8Array(Buffer.from(value.bytes, 'latin1')) : value

/** What the answers of the model have cost. */
export function usageOf(messages) {
  const told = messages.flatMap((message) => (message.getType() === 'ai' ? [message.usage_metadata] : []))
  if (told.length === 0) return undefined
  const sum = (key) => told.reduce((total, usage) => total + (usage?.[key] ?? Number.NaN), 0)
  return { input: sum('input_tokens'), output: sum('output_tokens') }
}
