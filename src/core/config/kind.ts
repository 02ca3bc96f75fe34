import { isBetween } from '../base/text.js'

/** A validator for configuration values. Importing zod takes longer than importing the whole core. */
export interface Kind<Value = unknown, Taken = Value> {
  /** Returns the parsed value, which is meaningless if problems were reported. */
  read(value: unknown, path: Path, report: Report): Value
  /** Validators of the nested keys. `anyKey` stands for user-defined keys. */
  readonly keys: Keys
  /** Whether the key can be omitted. */
  readonly isOptional?: true
  /** The accepted input. Exists only at the type level. */
  readonly input?: Taken
}

export type Path = readonly PropertyKey[]

/** Reports the allowed values at a path, or null for an unknown key. */
export type Report = (path: Path, phrase: string | null) => void

export type Keys = readonly (readonly [name: string, kind: Kind])[]

export const anyKey = '*'

export type KindValue<Of> = Of extends Kind<infer Value, unknown> ? Value : never
export type KindInput<Of> = Of extends Kind<unknown, infer Given> ? Given : never

export type OptionalKind<Value, Taken = Value> = Kind<Value | undefined, Taken | undefined> & {
  readonly isOptional: true
}

export type Shape = Readonly<Record<string, Kind>>

export type FieldValues<Of extends Shape> = Flatten<
  { [Key in keyof Of as Of[Key] extends OptionalKind<unknown> ? never : Key]: KindValue<Of[Key]> } & {
    [Key in keyof Of as Of[Key] extends OptionalKind<unknown> ? Key : never]?: KindValue<Of[Key]>
  }
>
export type PartialKind<Of extends Shape> = Kind<
  { -readonly [Key in keyof Of]?: KindValue<Of[Key]> | undefined },
  { -readonly [Key in keyof Of]?: KindInput<Of[Key]> | undefined }
>
type Flatten<Type> = { -readonly [Key in keyof Type]: Type[Key] }

export function predicate<Value>(test: (value: unknown) => boolean, phrase: string): Kind<Value> {
  return {
    keys: [],
    read(value, path, report) {
      if (!test(value)) report(path, phrase)
      return value as Value
    },
  }
}

export const anything: Kind = predicate(() => true, 'anything')

export function optional<Value, Taken>(kind: Kind<Value, Taken>): OptionalKind<Value, Taken> {
  return {
    keys: kind.keys,
    isOptional: true,
    read: (value, path, report) => (value === undefined ? undefined : kind.read(value, path, report)),
  }
}

export function nullable<Value, Taken>(kind: Kind<Value, Taken>): Kind<Value | null, Taken | null> {
  return {
    keys: kind.keys,
    read: (value, path, report) => (value === null ? null : kind.read(value, path, report)),
  }
}

export function refine<Value, Taken>(
  kind: Kind<Value, Taken>,
  test: (value: Value) => boolean,
  phrase: string,
): Kind<Value, Taken> {
  return pipe(kind, (value, path, report) => {
    if (!test(value)) report(path, phrase)
    return value
  })
}

/** The first alternative that matches. If exactly one nearly matches, its inner problems are reported. */
export function union<Kinds extends readonly Kind[]>(
  kinds: Kinds,
  phrase: string,
): Kind<KindValue<Kinds[number]>> {
  return {
    keys: kinds.flatMap(({ keys }) => keys),
    read(value, path, report) {
      const near: Parameters<Report>[][] = []
      for (const kind of kinds) {
        const reports: Parameters<Report>[] = []
        const read = kind.read(value, path, (...what) => void reports.push(what))
        if (reports.length === 0) return read as KindValue<Kinds[number]>
        if (reports.every(([at]) => at.length > path.length)) near.push(reports)
      }
      const reports: Parameters<Report>[] = near.length === 1 ? near.flat() : [[path, phrase]]
      for (const what of reports) report(...what)
      return value as KindValue<Kinds[number]>
    },
  }
}

export function list<Value>(kind: Kind<Value>, phrase = 'a list'): Kind<Value[]> {
  return {
    keys: [],
    read(value, path, report) {
      if (Array.isArray(value)) return value.map((item, i) => kind.read(item, [...path, i], report))
      report(path, phrase)
      return []
    },
  }
}

/** An object with these keys. Other keys are rejected, or kept if the object is `open`. */
export function fields<const Of extends Shape>(
  shape: Of,
  phrase: string,
  how: 'closed' | 'open' = 'closed',
): Kind<FieldValues<Of>> {
  const keys = Object.entries(shape)
  return {
    keys,
    read(value, path, report) {
      const object = readObject(value, path, report, phrase)
      const read: Record<string, unknown> = how === 'open' ? { ...object } : {}
      if (object === null) return read as FieldValues<Of>
      for (const [key, kind] of keys) {
        if (object[key] !== undefined || kind.isOptional === undefined) {
          read[key] = kind.read(object[key], [...path, key], report)
        }
      }
      if (how === 'closed') {
        for (const key of Object.keys(object)) if (!Object.hasOwn(shape, key)) report([...path, key], null)
      }
      return read as FieldValues<Of>
    },
  }
}

export function map<Value>(kind: Kind<Value>, phrase: string): Kind<Record<string, Value>> {
  return {
    keys: [[anyKey, kind]],
    read(value, path, report) {
      const object = readObject(value, path, report, phrase)
      return Object.fromEntries(
        Object.entries(object ?? {}).map(([key, inner]) => [key, kind.read(inner, [...path, key], report)]),
      )
    },
  }
}

export function taggedUnion<const Kinds extends Shape>(
  tag: string,
  kinds: Kinds,
  phrase: string,
): Kind<KindValue<Kinds[keyof Kinds]>> {
  return {
    keys: Object.values(kinds).flatMap(({ keys }) => keys),
    read(value, path, report) {
      const object = readObject(value, path, report, phrase)
      const name = object?.[tag]
      const kind = typeof name === 'string' && Object.hasOwn(kinds, name) ? kinds[name] : undefined
      if (object !== null && kind === undefined) report([...path, tag], phrase)
      return kind?.read(value, path, report) as KindValue<Kinds[keyof Kinds]>
    },
  }
}

/** Rejects Maps, Dates and other objects whose content would be ignored. */
function readObject(value: unknown, path: Path, report: Report, phrase: string) {
  if (Object.prototype.toString.call(value) === '[object Object]') return value as Record<string, unknown>
  report(path, phrase)
  return null
}

/** Continues with a value of this kind, to check or to convert it. */
export function pipe<Value, Taken, Other>(
  kind: Kind<Value, Taken>,
  go: (value: Value, path: Path, report: Report) => Other,
): Kind<Other, Taken> {
  return {
    keys: kind.keys,
    read(value, path, report) {
      let isOfKind = true
      const read = kind.read(value, path, (...what) => {
        isOfKind = false
        report(...what)
      })
      return isOfKind ? go(read, path, report) : (read as unknown as Other)
    },
  }
}

// Each phrase describes the allowed values, so that all errors read "limits.maxSteps must be <phrase>".

export const flag = () => predicate<boolean>((value) => typeof value === 'boolean', 'true or false')

export const choice = <const Values extends readonly [string, ...string[]]>(...values: Values) =>
  predicate<Values[number]>(
    (value) => typeof value === 'string' && values.includes(value),
    values.map((value) => `'${value}'`).join(' or '),
  )

export const anyText = (phrase = 'a string') =>
  predicate<string>((value) => typeof value === 'string', phrase)

export const nonEmptyText = (phrase = 'a non-empty string') =>
  refine(anyText(phrase), (value) => value !== '', phrase)

export const callable = <Callable>(phrase = 'a function') =>
  predicate<Callable>((value) => typeof value === 'function', phrase)

export const wholeNumber = (from: number, to: number, phrase: string) =>
  predicate<number>((value) => Number.isSafeInteger(value) && isBetween(value as number, from, to), phrase)

export const count = (from: number, note = '') =>
  wholeNumber(from, Infinity, `a whole number of at least ${from}${note}`)

export const countOrNull = (from: number, note: string) => nullable(count(from, note))

/** An integer for which 0 means off; `null` becomes 0. */
export const countOrOff = () =>
  zeroWhenNull(wholeNumber(0, Infinity, 'a whole number (0 or null turns it off)'))

export const number = (from: number, to: number, phrase: string) =>
  predicate<number>((value) => Number.isFinite(value) && isBetween(value as number, from, to), phrase)

export const amount = (unit: string) => number(0, Infinity, `a number of ${unit} from 0`)

/** A finite number for which 0 means off; `null` becomes 0. */
export const amountOrOff = (phrase: string) =>
  zeroWhenNull(number(0, Infinity, `${phrase} (0 or null turns it off)`))

/** A fraction for which 0 means off; `null` becomes 0. */
export const fractionOrOff = () => zeroWhenNull(number(0, 1, 'a number from 0 to 1 (0 or null turns it off)'))

export const numberBetween = (from: number, to: number) => number(from, to, `a number from ${from} to ${to}`)

/** An object with only these keys, all of them optional. */
export const section = <const Of extends Shape>(shape: Of): PartialKind<Of> => {
  const loose = Object.fromEntries(Object.entries(shape).map(([key, kind]) => [key, optional(kind)]))
  return fields(loose, `an object with any of ${Object.keys(shape).join(', ')}`) as PartialKind<Of>
}

/** An object with at least these keys. Other keys are kept. */
export const openFields = <const Of extends Shape>(shape: Of, phrase = 'an object') =>
  fields(shape, phrase, 'open')

/** An object with only these keys. Keys are required unless they are optional. */
export const record = <const Of extends Shape>(shape: Of) =>
  fields(shape, `an object with ${Object.keys(shape).join(', ')}`)

function zeroWhenNull(kind: Kind<number>): Kind<number, number | null> {
  return pipe(nullable(kind), (value) => value ?? 0)
}
