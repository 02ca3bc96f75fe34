const maxKeys = 100

/** Adds the idempotency key of a message. Only the keys of the latest messages are stored. */
export function addKey(keys: readonly string[], key: string | undefined): readonly string[] {
  return typeof key === 'string' ? [...keys, key].slice(-maxKeys) : keys
}
