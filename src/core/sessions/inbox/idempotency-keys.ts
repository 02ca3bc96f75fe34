const maxKeys = 100

/** Adds the idempotency key of a message. A session knows the keys of its last messages. */
export function addKey(keys: readonly string[], key: string | undefined): readonly string[] {
  return typeof key === 'string' ? [...keys, key].slice(-maxKeys) : keys
}
