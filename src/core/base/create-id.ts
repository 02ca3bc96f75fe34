import { getPlatform } from './platform.js'

/**
 * A random UUID. Some platforms hand it out as a chain of sixteen pieces; reading a character makes it one string, which
 * a parked run keeps for long.
 */
export function createId(): string {
  const id = getPlatform().createUuid() ?? formatUuid(getPlatform().fillWithChance(new Uint8Array(16)))
  id.charCodeAt(0)
  return id
}

/** Version 4, for pages that did not come over https: they have no `randomUUID`. */
function formatUuid(bytes: Uint8Array): string {
  const hex = Array.from(bytes, (byte, i) => {
    const marked = i === 6 ? (byte & 0x0f) | 0x40 : i === 8 ? (byte & 0x3f) | 0x80 : byte
    return marked.toString(16).padStart(2, '0')
  }).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
