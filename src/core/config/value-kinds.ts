import {
  fields,
  type Kind,
  nullable,
  optional,
  type PartialKind,
  type Shape,
  predicate,
  transform,
  refine,
} from './kind.js'

/**
 * The kinds of value that a configuration is made of. Each names in one phrase what is allowed, and gives that phrase
 * as its message whatever was wrong, so that every refusal reads "limits.maxSteps must be <phrase>".
 */

export const flag = () => predicate<boolean>((value) => typeof value === 'boolean', 'true or false')

export const choice = <const Values extends readonly [string, ...string[]]>(...values: Values) =>
  predicate<Values[number]>(
    (value) => typeof value === 'string' && values.includes(value),
    values.map((value) => `'${value}'`).join(' or '),
  )

/** Any text, the empty one too. */
export const anyText = (phrase = 'a text') => predicate<string>((value) => typeof value === 'string', phrase)

/** Text with something in it. */
export const nonEmptyText = (phrase = 'a text that is not empty') =>
  refine(anyText(phrase), (value) => value !== '', phrase)

export const callable = <Callable>(phrase = 'a function') =>
  predicate<Callable>((value) => typeof value === 'function', phrase)

export const wholeNumber = (from: number, to: number, phrase: string) =>
  predicate<number>((value) => Number.isSafeInteger(value) && isWithin(value as number, from, to), phrase)

export const count = (from: number, note = '') =>
  wholeNumber(from, Infinity, `a whole number from ${from}${note}`)

/** A whole number or `null`, which stays `null`. */
export const countOrNull = (from: number, note: string) => nullable(count(from, note))

/** A whole number that is off at 0; `null` becomes 0. */
export const countOrOff = () => zeroWhenNull(wholeNumber(0, Infinity, 'a whole number; 0 or null is off'))

export const number = (from: number, to: number, phrase: string) =>
  predicate<number>((value) => Number.isFinite(value) && isWithin(value as number, from, to), phrase)

export const amount = (unit: string) => number(0, Infinity, `a number of ${unit} from 0`)

/** A finite number that is off at 0; `null` becomes 0. */
export const amountOrOff = (unit: string) =>
  zeroWhenNull(number(0, Infinity, `a number of ${unit}; 0 or null is off`))

/** A share of a whole that is off at 0; `null` becomes 0. */
export const fractionOrOff = () => zeroWhenNull(number(0, 1, 'a number from 0 to 1; 0 or null is off'))

export const numberBetween = (from: number, to: number) => number(from, to, `a number from ${from} to ${to}`)

/** An object with these keys and no others; each may be left out. */
export const section = <const Of extends Shape>(shape: Of): PartialKind<Of> => {
  const loose = Object.fromEntries(Object.entries(shape).map(([key, kind]) => [key, optional(kind)]))
  return fields(loose, `an object with any of ${Object.keys(shape).join(', ')}`) as PartialKind<Of>
}

/** An object with these keys and no others; those that are not optional are needed. */
export const record = <const Of extends Shape>(shape: Of) =>
  fields(shape, `an object with ${Object.keys(shape).join(', ')}`)

function zeroWhenNull(kind: Kind<number>): Kind<number, number | null> {
  return transform(nullable(kind), (value) => value ?? 0)
}

function isWithin(value: number, from: number, to: number): boolean {
  return value >= from && value <= to
}
