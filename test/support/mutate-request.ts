/** A request on the wire. */
export interface WireRequest {
  method: string
  url: string
  headers: Record<string, string>
  body: string
}

export interface Mutated extends WireRequest {
  /** The mutation, for failure messages. */
  how: string[]
}

/** Values that JSON readers often mishandle. */
const oddities: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  0.5,
  1e308,
  -0,
  2 ** 53,
  '',
  ' ',
  '0',
  'null',
  '[object Object]',
  '__proto__',
  'constructor',
  'toString',
  '../../etc/passwd',
  'a\u0000b',
  '\u202egnp.exe',
  '\ud800',
  '\u001b[2J',
  'x'.repeat(10_000),
  '~'.repeat(300),
  '{"type":"approve"}',
  [],
  {},
  [[[[[[]]]]]],
  { toString: 1, valueOf: 1, toJSON: 1 },
  { length: 1e9 },
]

type Draw = () => number

/**
 * Mutates requests, deterministically per seed. `names` lists alternative values for each header. It collects
 * ids and texts from requests and answers, and inserts them in other places.
 */
export class RequestMutator {
  readonly #draw: Draw
  readonly #names: Readonly<Record<string, readonly string[]>>
  readonly #seen: unknown[] = []

  constructor(draw: Draw, names: Readonly<Record<string, readonly string[]>> = {}) {
    this.#draw = draw
    this.#names = names
  }

  /** Collects the values of a JSON text. */
  learn(text: string): void {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return
    }
    for (const { parent, key } of listPlaces(value)) {
      this.#seen.push(parent[key])
      if (!Array.isArray(parent)) this.#seen.push(key)
    }
    // Recent values are most likely still valid.
    this.#seen.splice(0, this.#seen.length - 400)
  }

  /** One to three changes. */
  mutate(request: WireRequest): Mutated {
    let mutated: Mutated = { ...request, headers: { ...request.headers }, how: [] }
    for (let left = this.#pick([1, 1, 1, 2, 3]); left > 0; left -= 1) mutated = this.#change(mutated)
    return mutated
  }

  #change(request: Mutated): Mutated {
    const kind = this.#draw()
    if (kind < 0.12) return this.#changeHeader(request)
    if (kind < 0.2) return this.#changeText(request)
    return this.#changeValue(request)
  }

  #changeHeader({ headers, how, ...request }: Mutated): Mutated {
    const name = this.#pick([...Object.keys(headers), ...Object.keys(this.#names)])
    const { [name]: _, ...others } = headers
    const value = this.#pick([undefined, '', 'x', ...(this.#names[name] ?? [])])
    return {
      ...request,
      headers: value === undefined ? others : { ...others, [name]: value },
      how: [...how, `header ${name}: ${value}`],
    }
  }

  /** Lost or duplicated bytes. */
  #changeText({ body, how, ...request }: Mutated): Mutated {
    const at = Math.floor(this.#draw() * body.length)
    const [name, text] = this.#pick([
      ['cut', body.slice(0, at)],
      [
        'a character more',
        `${body.slice(0, at)}${this.#pick(['"', '}', '\u0000', ',', '\ufeff'])}${body.slice(at)}`,
      ],
      ['twice', body + body],
      ['as a list', `[${body},${body}]`],
      ['empty', ''],
      ['deep', `${'['.repeat(5_000)}${']'.repeat(5_000)}`],
    ] as const)
    return { ...request, body: text, how: [...how, `body ${name}`] }
  }

  #changeValue({ body, how, ...request }: Mutated): Mutated {
    let value: unknown
    try {
      // Too deep to serialize again.
      value = body.startsWith('[[') ? null : JSON.parse(body)
    } catch {
      return { ...request, body, how }
    }
    const places = listPlaces(value)
    if (places.length === 0) return { ...request, body, how }
    const { parent, key, path } = this.#pick(places)
    const name = this.#changePlace(parent, key)
    return { ...request, body: JSON.stringify(value), how: [...how, `${path} ${name}`] }
  }

  #changePlace(parent: Record<string, unknown>, key: string): string {
    const old = parent[key]
    const set = (name: string, value: unknown): string => {
      setOwn(parent, key, value)
      return `${name} ${JSON.stringify(value)?.slice(0, 60)}`
    }
    const kind = this.#draw()
    if (kind < 0.3 && this.#seen.length > 0) return set('from elsewhere', this.#pick(this.#seen))
    if (kind < 0.5) return set('odd', this.#pick(oddities))
    if (kind < 0.6) {
      delete parent[key]
      return 'left out'
    }
    if (kind < 0.7) return set('in a list', [old, old])
    if (kind < 0.78 && this.#seen.length > 0) {
      setOwn(parent, String(this.#pick([...this.#seen, '__proto__', 'constructor'])), old)
      return 'under another name, too'
    }
    if (typeof old === 'string') {
      const at = Math.floor(this.#draw() * (old.length + 1))
      return set(
        'edited',
        this.#pick([old.slice(0, at), `${old} `, old.toUpperCase(), `${old}~2`, `${old}${old}`]),
      )
    }
    if (typeof old === 'boolean') return set('turned', !old)
    if (typeof old === 'number') return set('moved', old + this.#pick([-1, 1, 0.5]))
    return set('as a text', JSON.stringify(old))
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#draw() * items.length)] as Item
  }
}

interface Place {
  parent: Record<string, unknown>
  key: string
  path: string
}

/** The places in a JSON value, up to the usual depth of requests. */
function listPlaces(value: unknown, path = '', depth = 0): Place[] {
  if (typeof value !== 'object' || value === null || depth > 20) return []
  const parent = value as Record<string, unknown>
  return Object.keys(parent).flatMap((key) => {
    const to = `${path}.${key}`
    return [{ parent, key, path: to }, ...listPlaces(parent[key], to, depth + 1)]
  })
}

/** Includes the name `__proto__`, as JSON allows. */
function setOwn(parent: object, key: string, value: unknown): void {
  Object.defineProperty(parent, key, { value, enumerable: true, configurable: true, writable: true })
}
