/**
 * A random UUID. Some platforms hand it out as a chain of sixteen pieces; reading a character makes it one string, which
 * a parked run keeps for long.
 */
export function newId(): string {
  const id = crypto.randomUUID()
  id.charCodeAt(0)
  return id
}
