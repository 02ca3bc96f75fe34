/** Draws numbers from 0 to below 1; the same for the same seed. */
export function createChance(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

type Json = unknown
type Chance = () => number

const pick = <Item>(chance: Chance, items: readonly Item[]): Item =>
  items[Math.floor(chance() * items.length)] as Item

const strange: readonly Json[] = [
  null,
  true,
  false,
  0,
  -1,
  1e308,
  '',
  ' ',
  '~',
  '/',
  '__proto__',
  'x'.repeat(5_000),
  '\u202E\u0000',
  [],
  {},
  [null],
  { type: 'text' },
]

/** Every place in a value: how it is read, and how it is replaced. */
function listPlaces(root: Json): { parent: Record<string, Json>; key: string }[] {
  const places: { parent: Record<string, Json>; key: string }[] = []
  const visit = (value: Json): void => {
    if (typeof value !== 'object' || value === null) return
    for (const key of Object.keys(value)) {
      places.push({ parent: value as Record<string, Json>, key })
      visit((value as Record<string, Json>)[key])
    }
  }
  visit(root)
  return places
}

/**
 * The JSON text of a request with one to three changes: a value replaced by a strange one or by one of `known`, removed, sent
 * twice, exchanged with another one, or the text cut off.
 */
export function mutateRequest(request: object, chance: Chance, known: readonly Json[] = []): string {
  const root = { body: structuredClone(request) as Json }
  for (let changes = 1 + Math.floor(chance() * 3); changes > 0; changes -= 1) {
    const places = listPlaces(root)
    const { parent, key } = pick(chance, places)
    switch (Math.floor(chance() * 6)) {
      case 0:
        parent[key] = structuredClone(pick(chance, strange))
        break
      case 1:
        if (known.length > 0) parent[key] = structuredClone(pick(chance, known))
        break
      case 2:
        if (Array.isArray(parent)) parent.splice(Number(key), 1)
        else if (key !== 'body') Reflect.deleteProperty(parent, key)
        break
      case 3:
        if (Array.isArray(parent)) parent.push(structuredClone(parent[Number(key)]))
        else parent[`${key}2`] = structuredClone(parent[key])
        break
      case 4: {
        const other = pick(chance, places)
        parent[key] = structuredClone(other.parent[other.key]) as Json
        break
      }
      default: {
        const text = parent[key]
        if (typeof text === 'string') {
          const at = Math.floor(chance() * (text.length + 1))
          parent[key] = text.slice(0, at) + pick(chance, ['', '~', ' ', '0']) + text.slice(at + 1)
        }
      }
    }
  }
  const text = JSON.stringify(root.body) ?? ''
  return chance() < 0.05 ? text.slice(0, Math.floor(chance() * text.length)) : text
}
