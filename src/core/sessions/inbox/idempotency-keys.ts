/** Maximum number of stored keys. Only the keys of the latest messages are stored. */
export const maxKeys = 100

/** Adds the idempotency key of a message. */
export function addKey(keys: readonly string[], key: string | undefined): readonly string[] {
  return typeof key === 'string' ? [...keys, key].slice(-maxKeys) : keys
}
