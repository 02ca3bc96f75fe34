import * as z from 'zod/mini'

/**
 * The kinds of value that a configuration is made of. Each names in one phrase what is allowed, and gives that phrase
 * as its message whatever was wrong, so that every refusal reads "limits.maxSteps must be <phrase>".
 */

export const flag = () => z.boolean('true or false')

export const choice = <const Values extends readonly [string, ...string[]]>(...values: Values) =>
  z.enum(values, values.map((value) => `'${value}'`).join(' or '))

/** Text with something in it. */
export const text = (phrase = 'a text that is not empty') => z.string(phrase).check(z.minLength(1, phrase))

export const count = (from: number, note = '') => wholeFrom(from, `a whole number from ${from}${note}`)

/** A whole number or `null`, which stays `null`. */
export const countOrNull = (from: number, note: string) => z.nullable(count(from, note))

/** A whole number that is off at 0; `null` becomes 0. */
export const countOrOff = () => orOff(wholeFrom(0, 'a whole number; 0 or null is off'))

export const amount = (unit: string) => numberFrom(0, `a number of ${unit} from 0`)

/** A finite number that is off at 0; `null` becomes 0. */
export const amountOrOff = (unit: string) => orOff(numberFrom(0, `a number of ${unit}; 0 or null is off`))

/** A share of a whole that is off at 0; `null` becomes 0. */
export const fractionOrOff = () => {
  const phrase = 'a number from 0 to 1; 0 or null is off'
  return orOff(numberFrom(0, phrase).check(z.lte(1, phrase)))
}

export const between = (from: number, to: number) => {
  const phrase = `a number from ${from} to ${to}`
  return numberFrom(from, phrase).check(z.lte(to, phrase))
}

/** An object with these keys and no others; each may be left out. */
export const section = <Shape extends z.core.$ZodShape>(shape: Shape) => {
  const phrase = `an object with any of ${Object.keys(shape).join(', ')}`
  return plain(z.partial(z.strictObject(shape, phrase)), phrase)
}

/** An object with these keys and no others; those that are not optional are needed. */
export const record = <Shape extends z.core.$ZodShape>(shape: Shape) => {
  const phrase = `an object with ${Object.keys(shape).join(', ')}`
  return plain(z.strictObject(shape, phrase), phrase)
}

/** An object whose keys are names that the user chooses. */
export const map = <Value extends z.core.$ZodType>(value: Value, phrase: string) =>
  plain(z.record(z.string(), value, phrase), phrase)

/** Refuses a Map, a Date and other objects whose settings nobody would read. */
function plain<Output, Input>(schema: z.core.$ZodType<Output, Input>, phrase: string) {
  return z.pipe(z.custom<Input>(isPlain, phrase), schema)
}

function wholeFrom(from: number, phrase: string) {
  return z.int(phrase).check(z.gte(from, phrase))
}

function numberFrom(from: number, phrase: string) {
  return z.number(phrase).check(z.gte(from, phrase))
}

function orOff(number: z.ZodMiniNumber<number>) {
  return z.pipe(
    z.nullable(number),
    z.transform((value: number | null) => value ?? 0),
  )
}

function isPlain(value: unknown): boolean {
  return Object.prototype.toString.call(value) === '[object Object]'
}
