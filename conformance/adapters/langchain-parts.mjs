// Serializes the checkpoints of a `MemorySaver`, and restores them.
export const toText = (_, value) =>
  value instanceof Uint8Array ? { bytes: Buffer.from(value).toString('latin1') } : value
export const fromText = (_, value) =>
  typeof value?.bytes === 'string' ? new Uint8Array(Buffer.from(value.bytes, 'latin1')) : value

/** The usage of the model's answers. */
export function usageOf(messages) {
  const reports = messages.flatMap((message) => (message.getType() === 'ai' ? [message.usage_metadata] : []))
  if (reports.length === 0) return undefined
  const sum = (key) => reports.reduce((total, usage) => total + (usage?.[key] ?? Number.NaN), 0)
  return { input: sum('input_tokens'), output: sum('output_tokens') }
}
